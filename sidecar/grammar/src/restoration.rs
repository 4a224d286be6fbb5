//! Image restoration: `BasicSR` and EDSR, and the many programs that are built on them.

use paceline_lines::observation::{Phase, Span};
use paceline_lines::scan;
use paceline_lines::terminal::End;

use super::draft::Draft;
use super::shape::Shape;
use super::{Grammar, Reading};

/// `[epoch:  0, iter:   1,200, lr:(2.0e-04,)] [eta: 1 day, 2:03:04, time (data): 0.5 (0.01)] l_pix: 0.25`.
/// The names of its losses begin with `l_`.
#[derive(Debug)]
pub(super) struct BasicSr {
    shapes: [Shape; 3],
}

/// Maximum number of values on a line.
const MAX_VALUES: usize = 32;

impl BasicSr {
    pub(super) fn new() -> Self {
        let shapes = [
            Shape::new(
                "[epoch: {epoch}, iter: {step}, lr:({..})] [eta: {..}, time (data): {s} ({_})]",
            ),
            // The name of the experiment may come first.
            Shape::new(
                "[{..}][epoch: {epoch}, iter: {step}, lr:({..})] [eta: {..}, time (data): {s} ({_})]",
            ),
            // Before version 1.
            Shape::new("<epoch: {epoch}, iter: {step}, lr:{_}>"),
        ];
        Self { shapes }
    }
}

impl Grammar for BasicSr {
    fn name(&self) -> &'static str {
        "basicsr"
    }

    fn starts(&self, byte: u8) -> bool {
        matches!(byte, b'[' | b'<')
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let Some(rest) = self.shapes.iter().find_map(|shape| shape.read(line, draft)) else {
            return Reading::Foreign;
        };
        let words: Vec<_> = rest.split_whitespace().take(MAX_VALUES).collect();
        for pair in words.chunks_exact(2) {
            if let [name, value] = pair
                && let Some(name) = name.strip_suffix(':').filter(|name| name.starts_with("l_"))
                && let Some(value) = scan::whole(value)
            {
                draft.push(name, Phase::Train, Span::Step, value);
            }
        }
        if draft.found.losses.is_empty() {
            draft.clear();
            return Reading::Known;
        }
        Reading::Says
    }
}

/// `[1600/16000]⇥[L1: 17.25][Total: 20.5]⇥6.4+47.0s`: the images of the epoch so far, and the parts of the loss.
#[derive(Debug)]
pub(super) struct Edsr {
    shape: Shape,
}

/// The name of the whole loss beside its parts.
const TOTAL: &str = "Total";

impl Edsr {
    pub(super) fn new() -> Self {
        Self { shape: Shape::new("[{sample}/{total}]\t") }
    }

    /// Reads the losses in brackets, and the times of the network and of the data behind them.
    fn losses(text: &str, draft: &mut Draft) -> Option<()> {
        let mut rest = text;
        while let Some((inside, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
            let (name, value) = inside.split_once(": ")?;
            let value = scan::whole(value)?;
            if name == TOTAL {
                draft.retain(|_| false);
            }
            draft.push(name, Phase::Train, Span::EpochSoFar, value);
            rest = after;
        }
        let (_, rest) = scan::number(rest.strip_prefix('\t')?)?;
        let (_, "s") = scan::number(rest.strip_prefix('+')?)? else { return None };
        (!draft.found.losses.is_empty()).then_some(())
    }
}

impl Grammar for Edsr {
    fn name(&self) -> &'static str {
        "edsr"
    }

    fn starts(&self, byte: u8) -> bool {
        byte == b'['
    }

    fn goes_on(&self, byte: u8) -> bool {
        byte.is_ascii_digit()
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let Some(rest) = self.shape.read(line, draft) else { return Reading::Foreign };
        if Self::losses(rest, draft).is_some() {
            return Reading::Says;
        }
        draft.clear();
        Reading::Foreign
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn edsr() {
        let table = [
            ("[1600/16000]\t[L1: 17.2500]\t6.4+47.0s", "sample 1600/16000, L1=17.25 EpochSoFar"),
            (
                "[3200/16000]\t[L1: 5.5][VGG22: 3.5][Total: 9.0]\t6.4+47.0s",
                "sample 3200/16000, Total=9 EpochSoFar",
            ),
            ("[3200/16000]\t[PSNR: 35.5]", ""),
            ("[3200/16000]\t6.4+47.0s", ""),
        ];
        check("edsr", true, &table);
    }

    #[test]
    fn basicsr() {
        let table = [
            (
                "2026-01-01 10:00:00,123 INFO: [my_x4..][epoch:  0, iter:     200, lr:(2.000e-04,)] [eta: 1 day, 2:03:04, time (data): 0.500 (0.010)] l_pix: 2.5000e-01 ",
                "epoch 0, step 200, 0.5 s, l_pix=0.25 Step",
            ),
            (
                "[epoch: 3, iter: 1,200, lr:(1.0e-04,1.0e-04,)] [eta: 2:03:04, time (data): 0.25 (0.01)] l_g_pix: 5.0e-01 l_d_real: 7.5e-01 out_d: 1.0e+00",
                "epoch 3, step 1200, 0.25 s, l_g_pix=0.5 Step, l_d_real=0.75 Step",
            ),
            ("[epoch: 3] l_pix: 2.5", ""),
            (
                "<epoch:  3, iter:   1,200, lr:2.000e-04> l_g_pix: 2.5000e-01 l_g_fea: 5.0e-01 D_real: 1.0e+00",
                "epoch 3, step 1200, l_g_pix=0.25 Step, l_g_fea=0.5 Step",
            ),
            ("<epoch:  3, iter:   1,200> psnr: 2.5000e+01", ""),
        ];
        check("basicsr", false, &table);
    }
}

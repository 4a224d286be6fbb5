//! The bars of YOLO: the columns of a table stand before the bar of an epoch.

use paceline_lines::observation::{Observation, Phase, Span};
use paceline_lines::scan;
use paceline_lines::terminal::End;

use super::frame::Frame;
use super::rich;
use crate::draft::Draft;
use crate::{Grammar, Reading};

/// `1/50  2.5G  1.25  0.5  0.75  12  640: 100%|###| 8/8 [00:04<00:00, 2.0it/s]` below a header with
/// `Epoch  GPU_mem  box_loss  cls_loss  dfl_loss  Instances  Size`.
#[derive(Debug, Default)]
pub(crate) struct Yolo {
    columns: Vec<String>,
    /// The first epoch. Where it is 1, the number after the slash is that of all epochs.
    first: Option<u64>,
    /// The epoch and the step of the last frame.
    last: Option<(u64, u64)>,
}

/// Maximum number of columns.
const MAX_COLUMNS: usize = 24;
/// Names of losses that do not say so.
const LOSSES: [&str; 8] = ["box", "obj", "cls", "dfl", "seg", "pose", "giou", "total"];

impl Grammar for Yolo {
    fn name(&self) -> &'static str {
        "yolo"
    }

    fn is_of_bars(&self) -> bool {
        true
    }

    fn starts(&self, byte: u8) -> bool {
        byte == b'E' || byte.is_ascii_digit()
    }

    fn read(&mut self, line: &str, end: End, draft: &mut Draft) -> Reading {
        if line.starts_with("Epoch ") {
            let mut columns = line.split_whitespace().take(MAX_COLUMNS);
            if !columns.clone().nth(1).is_some_and(|name| name.eq_ignore_ascii_case("gpu_mem")) {
                return Reading::Foreign;
            }
            self.columns = columns.by_ref().map(str::to_ascii_lowercase).collect();
            return Reading::Known;
        }
        if self.columns.is_empty() || !line.starts_with(|c: char| c.is_ascii_digit()) {
            return Reading::Foreign;
        }
        if end == End::Flush && !line.ends_with(']') {
            return Reading::Foreign;
        }
        let Some(frame) = Frame::parse(line).or_else(|| rich::parse(line)) else {
            return Reading::Foreign;
        };
        self.frame(&frame, draft)
    }
}

impl Yolo {
    /// Whether the table has a column of this name.
    fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column == name)
    }

    fn frame(&mut self, frame: &Frame<'_>, draft: &mut Draft) -> Reading {
        let epochs = frame.desc.split_whitespace().next().and_then(scan::count);
        let Some((epoch, rest)) = epochs else { return Reading::Foreign };
        let Some((epochs, "")) = rest.strip_prefix('/').and_then(scan::count) else {
            return Reading::Foreign;
        };
        if self.last.replace((epoch, frame.n)) == Some((epoch, frame.n)) {
            return Reading::Known;
        }
        let first = *self.first.get_or_insert(epoch);
        // A run that goes on may begin at any epoch. The columns show which program counts from 0.
        let is_older = ["obj", "obj_loss", "img_size"].iter().any(|name| self.has(name));
        let (epoch, total_epochs) = match first {
            0 => (epoch, None),
            1 => (epoch, Some(epochs)),
            _ if is_older => (epoch.saturating_add(1), epochs.checked_add(1)),
            _ => (epoch, Some(epochs).filter(|_| self.has("dfl_loss"))),
        };
        for (name, cell) in self.columns.iter().zip(frame.desc.split_whitespace()) {
            let is_loss = name.ends_with("loss") || LOSSES.contains(&name.as_str());
            if let Some(value) = scan::whole(cell).filter(|_| is_loss) {
                draft.push(name, Phase::Train, Span::EpochSoFar, value);
            }
        }
        let losses = std::mem::take(&mut draft.found.losses);
        draft.found = Observation {
            step: Some(frame.n),
            step_in_epoch: true,
            total_steps: frame.total,
            epoch: u32::try_from(epoch).ok().map(f64::from),
            total_epochs,
            batch_seconds: frame.seconds,
            losses,
            ..Observation::default()
        };
        // The total is after its parts.
        draft.found.losses.sort_by_key(|loss| loss.name != "total");
        if draft.found.losses.is_empty() { Reading::Known } else { Reading::Says }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn columns_say_from_where_a_resumed_run_counts() {
        let older = [
            ("  Epoch   gpu_mem       box       obj     total    labels  img_size", ""),
            (
                "   12/39     2.61G   0.0625    0.125   0.1875         7       640: 100%|██████| 50/50 [00:20<00:00,  2.50it/s]",
                "epoch 13/40, batch 50/50, 0.4 s, total=0.1875 EpochSoFar, box=0.0625 EpochSoFar, obj=0.125 EpochSoFar",
            ),
        ];
        check("yolo", false, &older);
        let newer = [
            ("      Epoch    GPU_mem   box_loss   dfl_loss  Instances       Size", ""),
            (
                "      12/40      2.25G      1.5      1.25         32        640: 100% ━━━━━━━━━━━━ 8/8 2.0it/s 4.0s",
                "epoch 12/40, batch 8/8, 0.5 s, box_loss=1.5 EpochSoFar, dfl_loss=1.25 EpochSoFar",
            ),
        ];
        check("yolo", false, &newer);
    }

    #[test]
    fn columns_before_bars_are_read() {
        let table = [
            (
                "     Epoch   gpu_mem       box       obj       cls     total    labels  img_size",
                "",
            ),
            (
                "      0/49     2.61G   0.0625    0.125    0.25   0.4375         7       640: 100%|██████| 50/50 [00:20<00:00,  2.50it/s]",
                "epoch 0, batch 50/50, 0.4 s, total=0.4375 EpochSoFar, box=0.0625 EpochSoFar, obj=0.125 EpochSoFar, cls=0.25 EpochSoFar",
            ),
            (
                "               Class      Images     Targets           P           R      mAP@.5: 100%|██████| 12/12 [00:04<00:00,  2.71it/s]",
                "",
            ),
            ("                 all         180         180       0.797       0.358", ""),
        ];
        check("yolo", false, &table);
        let table = [
            ("      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size", ""),
            (
                "      1/30      2.25G      1.5      3.25      1.25         32        640: 100% ━━━━━━━━━━━━ 8/8 2.0it/s 4.2s",
                "epoch 1/30, batch 8/8, 0.5 s, box_loss=1.5 EpochSoFar, cls_loss=3.25 EpochSoFar, dfl_loss=1.25 EpochSoFar",
            ),
        ];
        check("yolo", false, &table);
    }
}

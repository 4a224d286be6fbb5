//! tqdm as the package `tqdm_loggable` prints it, where there is no terminal.

use paceline_lines::observation::{Phase, Span};
use paceline_lines::scan;
use paceline_lines::terminal::End;

use super::desc::Desc;
use super::frame::per;
use crate::draft::Draft;
use crate::keys::{Field, Keys, main_loss_first, put};
use crate::{Grammar, Reading};

/// `Progress on:train 1.2kit/10.0kit rate:2.0it/s remaining:1:15:00 elapsed:08:20
/// postfix:loss=4.2`.
#[derive(Debug, Default)]
pub(crate) struct Loggable {
    keys: Keys,
    pass: Pass,
}

/// The passes of a bar without an epoch in its description.
#[derive(Debug, Default)]
struct Pass {
    /// The last counter and its total.
    last: (u64, Option<u64>),
    restarts: u32,
}

impl Grammar for Loggable {
    fn name(&self) -> &'static str {
        "tqdm loggable"
    }

    fn starts(&self, byte: u8) -> bool {
        byte == b'P'
    }

    fn goes_on(&self, byte: u8) -> bool {
        byte == b'r'
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let known = self.line(line, draft);
        if let Some(reading) = known
            && !draft.found.losses.is_empty()
        {
            if reading == Reading::Known {
                draft.clear();
            }
            return reading;
        }
        draft.clear();
        Reading::Foreign
    }
}

impl Loggable {
    fn line(&mut self, line: &str, draft: &mut Draft) -> Option<Reading> {
        let rest = line.strip_prefix("Progress on:")?;
        let (before, rest) = rest.split_once(" rate:")?;
        let (desc, counted) = before.rsplit_once(' ')?;
        let (n, rest_of_n) = scan::scaled_count(counted)?;
        let total = rest_of_n.split_once('/').and_then(|(_, total)| scan::scaled_count(total));
        let (rate, rest) = rest.split_once(' ')?;
        let (_, postfix) = rest.split_once("postfix:")?;
        for pair in scan::listed(postfix) {
            let Some((key, value)) = pair.split_once('=') else { continue };
            let field = self.keys.field(key);
            if let (Field::Loss { .. }, Some(value)) = (field, scan::whole(value)) {
                put(field, key, value, draft);
            }
        }
        self.keys.widen(&mut draft.found.losses, Span::Step);
        main_loss_first(&mut draft.found.losses);
        let desc = Desc::parse(desc);
        if desc.rehearsal {
            return Some(Reading::Known);
        }
        let total = total.map(|(total, _)| total);
        let found = &mut draft.found;
        (found.epoch, found.total_epochs) = (desc.epoch, desc.epochs);
        if let Some(phase) = desc.phase.filter(|phase| *phase != Phase::Train) {
            for loss in &mut found.losses {
                (loss.phase, loss.span) = (phase, Span::Epoch);
            }
            return Some(Reading::Says);
        }
        if desc.of_epochs {
            (found.epoch, found.total_epochs) = (u32::try_from(n).ok().map(f64::from), total);
            self.keys.widen(&mut found.losses, Span::Epoch);
            return Some(Reading::Says);
        }
        if desc.epoch.is_none() && !found.losses.is_empty() {
            draft.counted_epoch = self.pass.take(n, total);
        }
        (found.step, found.total_steps) = (Some(n), total);
        found.step_in_epoch = !desc.of_steps;
        found.batch_seconds = per(rate).0;
        Some(Reading::Says)
    }
}

impl Pass {
    /// The epoch that the counter `n` of a bar is in, once the bar has restarted.
    fn take(&mut self, n: u64, total: Option<u64>) -> Option<u32> {
        let (before, of) = std::mem::replace(&mut self.last, (n, total));
        self.restarts = self.restarts.saturating_add(u32::from(of == total && n < before));
        (self.restarts > 0).then(|| self.restarts.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read_all;

    #[test]
    fn description_says_the_epoch_and_the_data() {
        let lines = [
            "Progress on:Sanity Checking 2.0it/2.0it rate:4.0it/s remaining:00:00 elapsed:00:01 postfix:loss=9.5",
            "Progress on:Epoch 1 1000it/1000it rate:4.0it/s remaining:00:00 elapsed:04:10 postfix:loss=2.5",
            "Progress on:Validation 50.0it/100it rate:4.0it/s remaining:00:10 elapsed:00:10 postfix:loss=3.9",
            "Progress on:Evaluating 99.0it/100it rate:4.0it/s remaining:00:10 elapsed:00:10 postfix:loss=3.8",
            "Progress on:Epoch 2 500it/1000it rate:4.0it/s remaining:02:05 elapsed:02:05 postfix:loss=2.3",
            "Progress on:Epochs 2.0it/3.0it rate:0.1it/s remaining:02:05 elapsed:02:05 postfix:loss=2.25",
        ]
        .map(|line| (line, End::Newline));
        let expected = [
            "epoch 1, batch 1000/1000, 0.25 s, loss=2.5 Step",
            "loss=3.9 Validation Epoch",
            "loss=3.8 Validation Epoch",
            "epoch 2, batch 500/1000, 0.25 s, loss=2.3 Step",
            "epoch 2/3, loss=2.25 Epoch",
        ];
        assert_eq!(read_all(&lines), expected);
    }

    #[test]
    fn bar_without_an_epoch_counts_its_passes() {
        let lines = [
            "Progress on:train 4.0it/9.0it rate:4.0it/s remaining:00:01 elapsed:00:01 postfix:loss=2.5",
            "Progress on:train 2.0it/9.0it rate:4.0it/s remaining:00:02 elapsed:00:01 postfix:loss=2.25",
        ]
        .map(|line| (line, End::Newline));
        let expected =
            ["batch 4/9, 0.25 s, loss=2.5 Step", "epoch 2, batch 2/9, 0.25 s, loss=2.25 Step"];
        assert_eq!(read_all(&lines), expected);
    }

    #[test]
    fn line_has_counter_rate_and_losses() {
        let mut grammar = Loggable::default();
        let mut draft = Draft::default();
        let line = "Progress on:fit 1.50kit/12.0kit rate:4.0it/s remaining:10:00 elapsed:01:00 postfix:lr=0.1, loss=2.5";
        assert_eq!(grammar.read(line, End::Newline, &mut draft), Reading::Says);
        let found = &draft.found;
        assert_eq!((found.step, found.total_steps), (Some(1500), Some(12_000)));
        assert_eq!((found.batch_seconds, found.losses.len()), (Some(0.25), 1));
        draft.clear();
        for line in
            ["Progress on:fit", "Progress: 5%", "Progress on:x 5it/9it rate:?it/s remaining:?"]
        {
            assert_eq!(grammar.read(line, End::Newline, &mut draft), Reading::Foreign, "{line}");
        }
    }
}

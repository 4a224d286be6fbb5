//! Lines that contain only the epoch, which applies to the lines below.

use paceline_lines::observation::{Observation, Phase};
use paceline_lines::scan;

/// `Epoch 3/10`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Heading {
    pub(super) epoch: f64,
    pub(super) epochs: Option<u64>,
    /// The number of its batches.
    pub(super) length: Option<u64>,
}

/// Maximum length of a heading in bytes.
const MAX_LEN: usize = 80;
/// What else a heading may say with a number.
const NOTES: [&str; 5] = ["time", "took", "elapsed", "lr", "learning rate"];
/// Words of callbacks behind the epoch: `Epoch 00002: val_loss did not improve`.
const CALLBACKS: [&str; 3] = ["improve", "early stopping", "saving"];
/// Words between the one for an epoch and its number.
const NUMBER: [&str; 3] = ["number ", "number: ", "no. "];
/// Words before the epoch, and how many of them there may be.
const VERBS: [&str; 14] = [
    "at",
    "going",
    "into",
    "start",
    "starting",
    "started",
    "begin",
    "beginning",
    "entering",
    "running",
    "training",
    "train",
    "of",
    "new",
];
const MAX_VERBS: usize = 3;

impl Heading {
    /// The epoch, if `line` has no other counters than it and its total.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let is_frame =
            |c: char| c.is_ascii_punctuation() || c == ' ' || ('\u{2500}'..'\u{2600}').contains(&c);
        let line = without_number(line.trim_start_matches(is_frame)).trim_start_matches(is_frame);
        // The level of a message over several lines, as loggers of Julia write it: `┌ Info: Epoch 3`.
        let line = line.strip_prefix("Info: ").unwrap_or(line);
        let [first, second, ..] = line.as_bytes() else { return None };
        // The first letters of "epoch" and of the verbs.
        let begins = matches!(
            &[first | 0x20, second | 0x20],
            b"ep" | b"st" | b"be" | b"en" | b"ru" | b"tr" | b"of" | b"ne" | b"go"
        );
        if !begins {
            return None;
        }
        let whole = line;
        let line = after_verbs(line);
        let begins = line.len() < whole.len();
        let (word, rest) = line.split_at_checked(5).filter(|_| line.len() <= MAX_LEN)?;
        if !word.eq_ignore_ascii_case("epoch") {
            return None;
        }
        let rest = rest.trim_start_matches([' ', ':', '#', '[', '(', '=']);
        let rest = NUMBER.iter().find_map(|word| rest.strip_prefix(*word)).unwrap_or(rest);
        let (epoch, rest) = scan::count(rest)?;
        let rest = rest.trim_start();
        let of = ["/", "of ", "(total "].iter().find_map(|of| rest.strip_prefix(of));
        let of = of.map(str::trim_start);
        let (epochs, rest) = match of.and_then(scan::count) {
            Some((epochs, rest)) => (Some(epochs), rest),
            None => (None, rest),
        };
        // `Epoch 1 (1/32)`: of this run, after those of an earlier one.
        let (epochs, rest) = match of_this_run(rest) {
            // After an earlier run the number of all epochs is not known.
            Some((first, all, rest)) if epochs.is_none() => {
                (Some(all).filter(|_| first == epoch), rest)
            }
            _ => (epochs, rest),
        };
        let rest = without_clock(without_percentage(rest));
        // What a callback says, in old versions of Keras of the epoch before.
        let is_said = epochs.is_none() && rest.starts_with(':');
        if is_said && CALLBACKS.iter().any(|word| rest.contains(word)) {
            return None;
        }
        let more = rest.bytes().any(|byte| byte.is_ascii_digit() || byte == b'|');
        let noted = || {
            let rest = rest.to_ascii_lowercase();
            NOTES.iter().any(|note| rest.contains(note)) && !rest.contains("step")
        };
        let epoch = u32::try_from(epoch).ok().map(f64::from)?;
        // `Training epoch 3: 0.1 0.01` begins it, whatever the numbers are.
        let described = || begins && rest.starts_with([':', ',']) && !has_counter(rest);
        let length = if begins && more { length(rest) } else { None };
        (!more || noted() || described()).then_some(Self { epoch, epochs, length })
    }

    /// Gives a line of the training without a total the number of batches of its epoch, if its step may be one.
    pub(super) fn give_length(&self, found: &mut Observation) {
        let may_be = |length: &u64| found.step.is_some_and(|step| step <= *length);
        let trains = found.losses.iter().any(|loss| loss.phase == Phase::Train);
        if trains
            && found.total_steps.is_none()
            && let Some(length) = self.length.filter(may_be)
        {
            (found.total_steps, found.step_in_epoch) = (Some(length), true);
        }
    }

    /// Takes over the epoch of a line of the training below the heading, where lines count from 0 and
    /// headings from 1.
    pub(super) fn count_as(&mut self, found: &Observation) {
        let trains = found.losses.iter().any(|loss| loss.phase == Phase::Train);
        if let Some(epoch) = found.epoch.filter(|_| trains)
            && self.epoch.total_cmp(&(epoch + 1.0)).is_eq()
        {
            self.epoch = epoch;
        }
    }
}

/// The epoch and the number of epochs in the brackets behind an epoch, `(1/32)`, and the text after them.
fn of_this_run(text: &str) -> Option<(u64, u64, &str)> {
    let (epoch, rest) = scan::count(text.strip_prefix('(')?)?;
    let (epochs, rest) = scan::count(rest.strip_prefix('/')?)?;
    Some((epoch, epochs, rest.strip_prefix(')')?))
}

/// The number of batches behind the epoch, at the end of its heading: `, Total Micro Batches 400`.
fn length(text: &str) -> Option<u64> {
    let name = text.trim_end().trim_end_matches(|c: char| c.is_ascii_digit());
    let (count, _) = scan::count(text.trim_end().get(name.len()..)?)?;
    let last = name.trim_end_matches([' ', ':', '=']).rsplit(' ').next()?;
    (count > 0 && last.eq_ignore_ascii_case("batches")).then_some(count)
}

/// Whether a text has another counter, or parts as a report has.
fn has_counter(text: &str) -> bool {
    let is_counter = |word: &str| COUNTERS.iter().any(|known| word.eq_ignore_ascii_case(known));
    text.contains('|') || text.split(|c: char| !c.is_ascii_alphabetic()).any(is_counter)
}

/// Words for counters other than the epoch.
const COUNTERS: [&str; 6] = ["step", "steps", "iter", "iters", "iteration", "batch"];

/// The text after a number within the marks before a heading: `#0## Epoch 1`.
fn without_number(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.starts_with('#') { rest } else { text }
}

/// The text after the part that is done: `[20%]`.
fn without_percentage(text: &str) -> &str {
    let inside = text.trim_start().strip_prefix(['[', '(']);
    let after = inside.and_then(|inside| scan::number(inside.trim_start()));
    let after = after.and_then(|(_, rest)| rest.strip_prefix('%'));
    after.and_then(|rest| rest.strip_prefix([']', ')'])).unwrap_or(text)
}

/// The text before a time of day at its end: ` [10:00:00]`.
fn without_clock(text: &str) -> &str {
    let end = text.trim_end().trim_end_matches([']', ')']);
    let clock = end.rsplit([' ', '[', '(']).next().unwrap_or_default();
    let digits = clock.bytes().filter(u8::is_ascii_digit).count();
    let is_clock = clock.len() == "10:00:00".len()
        && digits == 6
        && clock.split(':').all(|part| part.len() == 2);
    let before = if is_clock { end.get(..end.len() - clock.len()) } else { None };
    before.map_or(text, |before| before.trim_end_matches(['[', '(', ' ']))
}

/// The text after words such as those of `Start of epoch 3`.
fn after_verbs(line: &str) -> &str {
    let mut rest = line;
    for _ in 0..MAX_VERBS {
        let Some((word, after)) = rest.split_once(' ') else { break };
        if !VERBS.iter().any(|verb| word.eq_ignore_ascii_case(verb)) {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heading_contains_only_the_epoch() {
        for (line, epoch, epochs) in [
            ("Epoch 3/10", 3.0, Some(10)),
            ("Epoch 0", 0.0, None),
            ("epoch: 7", 7.0, None),
            ("EPOCH [2 / 5]", 2.0, Some(5)),
            ("EPOCH 2 / 5  [10:00:00]", 2.0, Some(5)),
            ("===== Epoch 4 of 9 =====", 4.0, Some(9)),
            ("Epoch 1 begins", 1.0, None),
            ("Epoch number 1", 1.0, None),
            ("Epoch: 02 | Epoch Time: 0m 9s", 2.0, None),
            ("Epoch 2 of 30 took 1.5s", 2.0, Some(30)),
            ("│   epoch = 4", 4.0, None),
            ("Start of epoch 6", 6.0, None),
            ("Going into epoch 8", 8.0, None),
            ("┌ Info: Epoch 5", 5.0, None),
            ("Train Epoch: 9 [20%]", 9.0, None),
            ("--- Training epoch 2/5 ---", 2.0, Some(5)),
            ("Training epoch 2: 0.1 0.01", 2.0, None),
            ("Training at epoch 2 (total 4) with lr 0.01", 2.0, Some(4)),
            ("#0## START epoch 3 ######", 3.0, None),
            ("Epoch 1/3 (no improvement)", 1.0, Some(3)),
        ] {
            let length = None;
            assert_eq!(Heading::parse(line), Some(Heading { epoch, epochs, length }), "{line}");
        }
        for line in [
            "Epoch",
            "Epoch x",
            "Epoch 1: 0.5",
            "Training epoch 1: step 5",
            "Training epoch 1: 5 | 0.5",
            "Epochs 5",
            "Epoch 1 | loss",
            "step 3",
            "Epoch 1 step 5 time 3s",
            "End of epoch 3",
            "best of epoch 3",
            "0 Epoch 3",
            "Epoch 00002: val_loss did not improve",
            "Epoch 00007: early stopping",
        ] {
            assert_eq!(Heading::parse(line), None, "{line}");
        }
    }
    #[test]
    fn heading_may_have_the_number_of_batches() {
        for (line, length) in [
            ("Beginning of Epoch 1/2, Total Small Batches 80", Some(80)),
            ("Starting epoch 1: batches = 80", Some(80)),
            ("Starting epoch 1: seed 80", None),
            ("Starting epoch 1, batches 0", None),
        ] {
            assert_eq!(Heading::parse(line).and_then(|heading| heading.length), length, "{line}");
        }
    }
}

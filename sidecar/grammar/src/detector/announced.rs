//! Lines that announce the number of epochs or steps before the training begins.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use paceline_lines::names::{Meaning, meaning};
use paceline_lines::observation::Observation;
use paceline_lines::scan;

/// Maximum number of words in a key.
const WORDS: usize = 3;
/// Possible endings of the last word.
const ENDS: [&str; 9] =
    ["epochs", "epoch", "steps", "step", "iters", "iterations", "update", "updates", "total"];
/// Names of the number of steps, only in lines before the training. Later, `total updates` may be a counter.
const STEPS: [&str; 6] = [
    "max step",
    "number of iterations",
    "number of steps",
    "number of training steps",
    "number of updates",
    "total updates",
];
/// Words behind the number of steps: `9,000 max iterations`.
const BEHIND: [&str; 2] = [" max iterations", " max steps"];
/// Names of the number of samples in a batch. Others are those of one device or of an evaluation.
const SIZES: [&str; 4] = ["batch size", "batch_size", "train batch size", "train_batch_size"];
/// Words directly before a total, as torchtitan prints it.
const PLAIN: &str = "total steps ";
static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(PLAIN));
/// The start of [`BEHIND`].
static MAX: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" max "));

/// Reads `num_epochs: 3`, `Total optimization steps = 24`, `Namespace(lr=0.1, epochs=14)`: any key
/// of a total before a colon or an equals sign. Writes the total into `found` and returns whether
/// there is one.
pub(super) fn read(line: &str, found: &mut Observation) -> bool {
    let mut any = false;
    for at in memchr::memchr2_iter(b':', b'=', line.as_bytes()) {
        let Some((before, after)) = line.split_at_checked(at) else { continue };
        if let Some(size) = is_size(before).then(|| after.get(1..).and_then(value)).flatten() {
            found.batch_size = Some(size);
            any = true;
            continue;
        }
        let Some(key) = key(before) else { continue };
        let Some(value) = after.get(1..).and_then(value) else { continue };
        if matches!(key, Meaning::TotalSteps) {
            found.total_steps = Some(value);
        } else {
            found.total_epochs = Some(value);
        }
        any = true;
    }
    if let Some(at) = FINDER.find(line.as_bytes())
        && let Some(steps) = line.get(at + PLAIN.len()..).and_then(value)
    {
        found.total_steps = Some(steps);
        any = true;
    }
    if MAX.find(line.as_bytes()).is_some()
        && let Some(steps) = BEHIND.iter().find_map(|words| before_words(line, words))
    {
        found.total_steps = Some(steps);
        any = true;
    }
    any
}

/// Whether the words at the end of `text` are those of the number of samples in a batch.
fn is_size(text: &str) -> bool {
    let text = text.trim_end_matches(['"', '\'', ' ']);
    if !text.as_bytes().last().is_some_and(|last| b"eE".contains(last)) {
        return false;
    }
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ' | '-');
    let start = text.rfind(|c: char| !is_of_name(c)).map_or(0, |at| at + 1);
    let name = text.get(start..).unwrap_or_default().trim_start_matches([' ', '-']);
    SIZES.iter().any(|size| name.eq_ignore_ascii_case(size))
}

/// The count directly before `words`, if they end their part of the line.
fn before_words(line: &str, words: &str) -> Option<u64> {
    let (before, after) = line.split_once(words)?;
    let start = before.rfind(|c: char| !c.is_ascii_digit() && c != ',').map_or(0, |at| at + 1);
    let is_start = before.get(..start)?.chars().next_back().is_none_or(|c| c == ' ');
    let ends = after.is_empty() || after.starts_with(['.', ',', ';', ')']);
    // `of up to 5 max steps each` is another plan.
    let (count, rest) = scan::count(before.get(start..)?)?;
    (count > 0 && is_start && ends && rest.is_empty()).then_some(count)
}

/// The meaning of the words at the end of `text`, if they name a total.
fn key(text: &str) -> Option<Meaning> {
    let is_quote = |c: char| matches!(c, '"' | '\'' | ' ');
    let text = text.trim_end_matches(is_quote);
    // The last letters of `ENDS`.
    if !text.as_bytes().last().is_some_and(|last| b"shelpSHELP".contains(last)) {
        return None;
    }
    let is_end = ENDS.iter().any(|end| {
        let from = text.len().checked_sub(end.len());
        from.and_then(|from| text.get(from..)).is_some_and(|last| last.eq_ignore_ascii_case(end))
    });
    if !is_end {
        return None;
    }
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b' ');
    let length = text.bytes().rev().take_while(|byte| is_word(byte)).count();
    let run = text.get(text.len() - length..)?.trim_start();
    if run.eq_ignore_ascii_case("epochs") {
        return Some(Meaning::TotalEpochs);
    }
    let starts = || run.rmatch_indices(' ').map(|(at, _)| at + 1).chain([0]);
    let is_steps = |name: &str| STEPS.iter().any(|known| is_same(name, known));
    if starts().any(|at| run.get(at..).is_some_and(is_steps)) {
        return Some(Meaning::TotalSteps);
    }
    let is_total = |of: &Meaning| matches!(of, Meaning::TotalSteps | Meaning::TotalEpochs);
    starts().take(WORDS).find_map(|at| meaning(run.get(at..)?).filter(is_total))
}

/// Whether a name has the words of `known`, with spaces or underscores between them.
fn is_same(name: &str, known: &str) -> bool {
    let alike = |(byte, known): (u8, u8)| {
        byte.eq_ignore_ascii_case(&known) || (byte == b'_' && known == b' ')
    };
    name.len() == known.len() && name.bytes().zip(known.bytes()).all(alike)
}

/// The count at the start of `text`.
fn value(text: &str) -> Option<u64> {
    let text = text.trim_start_matches(['"', '\'', ' ']);
    let (count, rest) = scan::count(text)?;
    (count > 0 && scan::ends_before(rest)).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_in_any_surroundings() {
        for (line, epochs, steps) in [
            ("epochs: 10", Some(10), None),
            ("Namespace(batch_size=64, epochs=14, lr=1.0)", Some(14), None),
            ("  Num Epochs = 3", Some(3), None),
            ("  \"num_train_epochs\": 5,", Some(5), None),
            ("--epochs=7", Some(7), None),
            ("  Total optimization steps = 1,200", None, Some(1200)),
            ("Overriding: max_iters = 2000", None, Some(2000)),
            ("Namespace(max_epoch=3, max_update=900)", Some(3), Some(900)),
            ("Trainer: batch size 8, total steps 40 (warmup 5)", None, Some(40)),
            ("{'max_steps': 100, 'max_epochs': 2}", Some(2), Some(100)),
            ("Number of iterations: 700", None, Some(700)),
            ("warmup=5, Total updates=8100", None, Some(8100)),
            ("max_step : 70000", None, Some(70000)),
            ("9 iterations per epoch. 1,800 max iterations", None, Some(1800)),
        ] {
            let mut found = Observation::default();
            assert!(read(line, &mut found), "{line}");
            assert_eq!((found.total_epochs, found.total_steps), (epochs, steps), "{line}");
        }
    }

    #[test]
    fn size_of_a_batch_is_read() {
        for (line, size) in [
            ("    Batch size:      6", Some(6)),
            ("Namespace(batch_size=64, lr=1.0)", Some(64)),
            ("  --batch_size=8", Some(8)),
            ("\"train_batch_size\": 16,", Some(16)),
            ("eval_batch_size=8", None),
            ("Instantaneous batch size per device = 8", None),
            ("batch size: small", None),
        ] {
            let mut found = Observation::default();
            read(line, &mut found);
            assert_eq!(found.batch_size, size, "{line}");
        }
    }

    #[test]
    fn other_numbers_are_not_totals() {
        for line in [
            "warmup epochs: 5",
            "warmup_epochs=5",
            "eval_steps=500",
            "logging steps = 10",
            "max_steps=-1",
            "epochs: 0",
            "epochs: 1.5",
            "epochs: many",
            "epoch: 3",
            "max_epoch=0",
            "total steps are many",
            "number of iterations per epoch: 70",
            "decay_max_step: 500",
            "step: 5",
            "5.5 max iterations",
            "5 max iterations per epoch",
            "Epochs",
            "=",
            ":é=",
        ] {
            assert!(!read(line, &mut Observation::default()), "{line}");
        }
    }
}

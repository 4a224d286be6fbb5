//! Lines that may be the heading of a report over several lines.

/// Maximum length of a heading in bytes.
const MAX_HEADING: usize = 200;
/// The first words of headings.
const HEADINGS: [&str; 16] = [
    "step",
    "iter",
    "iteration",
    "batch",
    "global",
    "globalstep",
    "epoch",
    "learning",
    "time",
    "train",
    "training",
    "eval",
    "evaluation",
    "validation",
    "val",
    "test",
];
/// Other counters, if what they count is done: `Batches seen: 5`. Elsewhere they are those of a plan.
const PLURALS: [&str; 4] = ["steps", "iters", "iterations", "batches"];
const DONE: [&str; 4] = ["seen", "done", "completed", "processed"];
/// Words before a counter: `Finished iteration 5`.
const LEADS: [&str; 10] = [
    "at",
    "completed",
    "current",
    "done",
    "finished",
    "now",
    "processed",
    "processing",
    "progress",
    "status",
];
/// How many words may come before that of a counter.
const MAX_LEADS: usize = 2;

/// Whether a line may be the heading of a block: it begins with the name of a counter.
pub(super) fn may_open(text: &str) -> bool {
    let mut rest = text;
    for _ in 0..=MAX_LEADS {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        let [first, second, ..] = rest.as_bytes() else { return false };
        // The first letters of `HEADINGS` and of `LEADS`.
        let begins = matches!(
            &[first | 0x20, second | 0x20],
            b"st"
                | b"it"
                | b"ba"
                | b"gl"
                | b"ep"
                | b"ti"
                | b"tr"
                | b"ev"
                | b"va"
                | b"te"
                | b"le"
                | b"pr"
                | b"fi"
                | b"co"
                | b"cu"
                | b"do"
                | b"at"
                | b"no"
                | b"ro"
        );
        if !begins || text.len() > MAX_HEADING {
            return false;
        }
        let length = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (word, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        let is_one = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
        if is_one(&HEADINGS) {
            return is_whole(word, after);
        }
        if is_one(&PLURALS) {
            return is_done(after);
        }
        if is_one(&["round"]) {
            // The round of a federation is above the step: `Round 1 Epoch: 2 | Iteration: 10/40`.
            let number = |c: char| c == ' ' || c == ':' || c.is_ascii_digit();
            rest = after.trim_start_matches(number);
            continue;
        }
        if !is_one(&LEADS) {
            return false;
        }
        rest = after;
    }
    false
}

/// Whether a name ends with its first word. `batch_size: 5` and `training_iteration: 5` are values.
fn is_whole(word: &str, after: &str) -> bool {
    !after.starts_with(['_', '-']) || word.eq_ignore_ascii_case("global")
}

/// Whether the next word says that what the last one counts is done.
fn is_done(after: &str) -> bool {
    let next = after.trim_start_matches(['_', ' ']);
    let length = next.bytes().take_while(u8::is_ascii_alphabetic).count();
    let word = next.get(..length).unwrap_or_default();
    DONE.iter().any(|done| word.eq_ignore_ascii_case(done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_begin_with_a_counter() {
        for line in [
            "Step 5:",
            "[batch=1/9]:",
            "--> TIME: 10:00 -- STEP: 5",
            "global_step: 5",
            "Finished iteration 5 of epoch 1",
            "progress  epoch 1  step 50",
            "Current step: 5",
            "batches_seen: 5",
            "Steps done: 5",
            "Now at iteration 5",
            "Round 1 Epoch: 2 | Iteration: 5/40",
        ] {
            assert!(may_open(line), "{line}");
        }
        for line in [
            "batch_size: 5",
            "training_iteration: 5",
            "saved at step 5",
            "Progress: 5",
            "Iterations: 5",
            "batches_per_epoch: 5",
            "current progress status done step 5",
            "Finished",
            "Round 5",
            "",
        ] {
            assert!(!may_open(line), "{line}");
        }
    }
}

//! Lists of words that tell what a number beside them is.

/// Whether the last part of a name is a word for a score: `acc`, `top-1`, `val_acc@5`.
pub(super) fn is_score(name: &str) -> bool {
    let last = name.split(|c: char| !c.is_alphabetic()).rfind(|part| !part.is_empty());
    last.is_some_and(|word| is_one(word, &SCORES))
}

/// Whether `name` is that of an epoch or of a step.
pub(super) fn counts_training(name: &str) -> bool {
    is_one(name, &COUNTERS)
}

/// Names of what a training consists of.
const COUNTERS: [&str; 9] =
    ["epoch", "ep", "step", "iter", "iteration", "batch", "minibatch", "mini-batch", "update"];

/// Words after a counter that say that it is over.
pub(super) const ENDS: [&str; 5] = ["done", "finished", "completed", "complete", "ended"];

/// Whether `word` and its point end a sentence before `rest`: `Training stats. Loss: 0.5`. After other words, the point
/// may be that of an abbreviation. `evaluates`: the sentence is about an evaluation, which has a loss at its end. That
/// of a training is an earlier one.
pub(super) fn ends_sentence(word: &str, rest: &str, evaluates: bool) -> bool {
    let is_next = matches!(rest.as_bytes(), [b' ', b'A'..=b'Z', ..]);
    let word = word.trim_end_matches('.');
    let is_end = || evaluates && (is_one(word, &ENDS) || is_one(word, &["results", "summary"]));
    is_next && (is_one(word, &REPORTS) || is_end())
}

/// Words for values of the current step.
const REPORTS: [&str; 4] = ["metrics", "report", "statistics", "stats"];

/// Words for parts of a network or of a loss, of which there may be several.
pub(super) const NUMBERED: [&str; 13] = [
    "aux",
    "auxiliary",
    "branch",
    "content",
    "decoder",
    "encoder",
    "feature",
    "head",
    "layer",
    "level",
    "output",
    "scale",
    "style",
];

/// Words for a score.
const SCORES: [&str; 9] =
    ["acc", "accuracy", "prec", "precision", "top", "err", "error", "correct", "recall"];

pub(super) fn is_one(word: &str, list: &[&str]) -> bool {
    list.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Whether `word` is a type of numbers or of arrays, by its last part: `np.float32`.
pub(super) fn is_number_type(word: &str) -> bool {
    let name = word.rsplit('.').next().unwrap_or_default();
    NUMBER_TYPES.contains(&name)
}

/// Names of types that a number is printed with.
const NUMBER_TYPES: [&str; 9] =
    ["tensor", "Tensor", "Array", "DeviceArray", "array", "float16", "float32", "float64", "param"];

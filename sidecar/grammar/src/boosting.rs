//! Boosted trees: `XGBoost`, `LightGBM` and `CatBoost`. A round counts as a step.

use paceline_lines::observation::{Loss, Observation, Phase, Span};
use paceline_lines::scan;
use paceline_lines::terminal::End;

use super::draft::Draft;
use super::{Grammar, Reading};

/// The grammars of this family.
pub(super) fn grammars() -> Vec<Box<dyn Grammar>> {
    vec![Box::new(XgBoost), Box::new(LightGbm), Box::new(CatBoost)]
}

/// `[0]⇥train-logloss:0.6⇥eval-logloss:0.5`.
#[derive(Debug)]
struct XgBoost;

/// `[10]⇥training's l2: 0.1⇥valid_0's l2: 0.2`, and from R `[10]:  train's l2:0.1  test's l2:0.2`, also as `print`
/// quotes it: `[1] "[10]:  train's l2:0.1"`.
#[derive(Debug)]
struct LightGbm;

/// `100:⇥learn: 0.25⇥test: 0.5⇥best: 0.5 (90)⇥total: 1.5s⇥remaining: 9s`. The times are those of the run. In old
/// versions: `100:⇥learn 0.25⇥test 0.5⇥bestTest 0.5⇥passed: 0.1 sec⇥total: 1.5s`, with the time of the iteration.
#[derive(Debug)]
struct CatBoost;

impl Grammar for CatBoost {
    fn name(&self) -> &'static str {
        "catboost"
    }

    fn starts(&self, byte: u8) -> bool {
        byte.is_ascii_digit()
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let Some((step, rest)) = scan::count(line) else { return Reading::Foreign };
        let Some(rest) = rest.strip_prefix(":\tlearn: ") else {
            let found = rest.strip_prefix(':').and_then(|rest| before_1(step, rest, draft));
            return if found.is_some() { Reading::Says } else { Reading::Foreign };
        };
        let mut fields = rest.split('\t');
        let learn = fields.next().and_then(scan::whole);
        // There may be several sets of held-out data: `test0`.
        let test = fields.find_map(|field| field.strip_prefix("test")?.split_once(": "));
        draft.found.step = Some(step);
        if let Some(value) = learn {
            draft.push("learn", Phase::Train, Span::Step, value);
        }
        if let Some(value) = test.and_then(|(_, value)| scan::whole(value)) {
            draft.push("test", Phase::Validation, Span::Epoch, value);
        }
        if draft.found.losses.is_empty() {
            draft.clear();
            return Reading::Foreign;
        }
        Reading::Says
    }
}

/// Reads the rest of a line as `CatBoost` printed it before version 1: `learn 0.25⇥passed: 0.1 sec`. Gaps of spaces may
/// stand for tabs.
fn before_1(step: u64, rest: &str, draft: &mut Draft) -> Option<()> {
    let value = |text: &str| {
        let text = text.trim_start();
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let word = text.get(..end)?;
        scan::whole(word).or_else(|| scan::run_into(word))
    };
    let fields = rest.trim_start().strip_prefix("learn ")?;
    let (losses, passed) = fields.split_once("passed: ")?;
    let learn = value(fields)?;
    let (seconds, unit) = scan::number(passed)?;
    let test = losses.split_once("\ttest ").or_else(|| losses.split_once(" test "));
    draft.found.step = Some(step);
    draft.push("learn", Phase::Train, Span::Step, learn);
    if let Some(test) = test.and_then(|(_, rest)| value(rest)) {
        draft.push("test", Phase::Validation, Span::Epoch, test);
    }
    let unit = unit.trim_start().split([' ', '\t']).next();
    let seconds = match unit {
        Some("sec" | "s") => Some(seconds),
        Some("ms") => Some(seconds / 1e3),
        _ => None,
    };
    draft.found.batch_seconds = seconds.filter(|seconds| *seconds > 0.0);
    Some(())
}

/// Metrics beside a loss: scores, which are better when larger, and the rates of wrong answers.
const SCORES: [&str; 21] = [
    "auc",
    "aucpr",
    "ndcg",
    "map",
    "pre",
    "accuracy",
    "average_precision",
    "auc_mu",
    "f1",
    "r2",
    "interval-regression-accuracy",
    "precision",
    "recall",
    "acc",
    "gini",
    "cindex",
    "score",
    "error",
    "merror",
    "binary_error",
    "multi_error",
];

impl Grammar for XgBoost {
    fn name(&self) -> &'static str {
        "xgboost"
    }

    fn starts(&self, byte: u8) -> bool {
        byte == b'['
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let fields = |field| {
            let (name, value): (&str, &str) = str::rsplit_once(field, ':')?;
            let (data, metric) = name.split_once('-')?;
            // Cross validation appends the standard deviation to the mean.
            let value = value.split('+').next().unwrap_or_default();
            Some((name, data, metric, scan::whole(value)?))
        };
        Reading::from_found(round(line, fields), draft, Reading::Foreign)
    }
}

impl Grammar for LightGbm {
    fn name(&self) -> &'static str {
        "lightgbm"
    }

    fn starts(&self, byte: u8) -> bool {
        byte == b'['
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let fields = |field| {
            let (name, value): (&str, &str) = str::rsplit_once(field, ':')?;
            let (data, metric) = name.split_once("'s ")?;
            let value = value.split('+').next().unwrap_or_default();
            Some((name, data, metric, scan::whole(value.trim_start())?))
        };
        let quoted = line.strip_prefix("[1] \"").and_then(|inside| inside.strip_suffix('"'));
        let line = quoted.unwrap_or(line);
        Reading::from_found(round(line, fields), draft, Reading::Foreign)
    }
}

/// Reads the line of a round. `fields` splits a field into its name, the data, the metric and the
/// value.
fn round<'a>(
    line: &'a str,
    fields: impl Fn(&'a str) -> Option<(&'a str, &'a str, &'a str, f64)>,
) -> Option<Observation> {
    let (step, rest) = scan::count(line.strip_prefix('[')?)?;
    let rest = rest.strip_prefix(']')?;
    // In R, gaps part the fields, and where a copy has blanks for tabs.
    let of_r = rest.strip_prefix(":  ").filter(|rest| rest.contains("'s "));
    let with_gaps = of_r.or_else(|| rest.strip_prefix("  "));
    let (rest, gap) = with_gaps.map_or((rest.strip_prefix('\t'), "\t"), |rest| (Some(rest), "  "));
    let is_copy = gap != "\t" && of_r.is_none();
    let mut losses = Vec::new();
    // Libraries print a handful of metrics; further ones are ignored.
    let fields_of_line = rest?.split(gap).filter(|field| !field.trim_matches(' ').is_empty());
    for field in fields_of_line.take(16) {
        let (name, data, metric, value) = fields(field.trim_matches(' '))?;
        // With blanks, lines of other programs are alike.
        if is_copy && !name.contains("'s ") && !DATA.iter().any(|known| data.contains(known)) {
            return None;
        }
        let metric = metric.split('@').next().unwrap_or_default();
        if SCORES.contains(&metric) {
            continue;
        }
        let phase = phase(data);
        let span = if phase == Phase::Train { Span::Step } else { Span::Epoch };
        losses.push(Loss { name: name.to_owned(), phase, span, value });
    }
    losses.sort_by_key(|loss| loss.phase);
    let observation = Observation { step: Some(step), losses, ..Observation::default() };
    (!observation.losses.is_empty()).then_some(observation)
}

/// Parts of the names of data.
const DATA: [&str; 5] = ["train", "learn", "val", "test", "dev"];

fn phase(data: &str) -> Phase {
    if data.starts_with("train") || data == "learn" || data == "dtrain" {
        Phase::Train
    } else if data.contains("test") {
        Phase::Test
    } else {
        Phase::Validation
    }
}

#[cfg(test)]
mod tests;

//! The dicts that the Hugging Face trainer prints, and those of other Python programs.

use paceline_lines::bytes;
use paceline_lines::observation::{Loss, Phase, Span};
use paceline_lines::scan;
use paceline_lines::terminal::End;

use super::dict::{Dicts, Take, Value};
use super::draft::Draft;
use super::keys::{Field, is_beside, main_loss_first, put, put_beside, put_text};
use super::{Grammar, Reading};

/// `{'loss': 0.5, 'grad_norm': …, 'learning_rate': …, 'epoch': …}`. The step is only in the bar.
#[derive(Debug, Default)]
pub(super) struct HuggingFace {
    dicts: Dicts,
    /// Whether the dicts so far have had the trainer's own keys.
    trainer: bool,
    evaluated: bool,
}

impl Grammar for HuggingFace {
    fn name(&self) -> &'static str {
        if self.trainer { "hugging face" } else { "python dict" }
    }

    fn has_mark(&self) -> bool {
        true
    }

    fn is_of_dicts(&self) -> bool {
        true
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        // If bars and dicts share a stream, a dict may follow a bar on one line.
        // A JSON object with a dict in it is the envelope of a log collector.
        if line.starts_with("{\"") {
            return Reading::Foreign;
        }
        if !line.starts_with('{') && !bytes::contains(line.as_bytes(), b'{') {
            return Reading::Foreign;
        }
        let mut starts = memchr::memchr_iter(b'{', line.as_bytes());
        let text = starts.find_map(|at| line.get(at..).filter(|text| text.starts_with("{'")));
        let Some(text) = text else { return Reading::Foreign };
        let Some(ended) = self.dict(text, draft) else {
            draft.clear();
            let before = line.get(..line.len() - text.len()).unwrap_or_default();
            return if parts(before, text, draft) { Reading::Says } else { Reading::Foreign };
        };
        let waits = self.trainer && !ended && draft.found.step.is_none();
        if waits { Reading::SaysBeforeBar } else { Reading::Says }
    }
}

/// Reads a dict of parts after the word for a loss: `losses={'total': 0.75, 'box': 0.25}`.
fn parts(before: &str, text: &str, draft: &mut Draft) -> bool {
    let name = before.trim_end_matches([' ', ':', '=']);
    let start = name.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    let word = name.get(start..).unwrap_or_default();
    // `Losses {'ner': 0.5}` alone is that of spaCy.
    let is_alone = start == 0 && word.eq_ignore_ascii_case("losses");
    if is_alone
        || !["loss", "losses", "train_loss", "loss_dict"]
            .iter()
            .any(|n| word.eq_ignore_ascii_case(n))
    {
        return false;
    }
    let inside = text.trim_start_matches('{').split('}').next().unwrap_or_default();
    for entry in scan::listed(inside).take(MAX_PARTS) {
        if let Some((part, value)) = entry.split_once("':")
            && let Some(value) = scan::whole(value)
        {
            let part = part.trim_start_matches('\'');
            draft.push(&format!("loss/{part}"), Phase::Train, Span::Step, value);
        }
    }
    main_loss_first(&mut draft.found.losses);
    !draft.found.losses.is_empty()
}

/// Maximum number of parts of a loss.
const MAX_PARTS: usize = 16;

impl HuggingFace {
    /// Reads a dict. Returns whether the training has ended with it; `None` if it has no loss.
    fn dict(&mut self, text: &str, draft: &mut Draft) -> Option<bool> {
        let mut entries = Entries { draft, trainer: false, rate: None, ended: false, ranks: false };
        self.dicts.walk(text, &mut entries)?;
        let Entries { trainer, rate, ended, ranks, .. } = entries;
        draft.settle_time();
        draft.settle_counters();
        draft.settle_data();
        let found = &mut draft.found;
        if found.losses.is_empty() {
            return None;
        }
        // With the numbers of read tokens, each report has the time since the start.
        let ended = ended && found.losses.iter().all(|loss| loss.name != "loss");
        // Beside a score of a ranking and without a counter, `logloss` is a result on held-out data.
        let is_counted = found.step.is_some() || found.epoch.is_some();
        if ranks && !is_counted && !found.losses.iter().any(is_of_training) {
            let (phase, span) = (Phase::Validation, Span::Epoch);
            found.losses.iter_mut().for_each(|loss| (loss.phase, loss.span) = (phase, span));
        }
        self.trainer |= trainer || ended;
        if ended {
            let of_training = |loss: &&mut Loss| loss.phase == Phase::Train;
            found.losses.iter_mut().filter(of_training).for_each(|loss| loss.span = Span::Run);
            // The rate includes the time of evaluations.
            let rate = rate.filter(|rate| *rate > 0.0 && !self.evaluated);
            found.batch_seconds = rate.map(|rate| 1.0 / rate);
        } else if self.trainer {
            self.evaluated |= found.losses.iter().any(|loss| loss.phase != Phase::Train);
            self.dicts.keys().widen(&mut found.losses, Span::Interval);
        }
        main_loss_first(&mut found.losses);
        Some(ended)
    }
}

/// Whether a loss has the plain name, that of the training, or data of its own.
fn is_of_training(loss: &Loss) -> bool {
    let name = loss.name.as_str();
    let is_plain = ["loss", "total_loss"].iter().any(|plain| name.eq_ignore_ascii_case(plain));
    is_plain || name.to_ascii_lowercase().contains("train") || loss.phase != Phase::Train
}

struct Entries<'h> {
    draft: &'h mut Draft,
    trainer: bool,
    rate: Option<f64>,
    ended: bool,
    /// It has a score of a ranking.
    ranks: bool,
}

/// Scores of a ranking, which are computed on held-out data: names, and the starts of names with a number.
const RANKINGS: [&str; 5] = ["auc", "gauc", "mrr", "mean_mrr", "map"];
const RANKINGS_AT: [&str; 4] = ["ndcg@", "hit@", "recall@", "mrr@"];

/// Whether a key is that of a score of a ranking.
fn ranks(key: &str) -> bool {
    RANKINGS.contains(&key) || RANKINGS_AT.iter().any(|start| key.starts_with(start))
}

const OF_TRAINER: [&str; 3] = ["learning_rate", "grad_norm", "eval_runtime"];

impl<'a> Take<'a> for Entries<'_> {
    fn wants(&self, key: &str) -> bool {
        let of_run = ["train_runtime", "train_steps_per_second"];
        OF_TRAINER.contains(&key) || of_run.contains(&key) || is_beside(key) || ranks(key)
    }

    fn take(&mut self, field: Field, key: &str, value: Value<'a>) {
        let number = match value {
            Value::Number(number) => number,
            Value::Text(text) => return put_text(field, text, self.draft),
            Value::Word(word) => {
                if let Field::Flag(_) = field {
                    put_text(field, word, self.draft);
                }
                return;
            }
            Value::List(_) | Value::Other => return,
        };
        if field != Field::Other {
            put(field, key, number, self.draft);
        } else if put_beside(key, number, self.draft) {
        } else if ranks(key) {
            self.ranks = true;
        } else if key == "train_steps_per_second" {
            self.rate = Some(number);
        } else if key == "train_runtime" {
            self.ended = true;
        } else {
            self.trainer |= OF_TRAINER.contains(&key);
        }
    }

    fn clear(&mut self) {
        self.draft.clear();
        (self.trainer, self.rate, self.ended, self.ranks) = (false, None, false, false);
    }
}

#[cfg(test)]
mod tests;

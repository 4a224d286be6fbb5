//! JSON lines.

use paceline_lines::observation::{Phase, Span};
use paceline_lines::terminal::{End, stamp};
use paceline_lines::{bytes, names, scan};

use super::dict::{Dicts, Take, Value};
use super::draft::Draft;
use super::keys::{Field, is_beside, main_loss_first, put, put_beside, put_text};
use super::{Grammar, Reading};

/// One object on a line, with or without text before it.
#[derive(Debug, Default)]
pub(super) struct Json {
    dicts: Dicts,
}

impl Grammar for Json {
    fn name(&self) -> &'static str {
        "json lines"
    }

    fn has_mark(&self) -> bool {
        true
    }

    fn is_of_dicts(&self) -> bool {
        true
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        let first = bytes::find(line.as_bytes(), b'{');
        let text = first.and_then(|at| line.get(at..)).filter(|text| text.starts_with("{\""));
        let Some(text) = text else { return Reading::Foreign };
        let reading = self.object(text, draft);
        if reading != Some(Reading::Says) {
            draft.clear();
        }
        reading.unwrap_or(Reading::Foreign)
    }
}

impl Json {
    fn object(&mut self, text: &str, draft: &mut Draft) -> Option<Reading> {
        let mut entries =
            Entries { draft, any: false, name: None, value: None, lists_settings: false };
        let rest = self.dicts.walk(text, &mut entries)?;
        let Entries { draft, mut any, name, value, lists_settings } = entries;
        if lists_settings {
            return Some(Reading::Known);
        }
        if let (Some(name), Some(value)) = (name, value)
            && draft.found.losses.is_empty()
        {
            any = true;
            self.dicts.keys().put(name, value, draft);
        }
        draft.settle_time();
        draft.settle_counters();
        draft.settle_data();
        let found = &mut draft.found;
        let says = !found.losses.is_empty() || found.step.is_some() || found.epoch.is_some();
        if !any || !says || !rest.trim_ascii_start().is_empty() {
            return None;
        }
        // Without a step, there is one line per epoch.
        if found.step.is_none() && found.epoch.is_some() {
            self.dicts.keys().widen(&mut found.losses, Span::Epoch);
        }
        main_loss_first(&mut found.losses);
        Some(Reading::Says)
    }
}

struct Entries<'j, 'a> {
    draft: &'j mut Draft,
    any: bool,
    /// The name of a metric whose value is under another key.
    name: Option<&'a str>,
    value: Option<f64>,
    lists_settings: bool,
}

/// What stands in the place of the step where `DLLogger` lists settings.
const SETTINGS: &str = "PARAMETER";

/// Keys of the name of a metric, and of its value: `{"name": "loss", "value": 0.5}`.
const NAMES: [&str; 6] = ["name", "key", "metric", "metric_name", "tag", "scalar"];
const VALUE: &str = "value";
/// The key of a name that may also be that of the data: `{"name": "validation", "loss": 0.5}`. A run
/// may be called "test" or "dev", so those words are not among them.
const NAME: &str = "name";
const HELD_OUT: [&str; 5] = ["validation", "valid", "val", "evaluation", "eval"];

impl<'a> Take<'a> for Entries<'_, 'a> {
    fn wants(&self, key: &str) -> bool {
        NAMES.contains(&key) || key.rsplit('/').next() == Some(VALUE) || is_beside(key)
    }

    fn take(&mut self, field: Field, key: &str, value: Value<'a>) {
        match value {
            Value::Number(number) if field == Field::Other => {
                if put_beside(key, number, self.draft) {
                    return;
                }
                let is_value = key.rsplit('/').next() == Some(VALUE);
                self.value = self.value.or(Some(number).filter(|_| is_value));
            }
            Value::Text(text) if field == Field::Other => {
                self.name = self.name.or(Some(text));
                let is_of_data = || HELD_OUT.iter().any(|name| text.eq_ignore_ascii_case(name));
                if key == NAME && is_of_data() {
                    self.draft.data = self.draft.data.or(Some(Phase::Validation));
                }
            }
            Value::Number(number) if is_setting(field, key, number) => {}
            Value::Number(number) => {
                put(field, key, number, self.draft);
                self.any = true;
            }
            Value::Text(text) if field == Field::At => {
                let at = stamp(text).and_then(|(at, _)| at);
                self.draft.found.at = at.or(self.draft.found.at);
            }
            Value::Text(text) if field == Field::Step && text == SETTINGS => {
                self.lists_settings = true;
            }
            Value::Text(text) => put_text(field, text, self.draft),
            Value::Word(word) => {
                if let Field::Flag(_) = field {
                    put_text(field, word, self.draft);
                }
            }
            Value::List(list) if matches!(field, Field::Step | Field::GlobalStep) => {
                self.place(list);
            }
            Value::List(_) | Value::Other => {}
        }
    }

    fn clear(&mut self) {
        self.draft.clear();
        (self.any, self.name, self.value, self.lists_settings) = (false, None, None, false);
    }
}

impl Entries<'_, '_> {
    /// Takes the place of `DLLogger`: the epoch, and the step where there is one.
    fn place(&mut self, list: &str) {
        let items = list.trim_matches(['[', ']']).split(',').map(str::trim);
        let mut counters = items.map(scan::whole);
        let (Some(Some(epoch)), step) = (counters.next(), counters.next()) else { return };
        put(Field::Epoch, "epoch", epoch, self.draft);
        if let Some(Some(step)) = step {
            put(Field::Step, "step", step, self.draft);
        }
        self.any = true;
    }
}

/// Whether a number under the name of a loss is a setting of it: `{"loss": {"classes": 100}}`.
fn is_setting(field: Field, key: &str, number: f64) -> bool {
    matches!(field, Field::Loss { .. })
        && number >= MIN_SETTING
        && number.fract() == 0.0
        && names::is_longer(key)
}

/// Smaller whole numbers may be losses.
const MIN_SETTING: f64 = 10.0;

#[cfg(test)]
mod tests;

//! The body of `POST /v1/report`: one JSON object, or one in each line.

use paceline_lines::observation::{Loss, Observation, Phase, Span};
use serde_json::{Map, Value};

/// The fields of a report. All are optional, but one of them must be there; others are ignored.
const FIELDS: &str = "loss, val_loss, test_loss, batch_seconds, step, epoch, total_steps, \
     expected_steps, rank, at";

/// A report, and which one of its sender's it is, if the sender counts them.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What it says.
    pub observation: Observation,
    /// The fields `sender` and `number`.
    pub mark: Option<Mark>,
}

/// The place of a report among those of its sender. A sender that got no answer sends a report again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// A number that the sender has chosen at random.
    pub sender: u64,
    /// It grows from report to report.
    pub number: u64,
}

/// Why a body is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct BadReport {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// Reads a body. If any line is invalid, the whole body is rejected.
pub fn parse(body: &[u8]) -> Result<Vec<Report>, BadReport> {
    let bad = |line, problem: &str| BadReport { line, problem: problem.to_owned() };
    let text = std::str::from_utf8(body).map_err(|error| {
        let line = body.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count();
        bad(line + 1, "invalid UTF-8")
    })?;
    // A single object may span several lines.
    if let Ok(value) = read(text) {
        return report(&value).map(|one| vec![one]).map_err(|problem| bad(1, &problem));
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let reports: Vec<_> = lines
        .map(|(at, line)| {
            let value = read(line).map_err(|problem| bad(at + 1, &problem))?;
            report(&value).map_err(|problem| bad(at + 1, &problem))
        })
        .collect::<Result<_, _>>()?;
    if reports.is_empty() { Err(bad(1, "empty body: expected a report")) } else { Ok(reports) }
}

/// Reads a JSON text. Also accepts the bare words `NaN` and `Infinity` that Python writes.
fn read(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).or_else(|error| {
        let quoted = quote_words(text);
        serde_json::from_str(&quoted).map_err(|_| {
            let message = error.to_string();
            // Drop the position: the caller adds the line number.
            message.split(" at line ").next().unwrap_or(&message).to_owned()
        })
    })
}

/// Puts the words `NaN` and `Infinity` in quotes, outside of strings.
fn quote_words(text: &str) -> String {
    const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    let mut quoted = String::with_capacity(text.len() + 16);
    let (mut rest, mut in_string) = (text, false);
    while let Some(first) = rest.chars().next() {
        let word = WORDS.iter().find(|word| !in_string && rest.starts_with(**word));
        let taken = match word {
            Some(word) => {
                quoted.extend(["\"", word, "\""]);
                word.len()
            }
            None if in_string && first == '\\' => {
                let escaped = rest.chars().nth(1).map_or(0, char::len_utf8);
                quoted.push_str(rest.get(..1 + escaped).unwrap_or_default());
                1 + escaped
            }
            None => {
                in_string ^= first == '"';
                quoted.push(first);
                first.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    quoted
}

fn report(value: &Value) -> Result<Report, String> {
    let Value::Object(fields) = value else { return Err("expected a JSON object".to_owned()) };
    // Other senders may use these names for something else.
    let whole = |name| fields.get(name).and_then(Value::as_u64);
    let mark = whole("sender").zip(whole("number")).map(|(sender, number)| Mark { sender, number });
    observation(fields).map(|observation| Report { observation, mark })
}

fn observation(fields: &Map<String, Value>) -> Result<Observation, String> {
    let count = |name| count(fields, name);
    let losses = [
        ("loss", Phase::Train, mean(fields)?),
        ("val_loss", Phase::Validation, Span::Epoch),
        ("test_loss", Phase::Test, Span::Epoch),
    ];
    let losses: Vec<_> = losses
        .into_iter()
        .filter_map(|(name, phase, span)| {
            let value = number(fields, name).transpose()?;
            Some(value.map(|value| Loss { name: name.to_owned(), phase, span, value }))
        })
        .collect::<Result<_, _>>()?;
    let rank = count("rank")?.map(|rank| {
        u32::try_from(rank)
            .map_err(|_| format!("invalid rank {rank}: expected at most {}", u32::MAX))
    });
    let found = Observation {
        at: number(fields, "at")?,
        step: count("step")?,
        total_steps: count("total_steps")?,
        expected_steps: expected(fields)?,
        epoch: number(fields, "epoch")?,
        batch_seconds: positive(fields, "batch_seconds")?,
        rank: rank.transpose()?,
        losses,
        ..Observation::default()
    };
    // NaN never equals itself, so the losses are checked separately.
    let says_nothing = found.losses.is_empty() && found == Observation::default();
    if says_nothing { Err(format!("empty report: expected any of {FIELDS}")) } else { Ok(found) }
}

/// The span of the training loss: one step unless `mean` is given.
fn mean(fields: &Map<String, Value>) -> Result<Span, String> {
    match fields.get("mean").map(|value| value.as_str().unwrap_or_default()) {
        None | Some("step") => Ok(Span::Step),
        Some("interval") => Ok(Span::Interval),
        Some("epoch_so_far") => Ok(Span::EpochSoFar),
        Some("epoch") => Ok(Span::Epoch),
        Some("run") => Ok(Span::Run),
        Some(_) => {
            let value = fields.get("mean").unwrap_or(&Value::Null);
            let allowed = "step, interval, epoch_so_far, epoch or run";
            Err(format!("invalid mean {value}: expected {allowed}"))
        }
    }
}

/// A number, or a string that contains one, such as `"nan"`. `null` counts as missing.
fn number(fields: &Map<String, Value>, name: &str) -> Result<Option<f64>, String> {
    let wrong = |value: &Value| format!("invalid {name} {value}: expected a number");
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value @ Value::Number(number)) => {
            number.as_f64().map(Some).ok_or_else(|| wrong(value))
        }
        Some(value @ Value::String(text)) => {
            text.trim().parse().map(Some).map_err(|_| wrong(value))
        }
        Some(value) => Err(wrong(value)),
    }
}

fn positive(fields: &Map<String, Value>, name: &str) -> Result<Option<f64>, String> {
    match number(fields, name)? {
        Some(value) if !(value.is_finite() && value > 0.0) => {
            Err(format!("invalid {name} {value}: expected a number of seconds above 0"))
        }
        value => Ok(value),
    }
}

fn count(fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    let wrong =
        |value: &Value| format!("invalid {name} {value}: expected a whole number, at least 0");
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| wrong(value)),
    }
}

fn expected(fields: &Map<String, Value>) -> Result<Option<u64>, String> {
    match count(fields, "expected_steps") {
        Ok(Some(0)) | Err(_) => {
            let value = fields.get("expected_steps").unwrap_or(&Value::Null);
            Err(format!("invalid expected_steps {value}: expected a whole number, at least 1"))
        }
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(body: &str) -> String {
        parse(body.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn report_fields_are_read() {
        let body = r#"{"loss":0.31,"batch_seconds":0.042,"step":120,"epoch":1,"accuracy":0.9}"#;
        let [Report { observation: report, .. }] = &parse(body.as_bytes()).unwrap()[..] else {
            panic!("one")
        };
        assert_eq!((report.step, report.epoch), (Some(120), Some(1.0)));
        assert_eq!((report.batch_seconds, report.losses[0].value), (Some(0.042), 0.31));
    }

    #[test]
    fn mark_is_read_where_it_has_both_numbers() {
        let mark =
            |fields: &str| parse(format!("{{\"loss\":1{fields}}}").as_bytes()).unwrap()[0].mark;
        assert_eq!(mark(r#","sender":7,"number":3"#), Some(Mark { sender: 7, number: 3 }));
        for other in
            ["", r#","number":3"#, r#","sender":"a","number":3"#, r#","sender":7,"number":-1"#]
        {
            assert_eq!(mark(other), None, "{other}");
        }
    }

    #[test]
    fn report_with_totals_alone_is_valid() {
        let reports = parse(br#"{"total_steps":1000,"expected_steps":400}"#).unwrap();
        let totals = &reports[0].observation;
        assert_eq!((totals.total_steps, totals.expected_steps), (Some(1000), Some(400)));
    }

    #[test]
    fn lines_of_reports_and_multi_line_objects_are_read() {
        let lines = "{\"loss\":1}\n\n{\"val_loss\":2,\"rank\":3}\r\n";
        let reports = parse(lines.as_bytes()).unwrap();
        assert_eq!(reports.len(), 2);
        let second = &reports[1].observation;
        assert_eq!((second.losses[0].phase, second.rank), (Phase::Validation, Some(3)));
        assert_eq!(parse(b"{\n \"loss\": 1\n}\n").unwrap().len(), 1);
    }

    #[test]
    fn mean_sets_the_span_of_the_loss() {
        let body = br#"{"loss":0.5,"mean":"epoch_so_far"}"#;
        assert_eq!(parse(body).unwrap()[0].observation.losses[0].span, Span::EpochSoFar);
        let wrong = error(r#"{"loss":0.5,"mean":"week"}"#);
        assert!(
            wrong.starts_with("line 1: invalid mean \"week\": expected step, interval"),
            "{wrong}"
        );
    }

    #[test]
    fn nan_and_infinity_are_accepted() {
        for text in [r#"{"loss": NaN}"#, r#"{"loss":"nan","note":"a \"NaN\" \\"}"#] {
            assert!(
                parse(text.as_bytes()).unwrap()[0].observation.losses[0].value.is_nan(),
                "{text}"
            );
        }
        let negative = parse(br#"{"loss": -Infinity, "note": "Infinity"}"#).unwrap();
        assert!(negative[0].observation.losses[0].value < f64::MIN);
    }

    #[test]
    fn errors_name_the_line_and_the_field() {
        for (body, expected) in [
            ("", "line 1: empty body: expected a report"),
            ("[1]", "line 1: expected a JSON object"),
            ("{\"loss\":1}\n{\"loss\":", "line 2: EOF while parsing a value"),
            (
                "{\"loss\":1}\n{\"step\":-1}",
                "line 2: invalid step -1: expected a whole number, at least 0",
            ),
            (r#"{"loss":"low"}"#, r#"line 1: invalid loss "low": expected a number"#),
            (r#"{"loss":[1]}"#, "line 1: invalid loss [1]: expected a number"),
            (
                r#"{"loss":1,"batch_seconds":0}"#,
                "line 1: invalid batch_seconds 0: expected a number of seconds above 0",
            ),
            (
                r#"{"loss":1,"rank":5000000000}"#,
                "line 1: invalid rank 5000000000: expected at most 4294967295",
            ),
            (
                r#"{"loss":1,"expected_steps":0}"#,
                "line 1: invalid expected_steps 0: expected a whole number, at least 1",
            ),
            (
                r#"{"expected_steps":"many"}"#,
                "line 1: invalid expected_steps \"many\": expected a whole number, at least 1",
            ),
        ] {
            assert_eq!(error(body), expected);
        }
        assert!(error(r#"{"accuracy":1}"#).starts_with("line 1: empty report: expected any of"));
        assert_eq!(parse(b"{}\n\xff").unwrap_err().line, 2);
    }

    proptest! {
        #[test]
        fn any_body_is_parsed_without_panic(body in any::<Vec<u8>>(), text in r#"[{}":,0-9a-zNI\\\n-]*"#) {
            drop(parse(&body));
            drop(parse(text.as_bytes()));
        }
    }
}

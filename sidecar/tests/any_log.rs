//! Logs of many frameworks, of our own making, and what is reported for them. Prefixes, other ranks
//! between the lines and other columns change nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::path::Path;

use paceline_grammar::Reader;
use paceline_lines::observation::Observation;
use paceline_sidecar::merger::{Entry, Hints, Kind, Merger};
use proptest::prelude::*;
use proptest::sample::select;

/// The reports of a log, one line each, as `paceline-sidecar replay` prints them.
fn reports(bytes: &[u8]) -> Vec<String> {
    reports_of(bytes, Hints::default())
}

fn reports_of(bytes: &[u8], hints: Hints) -> Vec<String> {
    let mut merger = Merger::new(hints);
    let source = merger.add(Kind::Text);
    let mut lines = Vec::new();
    let mut take = |observation: &Observation| {
        let mut words = Vec::new();
        merger.take(source, observation, 0.0, |entry| words.push(word(entry)));
        if !words.is_empty() {
            lines.push(words.join(", "));
        }
    };
    let mut reader = Reader::default();
    reader.feed(bytes, &mut take);
    reader.finish(&mut take);
    lines
}

fn word(entry: Entry) -> String {
    match entry {
        Entry::Loss(loss) => format!("loss {loss}"),
        Entry::Validation(loss) => format!("validation {loss}"),
        Entry::Batch(seconds) => format!("batch {seconds:.4} s"),
        Entry::Step(step) => format!("step {step}"),
        Entry::Epoch(epoch) => format!("epoch {epoch}"),
        Entry::TotalSteps(total) => {
            format!("of {}", total.map_or("?".to_owned(), |t| t.to_string()))
        }
        Entry::ExpectedSteps(steps) => format!("expected {steps}"),
    }
}

/// A log and its reports.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    log: String,
    expected: Vec<String>,
}

/// All logs in `tests/logs`. Each `NAME.log` has its reports in `NAME.txt`.
fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs");
    let mut cases = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let log = fs::read_to_string(&path).unwrap();
            let expected = fs::read_to_string(path.with_extension("txt")).unwrap();
            let expected = expected.lines().map(str::to_owned).collect();
            cases.push(Case { name, log, expected });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

impl Case {
    /// Whether its lines have no frames and no prefix of a process of their own.
    fn is_of_lines(&self) -> bool {
        let has_frames = self.log.contains('\r') || self.log.contains("^M");
        !has_frames && !self.name.starts_with("prefix_")
    }
}

#[test]
fn every_log_is_read_as_expected() {
    let mut faults = Vec::new();
    for case in cases() {
        let found = reports(case.log.as_bytes());
        if found != case.expected {
            let (found, expected) = (found.join("\n"), case.expected.join("\n"));
            faults.push(format!("{}: found\n{found}\nexpected\n{expected}\n", case.name));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn text_in_objects_of_a_collector_is_read() {
    for case in cases().iter().filter(|case| case.is_of_lines()) {
        let log = Around::Collector.put_all(&case.log);
        assert_eq!(reports(log.as_bytes()), case.expected, "{}", case.name);
    }
}

#[test]
fn named_part_of_a_loss_is_found_on_its_own_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs");
    let log = fs::read(folder.join("lines_of_one_step.log")).unwrap();
    let short = b"step 10, mel_loss: 2.5\nstep 10, stop_loss: 0.5\n";
    for (log, name, expected) in [
        (log.as_slice(), "train/stop_loss", ["loss 0.75", "loss 0.5"].as_slice()),
        (short, "stop_loss", &["loss 0.5"]),
    ] {
        let hints = Hints { loss: Some(name.to_owned()), ..Hints::default() };
        let found = reports_of(log, hints).join(", ");
        let losses: Vec<&str> =
            found.split(", ").filter(|word| word.starts_with("loss ")).collect();
        assert_eq!(losses, expected, "{name}");
    }
}

#[test]
fn lines_without_a_loss_give_none() {
    let text = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs/without_a_loss.log"),
    );
    assert_eq!(reports(text.unwrap().as_bytes()), [""; 0]);
}

/// What may stand around each line of a log.
#[derive(Clone, Copy, Debug)]
enum Around {
    Text(&'static str),
    Colour,
    Cri,
    Docker,
    Collector,
}

const AROUND: [Around; 17] = [
    Around::Text("2026-03-01 10:00:00,123 - INFO - "),
    Around::Text("[2026-03-01 10:00:00] "),
    Around::Text("2026-03-01T10:00:00.5Z "),
    Around::Text("INFO:root:"),
    Around::Text("I0301 10:00:00.123456    77 train.py:42] "),
    Around::Text("[rank0]: "),
    Around::Text("[default0]:"),
    Around::Text("[1,0]<stdout>:"),
    Around::Text("[0]<stderr>:"),
    Around::Text("job-1  | "),
    Around::Text("(Worker pid=77, ip=10.0.0.1) "),
    Around::Text("Mar 01 10:00:00 host9 python3[77]: "),
    Around::Text("[node7:0/4] "),
    Around::Colour,
    Around::Cri,
    Around::Docker,
    Around::Collector,
];

impl Around {
    fn put(self, line: &str) -> String {
        let json = |text: String| serde_json::Value::String(text).to_string();
        match self {
            Self::Text(prefix) => format!("{prefix}{line}"),
            Self::Colour => format!("\u{1b}[90m[10:00:00]\u{1b}[0m {line}"),
            Self::Cri => format!("2026-03-01T10:00:00.5Z stdout F {line}"),
            Self::Docker => format!(
                "{{\"log\":{},\"stream\":\"stdout\",\"time\":\"2026-03-01T10:00:00.5Z\"}}",
                json(format!("{line}\n"))
            ),
            Self::Collector => {
                format!("{{\"level\":\"info\",\"message\":{}}}", json(line.to_owned()))
            }
        }
    }

    fn put_all(self, log: &str) -> String {
        log.lines().map(|line| self.put(line) + "\n").collect()
    }
}

/// `line` with other digits after each decimal point.
fn with_other_losses(line: &str) -> String {
    let mut after_point = false;
    let other = |c: char| {
        let digit = c.to_digit(10).filter(|_| after_point);
        after_point = c == '.' || (after_point && c.is_ascii_digit());
        digit.and_then(|digit| char::from_digit((digit + 3) % 10, 10)).unwrap_or(c)
    };
    line.chars().map(other).collect()
}

/// Prefixes of launchers, with the rank in the braces.
const LAUNCHERS: [&str; 5] =
    ["[rank{}]: ", "[default{}]:", "[1,{}]<stdout>:", "rank{}: ", "[{}]<stdout>:"];

/// A log of rank 0 with that of rank 1 between its lines. Rank 1 is `lags` lines late, in turn.
fn interleaved(log: &str, launcher: &str, lags: &[usize]) -> String {
    let of = |rank: &str, line: &str| format!("{}{line}\n", launcher.replace("{}", rank));
    let (mut text, mut written) = (String::new(), 0);
    for (index, (line, lag)) in log.lines().zip(lags.iter().cycle()).enumerate() {
        text += &of("0", line);
        let reached = (index + 1).saturating_sub(*lag).max(written);
        for late in log.lines().take(reached).skip(written) {
            text += &of("1", &with_other_losses(late));
        }
        written = reached;
    }
    text
}

#[test]
fn lowest_of_two_ranks_is_reported() {
    for case in cases().iter().filter(|case| case.is_of_lines()) {
        for launcher in LAUNCHERS {
            let text = interleaved(&case.log, launcher, &[0]);
            assert_eq!(reports(text.as_bytes()), case.expected, "{} {launcher}", case.name);
        }
    }
}

/// Ways to write the pairs of a line.
const STYLES: [(&str, &str); 6] =
    [(": ", ", "), ("=", " "), (" ", " | "), (": ", " - "), (" = ", "; "), (": ", "  ")];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn prefixes_change_nothing(
        case in select(cases()),
        outer in select(AROUND.to_vec()),
        inner in prop::option::of(select(AROUND[..5].to_vec())),
    ) {
        if case.is_of_lines() {
            let inside = inner.map_or(case.log.clone(), |inner| inner.put_all(&case.log));
            prop_assert_eq!(reports(outer.put_all(&inside).as_bytes()), case.expected, "{}", case.name);
        } else {
            let frames = case.log.split('\n').collect::<Vec<_>>();
            let wrapped: String = frames.iter().map(|line| Around::Docker.put(line) + "\n").collect();
            prop_assert_eq!(reports(wrapped.as_bytes()), case.expected, "{}", case.name);
        }
    }

    #[test]
    fn lowest_of_interleaved_ranks_is_reported(
        case in select(cases()),
        ahead in prop::collection::vec(0..3_usize, 64),
        launcher in select(LAUNCHERS.to_vec()),
    ) {
        prop_assume!(case.is_of_lines());
        let text = interleaved(&case.log, launcher, &ahead);
        prop_assert_eq!(reports(text.as_bytes()), case.expected, "{}", case.name);
    }

    #[test]
    fn other_columns_names_and_numbers_change_nothing(
        style in select(STYLES.to_vec()),
        order in Just(vec![0, 1, 2, 3, 4, 5]).prop_shuffle(),
        name in "[a-z]{3,8}_(acc|score|norm)",
        loss_name in select(vec!["loss", "train_loss", "Loss", "total_loss", "training loss"]),
        losses in prop::collection::vec(1..90_000_u32, 3),
        pace in 1..50_u64,
    ) {
        let mut text = String::new();
        let mut expected = Vec::new();
        for (line, loss) in (1_u64..).zip(&losses) {
            let loss = f64::from(*loss) / 10_000.0;
            let pairs = [
                ("step".to_owned(), (line * pace).to_string()),
                (loss_name.to_owned(), loss.to_string()),
                ("lr".to_owned(), "3e-4".to_owned()),
                (name.clone(), "0.75".to_owned()),
                ("box_loss".to_owned(), "0.125".to_owned()),
                ("val_loss".to_owned(), "1.5".to_owned()),
            ];
            let (separator, between) = style;
            let line_of = order.iter().map(|at| format!("{}{separator}{}", pairs[*at].0, pairs[*at].1));
            text += &(line_of.collect::<Vec<_>>().join(between) + "\n");
            expected.push(format!("validation 1.5, loss {loss}, step {}", line * pace));
        }
        prop_assert_eq!(reports(text.as_bytes()), expected, "{}", text);
    }
}

/// The total of each framework, from what it prints.
#[test]
fn totals_of_frameworks_are_known() {
    for (name, log, total) in [
        ("keras", "Epoch 1/3\n5/8 ━━━━ 1s 5ms/step - loss: 0.5000\n", "of 24"),
        ("tqdm", "  1%|1| 1/90 [00:01<01:29, 1.00it/s, loss=0.5]\n", "of 90"),
        ("lightning", "Epoch 0/2 ━━━━ 4/8 0:00:01 • 0:00:01 4.00it/s train_loss: 2.0\r", "of 24"),
        (
            "hugging face",
            "  5%|5| 5/90 [00:05<01:25, 1.00it/s]\n{'loss': 0.5, 'learning_rate': 0.1, 'epoch': 0.5}\n",
            "of 90",
        ),
        (
            "megatron",
            " iteration 5/ 90 | elapsed time per iteration (ms): 250.0 | lm loss: 5.0E-01 |\n",
            "of 90",
        ),
        ("nanogpt", "max_iters = 90\niter 5: loss 0.5000, time 14.50ms, mfu 3.21%\n", "of 90"),
        (
            "torchtitan",
            "[rank0]:[titan] 2026-01-01 10:00:00,123 - root - INFO - Trainer: batch size 8, total steps 90 (warmup 5)\n\
             [rank0]:[titan] 2026-01-01 10:00:00,123 - root - INFO - step:  5  loss:  0.5000  memory:  1.41GiB(1.79%)\n",
            "of 90",
        ),
        (
            "mmengine by iterations",
            "Iter(train) [ 5/90]  time: 0.5  data_time: 0.1  loss: 0.5\n",
            "of 90",
        ),
        (
            "mmengine by epochs",
            "train_cfg = dict(by_epoch=True, max_epochs=3, val_interval=1)\n\
             Epoch(train)  [1][ 5/30]  time: 0.5  data_time: 0.1  loss: 0.5\n",
            "of 90",
        ),
        (
            "fairseq",
            "Namespace(max_epoch=0, max_update=90)\n\
             | epoch 001:      5 / 30 loss=0.5, nll_loss=0.4, ups=2.0, num_updates=5\n",
            "of 90",
        ),
    ] {
        let all = reports(log.as_bytes()).join(", ");
        assert!(all.split(", ").any(|word| word == total), "{name}: {all}");
    }
}

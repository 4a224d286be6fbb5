//! The numbers of a form, and which of them is the step, the loss and so on.

use crate::explain::numbers::{Number, name, numbers};

/// Names of losses that no grammar takes for one by itself.
const LOSSES: [&str; 31] = [
    "loss",
    "losses",
    "l",
    "j",
    "obj",
    "objective",
    "cost",
    "err",
    "error",
    "nll",
    "ce",
    "xent",
    "bce",
    "mse",
    "mae",
    "rmse",
    "elbo",
    "energy",
    "residual",
    "deviance",
    "logloss",
    "criterion",
    "fval",
    "fun",
    "f",
    "bpc",
    "bpb",
    "ppl",
    "perplexity",
    "kl",
    "risk",
];
/// Names of decimal numbers that are not losses.
const OTHERS: [&str; 46] = [
    "lr",
    "learning",
    "rate",
    "time",
    "t",
    "s",
    "sec",
    "secs",
    "seconds",
    "ms",
    "dt",
    "took",
    "elapsed",
    "eta",
    "acc",
    "accuracy",
    "acc1",
    "acc5",
    "top1",
    "top5",
    "auc",
    "f1",
    "map",
    "precision",
    "recall",
    "iou",
    "bleu",
    "wer",
    "cer",
    "score",
    "reward",
    "mem",
    "memory",
    "gb",
    "mb",
    "gpu",
    "cpu",
    "grad",
    "gnorm",
    "norm",
    "wd",
    "momentum",
    "temp",
    "speed",
    "mfu",
    "tflops",
];
/// Names of steps.
const STEPS: [&str; 16] = [
    "step",
    "steps",
    "it",
    "iter",
    "iters",
    "iteration",
    "batch",
    "update",
    "updates",
    "i",
    "n",
    "k",
    "round",
    "tick",
    "minibatch",
    "trial",
];
/// Names of epochs.
const EPOCHS: [&str; 6] = ["epoch", "epochs", "ep", "e", "pass", "cycle"];
/// Names of a batch's time.
const TIMES: [&str; 7] = ["time", "dt", "took", "t", "batch_time", "step_time", "iter_time"];
/// Words of lines about held-out data.
const HELD_OUT: [&str; 8] =
    ["val", "valid", "validation", "eval", "evaluation", "dev", "test", "held"];

/// The role of a number in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Step,
    TotalSteps,
    Epoch,
    Loss,
    ValidationLoss,
    TestLoss,
    BatchSeconds,
    BatchMillis,
}

impl Role {
    /// The group of a pattern.
    pub(super) fn group(self) -> &'static str {
        match self {
            Self::Step => r"(?P<step>\d+)",
            Self::TotalSteps => r"(?P<total_steps>\d+)",
            Self::Epoch => r"(?P<epoch>\d+)",
            Self::Loss => r"(?P<loss>[-+.\w]+)",
            Self::ValidationLoss => r"(?P<val_loss>[-+.\w]+)",
            Self::TestLoss => r"(?P<test_loss>[-+.\w]+)",
            Self::BatchSeconds => r"(?P<batch_seconds>[.\d]+)",
            Self::BatchMillis => r"(?P<batch_ms>[.\d]+)",
        }
    }
}

/// One number of a form, over all of its lines.
#[derive(Debug)]
pub(super) struct Column<'l> {
    name: &'l str,
    /// The text between the number before and this one, in the first line.
    pub(super) between: &'l str,
    /// The text after it, in the first line.
    pub(super) behind: &'l str,
    values: Vec<f64>,
    is_count: bool,
}

impl Column<'_> {
    fn is_any(&self, names: &[&str]) -> bool {
        let last = self.name.rsplit(['_', '/', '.', '-']).next().unwrap_or_default();
        names
            .iter()
            .any(|name| self.name.eq_ignore_ascii_case(name) || last.eq_ignore_ascii_case(name))
    }

    fn changes(&self) -> bool {
        self.values.windows(2).any(|pair| pair.first() != pair.last())
    }

    /// Whether it grows, or restarts now and then.
    fn counts_up(&self) -> bool {
        let falls = self.values.windows(2).filter(|pair| pair.first() > pair.last()).count();
        self.is_count && self.changes() && falls * 8 <= self.values.len()
    }

    /// Whether it never falls, as a time since the start.
    fn only_grows(&self) -> bool {
        self.changes() && self.values.windows(2).all(|pair| pair.first() <= pair.last())
    }

    /// How likely it is a loss; 0 if it is none.
    fn likeness(&self) -> u32 {
        if self.is_count || !self.changes() || self.is_any(&OTHERS) {
            return 0;
        }
        let named = if self.is_any(&LOSSES) { 4 } else { 0 };
        let falls = match (self.values.first(), self.values.last()) {
            (Some(first), Some(last)) if last < first => 2,
            _ if self.only_grows() && named == 0 => return 0,
            _ => 0,
        };
        1 + named + falls
    }
}

/// The numbers of a form's lines; `first` is the first of them.
pub(super) fn columns<'l>(first: &'l str, lines: &[&'l str]) -> Vec<Column<'l>> {
    let rows: Vec<Vec<Number<'l>>> = lines.iter().map(|line| numbers(line)).collect();
    let Some(numbers) = rows.first() else { return Vec::new() };
    let mut after = 0;
    let column = |(at, number): (usize, &Number<'l>)| {
        let of_column: Vec<_> = rows.iter().filter_map(|row| row.get(at)).collect();
        let next = numbers.get(at + 1).map_or(first.len(), |next| next.start);
        let column = Column {
            name: name(first, after, number.start),
            between: first.get(after..number.start).unwrap_or_default(),
            behind: first.get(number.end()..next).unwrap_or_default(),
            values: of_column.iter().map(|number| number.value).collect(),
            is_count: of_column.iter().all(|number| number.is_count()),
        };
        after = number.end();
        column
    };
    numbers.iter().enumerate().map(column).collect()
}

/// The role of each column; `None` without a loss.
pub(super) fn roles(line: &str, columns: &[Column<'_>]) -> Option<Vec<Option<Role>>> {
    let (loss, _) = columns
        .iter()
        .enumerate()
        .map(|(at, column)| (at, column.likeness()))
        .filter(|(_, likeness)| *likeness > 0)
        // The first of the likeliest.
        .max_by_key(|(at, likeness)| (*likeness, std::cmp::Reverse(*at)))?;
    let find = |names: &[&str]| {
        let is_it = |column: &Column<'_>| column.counts_up() && column.is_any(names);
        columns.iter().position(is_it)
    };
    let epoch = find(&EPOCHS);
    let step = find(&STEPS).or_else(|| {
        let is_it =
            |at: &usize| columns.get(*at).is_some_and(Column::counts_up) && Some(*at) != epoch;
        (0..columns.len()).find(is_it)
    });
    let total = step.map(|step| step + 1).filter(|at| {
        let of = |column: &Column<'_>| ["/", "of"].contains(&column.between.trim());
        columns.get(*at).is_some_and(|column| column.is_count && !column.changes() && of(column))
    });
    let time = columns
        .iter()
        .position(|column| column.is_any(&TIMES) && column.changes() && !column.only_grows());
    let role = |at: usize, column: &Column<'_>| {
        let is = |other: Option<usize>| other == Some(at);
        if at == loss {
            Some(of_loss(line))
        } else if is(step) {
            Some(Role::Step)
        } else if is(total) {
            Some(Role::TotalSteps)
        } else if is(epoch) {
            Some(Role::Epoch)
        } else if is(time) {
            let unit = column.behind.trim_start();
            Some(if unit.starts_with("ms") { Role::BatchMillis } else { Role::BatchSeconds })
        } else {
            None
        }
    };
    Some(columns.iter().enumerate().map(|(at, column)| role(at, column)).collect())
}

/// The role of a line's loss.
fn of_loss(line: &str) -> Role {
    let mut words = line.split(|c: char| !c.is_alphanumeric());
    match words.find(|word| HELD_OUT.iter().any(|name| word.eq_ignore_ascii_case(name))) {
        Some(word) if word.eq_ignore_ascii_case("test") => Role::TestLoss,
        Some(_) => Role::ValidationLoss,
        None => Role::Loss,
    }
}

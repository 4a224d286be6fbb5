//! Generates output of training jobs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Bytes written of each kind.
pub(crate) const SIZE: u32 = 200_000_000;

/// A kind of text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Its name.
    pub(crate) name: &'static str,
    /// The goal in MB/s per core.
    pub(crate) goal: Option<f64>,
    /// The expression with which `mtail` reads step and loss; `None` if it cannot read the text.
    pub(crate) pattern: Option<&'static str>,
    line: fn(&mut dyn Write, u32) -> io::Result<()>,
}

const PYTORCH: &str =
    r"^Train Epoch: \d+ \[(?P<step>\d+)\/\d+ \(\d+%\)\]\tLoss: (?P<loss>\d+\.\d+)";
const JSON: &str = r#"^{"step": (?P<step>\d+), .*"loss": (?P<loss>\d+\.\d+)"#;

/// All kinds.
pub(crate) const KINDS: [Kind; 4] = [
    Kind { name: "tqdm frames", goal: None, pattern: None, line: tqdm },
    Kind { name: "PyTorch lines", goal: Some(300.0), pattern: Some(PYTORCH), line: pytorch },
    Kind { name: "JSON lines", goal: Some(300.0), pattern: Some(JSON), line: json },
    Kind { name: "plain lines", goal: Some(300.0), pattern: Some(PYTORCH), line: plain },
];

impl Kind {
    /// Writes at least [`SIZE`] bytes of whole lines and returns the exact size.
    pub(crate) fn write(&self, path: &Path) -> io::Result<u64> {
        let mut file = BufWriter::new(File::create(path)?);
        let mut line = Vec::new();
        let mut written = 0;
        for step in 0.. {
            line.clear();
            (self.line)(&mut line, step)?;
            file.write_all(&line)?;
            written += u64::try_from(line.len()).unwrap_or_default();
            if written >= SIZE.into() {
                break;
            }
        }
        file.flush()?;
        Ok(written)
    }
}

/// A line of PyTorch's MNIST example; an epoch has 938 batches of 64.
pub(crate) fn pytorch(to: &mut dyn Write, step: u32) -> io::Result<()> {
    let (epoch, batch) = (step / 938 + 1, step % 938);
    let loss = loss(step);
    writeln!(to, "Train Epoch: {epoch} [{}/60000 ({}%)]\tLoss: {loss:.6}", batch * 64, batch / 10)
}

fn tqdm(to: &mut dyn Write, step: u32) -> io::Result<()> {
    let (epoch, batch) = (step / 938 + 1, step % 938);
    let percent = batch * 100 / 938;
    let bar = "██████████";
    let filled = bar.split_at_checked(3 * usize::try_from(percent / 10).unwrap_or_default());
    let (bar, loss) = (filled.map_or(bar, |(filled, _)| filled), loss(step));
    let seconds = batch / 20;
    write!(
        to,
        "\rEpoch {epoch}/9999: {percent:3}%|{bar:10}| {batch}/938 [{:02}:{:02}<00:09, 19.{:02}it/s, loss={loss:.3}, lr=0.001]",
        seconds / 60,
        seconds % 60,
        step % 100,
    )
}

fn json(to: &mut dyn Write, step: u32) -> io::Result<()> {
    let loss = loss(step);
    writeln!(
        to,
        "{{\"step\": {step}, \"epoch\": {}, \"loss\": {loss:.4}, \"lr\": 0.0003, \"grad_norm\": 1.{:02}, \"tokens\": {}}}",
        step / 938,
        step % 100,
        8192 + step % 64,
    )
}

fn plain(to: &mut dyn Write, step: u32) -> io::Result<()> {
    let (minutes, seconds, millis) = (step / 60_000 % 60, step / 1000 % 60, step % 1000);
    write!(to, "2026-01-01 10:{minutes:02}:{seconds:02},{millis:03} - ")?;
    match step % 4 {
        0 => writeln!(to, "loader - INFO - shard {step} of the data is on disk now"),
        1 => writeln!(to, "loader - DEBUG - worker {} takes the next 64 files", step % 16),
        2 => {
            writeln!(to, "urllib3.connectionpool - DEBUG - \"GET /part/{step} HTTP/1.1\" 200 65536")
        }
        _ => writeln!(to, "train - INFO - a copy of the model was sent to the other machines"),
    }
}

/// A loss that falls, with some noise.
fn loss(step: u32) -> f64 {
    let noise = f64::from(step.wrapping_mul(2_654_435_761) >> 16) / 65_536.0;
    2.3 / (1.0 + f64::from(step) / 50_000.0) + 0.2 * noise
}

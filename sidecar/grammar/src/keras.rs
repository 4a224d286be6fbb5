//! Keras: the bars of `fit` (`verbose=1`) in all versions, and its lines (`verbose=2`).
//!
//! `evaluate` and `predict` print the same bars, but only `fit` prints a header such as `Epoch
//! 1/10` before them. A `fit` of one epoch has no header. It is recognised by the validation loss
//! in its last frame. Two bars in a row with equal totals also count as `fit`, because evaluating
//! twice without training is useless. A bar's loss is the mean of the epoch so far.

mod glued;

use super::draft::Draft;
use super::keys::{Field, Keys, main_loss_first};
use super::{Grammar, Reading};
pub(super) use glued::split;
use paceline_lines::observation::{Loss, Observation, Phase, Span};
use paceline_lines::scan;
use paceline_lines::terminal::End;

/// The state between frames.
#[derive(Debug, Default)]
pub(super) struct Keras {
    keys: Keys,
    /// The epoch and the number of epochs, if that is known, during an epoch of `fit`.
    epoch: Option<(u64, Option<u64>)>,
    /// The last epoch of `fit`, after its last frame. A callback that prints ends its line, and then the frame with the
    /// validation loss still follows.
    over: Option<(u64, Option<u64>)>,
    headers: Headers,
    /// A bar without a header was seen.
    has_frames: bool,
    /// The number of steps of the last bar without a header.
    evaluated: Option<u64>,
    /// The number of steps of the bars of a `fit` without headers.
    headless: Option<u64>,
    /// The step and the loss (as bits) of the last frame of this epoch.
    last: Option<(Option<u64>, u64)>,
    /// The validation loss of this epoch (as bits).
    validated: Option<u64>,
    /// The number of samples that `fit` has announced. Bars up to it count samples.
    samples: Option<u64>,
    bars: bool,
}

/// The headers so far. After one, bars without a header do not belong to training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Headers {
    #[default]
    None,
    /// Without the number of epochs, as before version 1.
    Plain,
    Numbered,
}

/// A frame or line.
struct Frame<'a> {
    step: Option<u64>,
    total: Option<u64>,
    samples: bool,
    seconds: Option<f64>,
    /// The text after the bar.
    rest: &'a str,
    has_bar: bool,
}

impl Grammar for Keras {
    fn name(&self) -> &'static str {
        if self.bars { "keras bar" } else { "keras" }
    }

    fn is_of_bars(&self) -> bool {
        true
    }

    fn starts(&self, byte: u8) -> bool {
        byte.is_ascii_digit() || matches!(byte, b'E' | b'-' | b'T')
    }

    fn read(&mut self, line: &str, end: End, draft: &mut Draft) -> Reading {
        // Before version 1, only the lines about the data were its own.
        let is_early = self.samples.is_some() && self.headers != Headers::Numbered;
        if let Some(epoch) = header(line).filter(|(_, epochs)| epochs.is_some() || is_early) {
            self.headers = if epoch.1.is_some() { Headers::Numbered } else { Headers::Plain };
            (self.epoch, self.over) = (Some(epoch), None);
            self.last = None;
            self.validated = None;
            // Other programs print the same header.
            return Reading::Foreign;
        }
        if line.starts_with('T') {
            self.samples = samples(line).or(self.samples);
            return Reading::Foreign;
        }
        let Some(mut frame) = frame(line) else { return Reading::Foreign };
        frame.samples |= frame.total.is_some() && frame.total == self.samples;
        if end == End::Flush && !is_whole(line) {
            return Reading::Known;
        }
        self.bars |= frame.has_bar;
        Reading::from_found(self.observation(&frame, end), draft, Reading::Known)
    }
}

impl Keras {
    fn observation(&mut self, frame: &Frame<'_>, end: End) -> Option<Observation> {
        let mut draft = Draft::default();
        for (key, value) in pairs(frame.rest) {
            if matches!(self.keys.field(key), Field::Loss { .. }) {
                self.keys.put(key, value, &mut draft);
            }
        }
        let mut found = Observation {
            step: frame.step,
            step_in_epoch: frame.step.is_some(),
            step_in_samples: frame.samples,
            total_steps: frame.total,
            losses: draft.found.losses,
            ..Observation::default()
        };
        // Without a total, the next header ends the epoch.
        let is_end =
            frame.step.is_none() || frame.total.is_some_and(|total| frame.step >= Some(total));
        let ended = end == End::Newline && is_end;
        if found.losses.iter().any(|loss| loss.phase != Phase::Train) {
            self.epoch = self.epoch.or(self.over.take());
        }
        if self.epoch.is_none() && !self.is_headless_fit(frame, &found.losses) {
            if ended && !found.losses.is_empty() {
                self.evaluated = frame.total;
            }
            return if ended { evaluated(found) } else { None };
        }
        let span = if frame.has_bar { Span::EpochSoFar } else { Span::Epoch };
        let training = found.losses.iter_mut().filter(|loss| loss.phase == Phase::Train);
        training.for_each(|loss| loss.span = span);
        main_loss_first(&mut found.losses);
        // The last frame of an epoch is drawn again after the validation. Its time per step then
        // includes the validation.
        let validation = found.losses.iter().find(|loss| loss.phase != Phase::Train);
        let validation = validation.map(|loss| loss.value.to_bits());
        let now = Some((frame.step, found.losses.first()?.value.to_bits()));
        let (again, validated) = (self.last == now, self.validated == validation);
        found.losses.retain(|loss| if loss.phase == Phase::Train { !again } else { !validated });
        let goes_on = !ended || self.epoch.is_some();
        self.last = now.filter(|_| goes_on);
        self.validated = validation.filter(|_| goes_on);
        found.epoch = self.epoch.and_then(|(epoch, _)| float(epoch));
        found.total_epochs = self.epoch.and_then(|(_, epochs)| epochs);
        if ended {
            self.over = self.epoch.take();
        }
        found.batch_seconds = frame.seconds.filter(|_| validation.is_none());
        (!found.losses.is_empty()).then_some(found)
    }
}

impl Keras {
    /// Whether a frame without a header belongs to `fit`.
    fn is_headless_fit(&mut self, frame: &Frame<'_>, losses: &[Loss]) -> bool {
        if self.headers != Headers::None || losses.is_empty() || frame.total.is_none() {
            return false;
        }
        let validates = losses.iter().any(|loss| loss.phase == Phase::Validation);
        // Each bar begins with its first frames, unless the log begins within it. Most are those of `fit`.
        let is_within = !std::mem::replace(&mut self.has_frames, true) && is_late(frame);
        if validates || self.evaluated == frame.total || is_within {
            self.headless = frame.total;
        }
        self.headless == frame.total
    }
}

/// Whether a frame is not among the first ones of its bar, and not the last one.
fn is_late(frame: &Frame<'_>) -> bool {
    let Some((step, total)) = frame.step.zip(frame.total) else { return false };
    step > total / FIRST && step > 1 && step < total
}

/// The first frame of a bar is within this part of it.
const FIRST: u64 = 10;

/// The final losses of `evaluate`, as test losses.
fn evaluated(found: Observation) -> Option<Observation> {
    let losses: Vec<Loss> = found
        .losses
        .into_iter()
        .map(|loss| Loss { phase: Phase::Test, span: Span::Epoch, ..loss })
        .collect();
    (!losses.is_empty()).then(|| Observation { losses, ..Observation::default() })
}

/// The number of samples in `Train on 60000 samples, validate on 10000 samples`.
fn samples(line: &str) -> Option<u64> {
    let (count, rest) = scan::count(line.strip_prefix("Train on ")?)?;
    rest.starts_with(" samples").then_some(count)
}

/// `Epoch 1/10`, or `Epoch 1` as before version 1, and nothing else.
fn header(line: &str) -> Option<(u64, Option<u64>)> {
    let (epoch, rest) = scan::count(line.strip_prefix("Epoch ")?)?;
    if rest.is_empty() {
        return Some((epoch, None));
    }
    let (epochs, rest) = scan::count(rest.strip_prefix('/')?)?;
    rest.is_empty().then_some((epoch, Some(epochs)))
}

fn frame(line: &str) -> Option<Frame<'_>> {
    if !line.as_bytes().first()?.is_ascii_digit() && !line.starts_with("- ") {
        return None;
    }
    // Until version 2.2, lines with `verbose=2` began with the time of the epoch.
    if let Some(rest) = line.strip_prefix("- ") {
        let (seconds, after) = rest.split_once(" - ")?;
        let is_seconds = seconds.strip_suffix('s').is_some_and(|s| scan::whole(s).is_some());
        let (step, total, seconds) = (None, None, None);
        let frame = Frame { step, total, samples: false, seconds, rest: after, has_bar: false };
        return is_seconds.then_some(frame);
    }
    let (step, rest) = scan::count(line)?;
    let rest = rest.strip_prefix('/')?;
    let (total, rest) = match rest.strip_prefix("Unknown") {
        Some(rest) => (None, rest),
        None => scan::count(rest).map(|(total, rest)| (Some(total), rest))?,
    };
    let rest = rest.trim_start_matches(' ');
    let after_bar = match rest.as_bytes().first()? {
        b'[' => rest.split_once(']').filter(|(bar, _)| is_bar(bar)).map(|(_, rest)| rest),
        b'-' => Some(rest),
        _ if total.is_none() => Some(rest),
        _ => rest.strip_prefix('\u{2501}').map(|rest| rest.trim_start_matches('\u{2501}')),
    }?;
    let has_bar = after_bar.len() < rest.len() || total.is_none();
    if !after_bar.starts_with([' ', '-']) && total.is_some() {
        return None;
    }
    let (seconds, samples) = time(after_bar);
    Some(Frame { step: Some(step), total, samples, seconds, rest: after_bar, has_bar })
}

fn is_bar(text: &str) -> bool {
    text.bytes().all(|byte| b"[=>.".contains(&byte))
}

/// The time per step or sample in `text`, in seconds; whether it is per sample.
fn time(text: &str) -> (Option<f64>, bool) {
    for (unit, samples) in [("/step", false), ("/sample", true)] {
        let Some((before, _)) = text.split_once(unit) else { continue };
        let word = before.rsplit(' ').next().unwrap_or_default();
        let seconds = scan::number(word).and_then(|(value, unit)| {
            let of_one = match unit {
                "s" => 1.0,
                "ms" => 1e3,
                "us" | "µs" | "μs" => 1e6,
                _ => return None,
            };
            Some(value / of_one).filter(|seconds| *seconds > 0.0)
        });
        // The number of samples in a batch is unknown.
        return (seconds.filter(|_| !samples), samples);
    }
    (None, false)
}

/// The `key: value` pairs between ` - ` marks.
fn pairs(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.split(" - ").filter_map(|part| {
        let (key, value) = part.split_once(": ")?;
        // Another program's text may follow a frame that has no end of line.
        let value = scan::whole(value).or_else(|| scan::run_into(value))?;
        Some((key.trim_start_matches(['-', ' ']), value))
    })
}

/// Whether the number at the end of `line` is complete: Keras prints four decimals.
fn is_whole(line: &str) -> bool {
    let number = line.rsplit(' ').next().unwrap_or_default();
    let (mantissa, exponent) = number.split_once('e').map_or((number, None), |(m, e)| (m, Some(e)));
    let fraction = mantissa.split_once('.').map(|(_, fraction)| fraction.len());
    let word = ["nan", "inf", "-inf"].contains(&number);
    word || (fraction == Some(4) && exponent.is_none_or(|exponent| exponent.len() >= 3))
}

fn float(count: u64) -> Option<f64> {
    u32::try_from(count).ok().map(f64::from)
}

#[cfg(test)]
mod tests;

//! Prefixes of loggers: times, levels, names and places in the code.

use super::launchers::{self, counts};
use super::{Before, MAX_LEN, Stripped, number, numbered_word, separator};
use crate::names;
use crate::terminal::stamp::{is_duration, may_be_named, stamp, time};

const LEVELS: [&str; 11] = [
    "INFO",
    "WARNING",
    "WARN",
    "ERROR",
    "DEBUG",
    "CRITICAL",
    "FATAL",
    "SUCCESS",
    "TRACE",
    "NOTICE",
    "EXCEPTION",
];
/// Names of loggers that give no meaning to a line.
const NAMES: [&str; 6] = ["root", "main", "titan", "stdout", "stderr", "MainThread"];

/// `[2026-01-01 10:00:00]`, `[01/31 10:00:00 d2.events]`, `[INFO]`, `[INFO|trainer.py:12]`, `[titan]`.
pub(super) fn bracketed<'a>(found: &mut Stripped<'a>, before: &mut Before) -> Option<&'a str> {
    let (inside, rest) = found.text.strip_prefix('[')?.split_once(']')?;
    if inside.len() > MAX_LEN {
        return None;
    }
    let trimmed = inside.trim();
    let after_level = leveled(trimmed);
    let stamped = after_level.map_or(trimmed, |rest| rest.trim_start_matches(['|', ' ', ':']));
    if let Some((at, _)) = any_stamp(month_and_day(stamped)) {
        found.at = at.or(found.at);
        before.see_stamp();
        return Some(after_brackets(rest));
    }
    let is_place = |rest: &str| rest.trim().is_empty() || rest.starts_with(['|', ':']);
    if after_level.is_some_and(|rest| is_place(rest) || is_line_of_code(rest.trim_start())) {
        return Some(after_brackets(rest));
    }
    if trimmed.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("pid")) {
        return Some(after_brackets(rest));
    }
    before.place |= inside.contains(".py:");
    if let Some(rest) = class(inside, rest) {
        return Some(rest);
    }
    let is_name = (inside.contains(['.', '_', '/']) && is_name(inside)) || NAMES.contains(&inside);
    let known = before.stamp || before.anything || any_stamp(rest.trim_start()).is_some();
    (is_name && known).then(|| after_brackets(rest))
}

/// The text after a thread, a level and a class, as Java prints them: `[main] INFO org.example.Trainer - `.
fn class<'a>(thread: &str, rest: &'a str) -> Option<&'a str> {
    let after = level(rest.strip_prefix(' ')?)?.strip_prefix(' ')?.trim_start_matches(' ');
    let (class, rest) = after.split_once(" - ")?;
    (is_identifier(thread) && class.contains('.') && is_name(class)).then_some(rest)
}

/// The time after a month and a day without a mark: `0131 10:00:00 @base.py:12`.
#[inline(never)]
fn month_and_day(text: &str) -> &str {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after = text.get(4..).filter(|after| digits == 4 && after.starts_with(' '));
    after.map_or(text, str::trim_start)
}

/// The text after brackets and a separator. A bar there begins the program's own text.
fn after_brackets(text: &str) -> &str {
    let text = text.trim_ascii_start();
    if text.starts_with('|') { text } else { separator(text) }
}

/// A file and a number: `trainer.cc:77`.
fn is_line_of_code(text: &str) -> bool {
    let parts = text.split_once(':').filter(|(file, _)| file.contains('.') && is_name(file));
    parts.is_some_and(|(_, number)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A name without a value: `logging.py:96:log_dist`.
fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:/".contains(&byte);
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.bytes().all(is_part)
}

/// Strips a date and time, and the separator after it.
pub(super) fn stamped<'a>(found: &mut Stripped<'a>, before: &mut Before) -> Option<&'a str> {
    let (at, rest) = any_stamp(found.text)?;
    if !rest.starts_with([' ', '\t', '|', ']', ':', '-', ',']) {
        return None;
    }
    found.at = at.or(found.at);
    before.see_stamp();
    let rest = separator(rest.strip_prefix('-').unwrap_or(rest));
    Some(after_duration(rest).unwrap_or(rest))
}

/// The text after the time since the start, which some loggers print behind the date: `0:01:23 - `.
#[inline]
fn after_duration(text: &str) -> Option<&str> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (duration, rest) = text.split_once(" - ")?;
    let clock = match duration.split_once(", ") {
        Some((days, clock)) if days.ends_with("day") || days.ends_with("days") => clock,
        _ => duration,
    };
    is_duration(clock).then(|| rest.trim_ascii_start())
}

/// `May 01 10:00:00 host name[123]: `, `Fri May  1 10:00:00 2026 `.
pub(super) fn named_stamp<'a>(found: &mut Stripped<'a>, before: &mut Before) -> Option<&'a str> {
    if !may_be_named(found.text) {
        return None;
    }
    let (_, rest) = stamp(found.text)?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    if !rest.starts_with(' ') {
        return None;
    }
    before.see_stamp();
    before.named_date = true;
    let rest = rest.trim_start();
    // MPI puts its own brackets there, without a space.
    let ends = |after: &str| after.starts_with([' ', '\t']) || launchers::is_stream(after);
    let year = number(rest).filter(|(year, after)| (1970..9999).contains(year) && ends(after));
    let rest = year.map_or(rest, |(_, after)| after.trim_start());
    // The host precedes the process.
    let process = rest.split_once(' ').filter(|(host, process)| {
        !host.contains([':', '='])
            && numbered_word(process)
                .is_some_and(|(name, after)| name.ends_with(']') && after.starts_with(": "))
    });
    Some(process.map_or(rest, |(_, process)| process))
}

/// A date and time, or a time alone.
fn any_stamp(text: &str) -> Option<(Option<f64>, &str)> {
    stamp(text).or_else(|| time(text).map(|(_, rest)| (None, rest)))
}

/// `I0519 16:28:41.434724      12 main.go:136]`.
pub(super) fn klog(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(['I', 'W', 'E', 'F'])?;
    let (date, rest) = rest.split_at_checked(4)?;
    if !date.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (_, rest) = time(rest.strip_prefix(' ')?)?;
    let (place, rest) = rest.split_once("] ")?;
    (place.len() <= MAX_LEN).then_some(rest)
}

/// The text after a level such as `INFO`, or after `INFO:root:`.
pub(super) fn level(text: &str) -> Option<&str> {
    let first = text.as_bytes().first()?;
    if !matches!(first, b'C'..=b'F' | b'I' | b'N' | b'S' | b'T' | b'W') {
        return None;
    }
    let alike = LEVELS.iter().filter(|level| level.as_bytes().first() == Some(first));
    let rest = alike.into_iter().find_map(|level| text.strip_prefix(level))?;
    if let Some((logger, after)) = rest.strip_prefix(':').and_then(|rest| rest.split_once(':'))
        && is_identifier(logger)
        && !counts(logger)
        && !logger.ends_with("oss")
    {
        return Some(after);
    }
    (rest.is_empty() || rest.starts_with([' ', '\t', ':', ']', '-', '|'])).then_some(rest)
}

/// The text after a level in any case.
fn leveled(text: &str) -> Option<&str> {
    LEVELS.iter().find_map(|level| {
        let (start, rest) = text.split_at_checked(level.len())?;
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        (start.eq_ignore_ascii_case(level) && ends).then_some(rest)
    })
}

/// `(trainer:464) `, `(main.py 232): ` after a time: a place in the code. Or a level: `(INFO): `.
pub(super) fn place(text: &str, before: Before) -> Option<&str> {
    let (inside, rest) = text.strip_prefix('(')?.split_once(')').filter(|_| before.stamp)?;
    if leveled(inside).is_some_and(str::is_empty) {
        return Some(separator(rest));
    }
    let digits = inside.trim_end_matches(|c: char| c.is_ascii_digit());
    let name = digits.strip_suffix([':', ' '])?;
    // `(Epoch 3)` is the program's own text.
    let is_place = digits.len() < inside.len()
        && is_identifier(name)
        && inside.len() <= MAX_LEN
        && !counts(name);
    is_place.then(|| separator(rest))
}

/// The text after a logger's name: `__main__ - `, `train.py:12 - `, `name - INFO - `, `ppdet.engine INFO: `.
pub(super) fn name<'a>(text: &'a str, before: &mut Before) -> Option<&'a str> {
    let (name, rest) = first_word(text)?;
    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        // A name such as `44k`, between tabs.
        let text = rest.strip_prefix('\t').filter(|_| before.stamp && !before.level)?;
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let rest = level(text).filter(|_| is_word)?.strip_prefix('\t')?;
        before.level = true;
        return Some(rest);
    }
    if before.stamp
        && !before.level
        && let Some(rest) = after_level(text)
        && !counts(name)
    {
        before.level = true;
        return Some(rest);
    }
    if let Some(module) = name.strip_suffix(':').filter(|_| before.stamp) {
        // The state of a job in a service, before the process: `running: [1,0]<stdout>:text`.
        let rest = rest.trim_ascii_start();
        if module.bytes().all(|byte| byte.is_ascii_lowercase()) && launchers::is_stream(rest) {
            return Some(rest);
        }
        let is_module = module.contains('.') && is_name(module) && !module.contains("loss");
        // A dollar sign parts the names of nested classes of Java.
        let is_nested = || {
            module.split_once('$').is_some_and(|(outer, inner)| is_name(outer) && is_name(inner))
        };
        let is_text = rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '[');
        let of_log4j = || before.level && is_text && is_class(module);
        return ((is_module && !counts(name)) || is_nested() || of_log4j()).then_some(rest);
    }
    if !matches!(rest.as_bytes(), [b' ', b'-' | b'|' | b'>' | b':', ..]) {
        return None;
    }
    if let Some(rest) = rest.strip_prefix(" : ") {
        return is_module(name, *before).then_some(rest);
    }
    let rest = rest
        .strip_prefix(" - ")
        .or_else(|| rest.strip_prefix(" | "))
        .or_else(|| rest.strip_prefix(" >> "))?;
    let next_is_level = precedes_text(rest) || second_name(rest).is_some_and(precedes_text);
    let is_place = || name.starts_with("__") || name.contains(['.', ':', '_']);
    // Behind a time and a level: `INFO GraphTrainer - text`.
    let is_text = rest.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_class = || before.stamp && before.level && is_text && is_class(name);
    let is_logger = next_is_level || is_place() || NAMES.contains(&name) || is_class();
    (is_logger && !counts(name)).then_some(rest)
}

/// Whether a level and a separator are at the start of `text`.
fn precedes_text(text: &str) -> bool {
    level(text).is_some_and(|after| separator(after).len() < after.len())
}

/// The text after another name at the start of `text`: that of the process before `colossalai - INFO: `.
fn second_name(text: &str) -> Option<&str> {
    let (name, rest) = first_word(text)?;
    rest.strip_prefix(" - ").filter(|_| is_name(name))
}

/// Whether a name with points, behind a time and a level, is that of a module: `trainer.history : text`.
fn is_module(name: &str, before: Before) -> bool {
    let of_loss = || name.as_bytes().windows(4).any(|word| word.eq_ignore_ascii_case(b"loss"));
    let is_name = before.stamp && before.level && name.contains('.') && is_name(name);
    is_name && !counts(name) && names::held_out_by(name).is_none() && !of_loss()
}

/// Whether a name is that of a class which logs: `GraphTrainer`, but not `ValPhase` or `TrainLoss`.
fn is_class(name: &str) -> bool {
    let is_hump = |pair: &[u8]| matches!(pair, [first, second] if !first.is_ascii_uppercase() && second.is_ascii_uppercase());
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && name.as_bytes().windows(2).any(is_hump)
        && !name.contains("Loss")
        && names::held_out_by(name).is_none()
}

/// The text after the number of a process before names and a level: `0 - pkg.mod - mod.py:12 - INFO`.
#[inline(never)]
pub(super) fn indexed(text: &str, before: Before) -> Option<&str> {
    let (_, rest) = number(text).filter(|_| before.stamp)?;
    let names = rest.strip_prefix(" - ")?;
    let mut rest = names;
    for _ in 0..MAX_NAMES {
        let (name, after) = rest.split_once(" - ")?;
        if !is_name(name) {
            return None;
        }
        if level(after).is_some() {
            return Some(names);
        }
        rest = after;
    }
    None
}

/// The text after the name of a module at the start of a line: `pkg.train.loop - `.
#[inline(never)]
pub(super) fn module(text: &str) -> Option<&str> {
    let (name, rest) = first_word(text)?;
    let rest = rest.strip_prefix(" - ")?;
    let mut parts = name.split('.');
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_module = parts.clone().nth(1).is_some() && parts.all(is_part);
    is_module.then_some(rest)
}

/// The text after a level that follows some names: `host:0 pkg.train:77 INFO text`.
fn after_level(text: &str) -> Option<&str> {
    let mut rest = text;
    for _ in 0..MAX_NAMES {
        let (name, after) = first_word(rest)?;
        rest = after.trim_ascii_start();
        if let Some(after) = level(rest) {
            let is_last = name.contains(['.', ':', '_', '[', '-'])
                || name.bytes().any(|b| b.is_ascii_digit());
            return is_last.then(|| separator(after));
        }
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:/[]()".contains(&byte)) {
            return None;
        }
    }
    None
}

/// The word before the first space or tab, and the text from there on.
fn first_word(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let bytes = bytes.get(..=MAX_LEN).unwrap_or(bytes);
    text.split_at_checked(bytes.iter().position(|byte| matches!(byte, b' ' | b'\t'))?)
}

/// Maximum number of names before a level.
const MAX_NAMES: usize = 4;

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

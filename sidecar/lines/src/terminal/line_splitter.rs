//! Splits a stream of bytes into the lines and frames that a terminal would show.

use memchr::memchr2_iter;

use super::escape::{Effect, Escape};

/// Maximum length of a line in bytes; the rest is counted and dropped.
pub const MAX_LINE_LEN: usize = 64 * 1024;

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `\n` or `\r\n`.
    Newline,
    /// The cursor moved back, so the next frame overwrites this one.
    Return,
    /// Not ended yet. The source is quiet, and the same line may come again with more text.
    Flush,
}

/// One line or frame, without control bytes and escape sequences; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The text; invalid UTF-8 is replaced by U+FFFD.
    pub text: &'a str,
    /// How it ended.
    pub end: End,
    /// The number of bytes dropped because it is longer than [`MAX_LINE_LEN`].
    pub cut: u64,
}

/// Splits a stream of bytes into lines and frames.
///
/// The stream may be split anywhere between calls. At most [`MAX_LINE_LEN`] bytes of a line are
/// held. A frame ends when the next one begins, so the last one needs [`LineSplitter::flush`].
/// Backspaces move the cursor, and the next text overwrites what stands there. Back to the start of the
/// frame they count as a return. Other control bytes, except tabs, are dropped.
#[derive(Debug, Default)]
pub struct LineSplitter {
    /// The pending line.
    line: Vec<u8>,
    /// The number of its dropped bytes.
    beyond: u64,
    escape: Escape,
    /// The cursor is at the start: the pending line is a complete frame, or a line if `\n` follows.
    returned: bool,
    /// The number of characters from the cursor to the end of the pending line.
    back: usize,
    /// The flushed length of the pending line.
    flushed: usize,
    cut: u64,
    cut_lines: u64,
}

/// Bytes scanned at once before their lines are emitted. A larger block would make a control byte
/// more expensive.
const BLOCK: usize = 4096;
const PIECE: usize = 64;
const BACKSPACE: u8 = 8;
/// How far back text may be written, in characters. Lines of terminals are shorter.
const MAX_BACK: usize = 1024;
const ESC: u8 = 0x1b;

impl LineSplitter {
    /// Creates an empty splitter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and passes each line that ends in them to `sink`.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.escape == Escape::None {
                if self.returned && rest.first().is_some_and(|byte| !is_control(*byte)) {
                    self.end(End::Return, sink);
                }
                if self.line.is_empty() && self.beyond == 0 {
                    rest = Self::whole_lines(rest, sink);
                }
            }
            rest = self.piece(rest, sink);
        }
    }

    /// `bytes` bytes of the source are missing before the next ones. The line around them counts as
    /// cut.
    pub fn gap(&mut self, bytes: u64) {
        self.escape = Escape::None;
        // What ended the pending frame may be among the missing bytes, or its next frame.
        self.returned = false;
        self.back = 0;
        self.beyond = self.beyond.saturating_add(bytes);
    }

    /// Emits the pending text when the source is quiet. Later bytes continue the same line.
    pub fn flush(&mut self, sink: &mut impl FnMut(Line<'_>)) {
        if self.returned {
            return self.end(End::Return, sink);
        }
        if self.line.len() > self.flushed {
            self.flushed = self.line.len();
            emit(whole_characters(&self.line), End::Flush, self.beyond, sink);
        }
    }

    /// Emits the pending text as a complete line. For use when the source has ended.
    pub fn finish(&mut self, sink: &mut impl FnMut(Line<'_>)) {
        self.escape = Escape::None;
        self.end(End::Newline, sink);
    }

    /// The number of bytes dropped from lines longer than [`MAX_LINE_LEN`], or missing in them.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// The number of these lines.
    pub fn cut_lines(&self) -> u64 {
        self.cut_lines
    }

    /// Emits the plain lines at the start of `bytes` without copying them.
    fn whole_lines<'a>(bytes: &'a [u8], sink: &mut impl FnMut(Line<'_>)) -> &'a [u8] {
        let mut rest = bytes;
        loop {
            let (block, _) = rest.split_at(rest.len().min(BLOCK));
            let block = plain(block);
            let mut start = 0;
            for at in memchr2_iter(b'\n', b'\r', block.as_bytes()) {
                // The `\n` of a line that was already emitted.
                if at < start {
                    continue;
                }
                let (Some(line), Some(ended)) = (block.get(start..at), rest.get(at..)) else {
                    break;
                };
                let (end, length) = match ended {
                    [b'\n', ..] => (End::Newline, 1),
                    [b'\r', b'\n', ..] => (End::Newline, 2),
                    [_, ..] if line.is_empty() => (End::Return, 1),
                    [_, next, ..] if !is_control(*next) => (End::Return, 1),
                    _ => break,
                };
                if !line.is_empty() {
                    sink(Line { text: line, end, cut: 0 });
                }
                start = at + length;
            }
            if start == 0 {
                return rest;
            }
            rest = rest.get(start..).unwrap_or_default();
        }
    }

    /// Takes the text before the next control byte, and that byte.
    fn piece<'a>(&mut self, bytes: &'a [u8], sink: &mut impl FnMut(Line<'_>)) -> &'a [u8] {
        if self.escape != Escape::None {
            return self.sequence(bytes);
        }
        let run = bytes.iter().position(|byte| is_control(*byte)).unwrap_or(bytes.len());
        let (text, after) = bytes.split_at(run);
        if !text.is_empty() {
            self.write(text, sink);
        }
        let Some((control, after)) = after.split_first() else { return &[] };
        match *control {
            b'\n' => self.end(End::Newline, sink),
            b'\r' => self.go_to_start(),
            BACKSPACE if !self.line.is_empty() => self.back += 1,
            ESC => self.escape = Escape::Begun,
            _ => {}
        }
        after
    }

    fn sequence<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let mut rest = bytes;
        while let Some((byte, after)) = rest.split_first() {
            match self.escape.take(*byte) {
                Effect::Inside => {}
                Effect::Nothing => return after,
                Effect::Moved => {
                    self.go_to_start();
                    return after;
                }
                Effect::Foreign => return rest,
            }
            rest = after;
        }
        rest
    }

    fn go_to_start(&mut self) {
        self.back = 0;
        self.returned = !self.line.is_empty();
    }

    fn write(&mut self, text: &[u8], sink: &mut impl FnMut(Line<'_>)) {
        if self.returned {
            self.end(End::Return, sink);
        } else if self.back > 0 {
            return self.overwrite(text, sink);
        }
        let room = MAX_LINE_LEN.saturating_sub(self.line.len());
        let (kept, beyond) = text.split_at(room.min(text.len()));
        self.line.extend_from_slice(kept);
        self.beyond += count(beyond.len());
    }

    /// Puts `text` in the place of as many characters before the end of the line.
    fn overwrite(&mut self, text: &[u8], sink: &mut impl FnMut(Line<'_>)) {
        let first_bytes = self.line.iter().enumerate().rev().filter(|(_, byte)| begins(**byte));
        let at = first_bytes.map(|(at, _)| at).nth(self.back.saturating_sub(1));
        let Some(at) = at.filter(|at| *at > 0) else {
            self.end(End::Return, sink);
            return self.write(text, sink);
        };
        let tail = if self.back > MAX_BACK { Vec::new() } else { self.line.split_off(at) };
        self.line.truncate(at);
        self.flushed = self.flushed.min(at);
        self.back = 0;
        self.write(text, sink);
        let over = text.iter().filter(|byte| begins(**byte)).count();
        let starts = tail.iter().enumerate().filter(|(_, byte)| begins(**byte));
        let rest = starts.map(|(at, _)| at).nth(over).and_then(|at| tail.get(at..));
        if let Some(rest) = rest {
            self.write(rest, sink);
            self.back = rest.iter().filter(|byte| begins(**byte)).count();
        }
    }

    fn end(&mut self, end: End, sink: &mut impl FnMut(Line<'_>)) {
        if !self.line.is_empty() {
            emit(&self.line, end, self.beyond, sink);
            self.cut = self.cut.saturating_add(self.beyond);
            self.cut_lines += u64::from(self.beyond > 0);
        }
        self.line.clear();
        self.beyond = 0;
        self.back = 0;
        self.flushed = 0;
        self.returned = false;
    }
}

fn emit(bytes: &[u8], end: End, cut: u64, sink: &mut impl FnMut(Line<'_>)) {
    match std::str::from_utf8(bytes) {
        Ok("") => {}
        Ok(text) => sink(Line { text, end, cut }),
        Err(_) => sink(Line { text: &String::from_utf8_lossy(bytes), end, cut }),
    }
}

/// `bytes` without an incomplete character at its end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_begun = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if is_begun { bytes.strip_suffix(last).unwrap_or(bytes) } else { bytes }
}

/// Whether a byte is the first one of a character.
fn begins(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

fn is_control(byte: u8) -> bool {
    byte < b' ' && byte != b'\t'
}

/// The longest start of `bytes` that contains only text, tabs and line ends.
fn plain(bytes: &[u8]) -> &str {
    // Without an early exit within a piece, the compiler can vectorise the loop.
    let strange =
        |piece: &&[u8; PIECE]| piece.iter().fold(false, |any, byte| any | is_strange(*byte));
    let (pieces, _) = bytes.as_chunks();
    let clean = pieces.iter().take_while(|piece| !strange(piece)).count() * PIECE;
    let (clean, rest) = bytes.split_at(clean);
    let more = rest.iter().take_while(|byte| !is_strange(**byte)).count();
    let (clean, _) = bytes.split_at(clean.len() + more);
    match std::str::from_utf8(clean) {
        Ok(text) => text,
        Err(error) => {
            let (text, _) = clean.split_at(error.valid_up_to());
            std::str::from_utf8(text).unwrap_or_default()
        }
    }
}

fn is_strange(byte: u8) -> bool {
    is_control(byte) && byte != b'\n' && byte != b'\r'
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

//! A stream of bytes as the lines and frames that a terminal would show.

use memchr::memchr2_iter;

use super::escape::{Effect, Escape};

/// So many bytes of one line are kept; the rest is counted and dropped.
pub const KEPT: usize = 64 * 1024;

/// What ended a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `\n` or `\r\n`.
    Newline,
    /// The cursor went back: the next frame is written over this one.
    Return,
    /// Nothing yet: the source is quiet, and the same line may come again with more of it.
    Flush,
}

/// One line or frame, without control bytes and escape sequences; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The text; bytes that are not UTF-8 are shown as U+FFFD.
    pub text: &'a str,
    /// What ended it.
    pub end: End,
    /// How many of its bytes were dropped because it is longer than [`KEPT`].
    pub cut: u64,
}

/// Splits a stream of bytes into lines and frames.
///
/// Where the stream is split between calls makes no difference. At most [`KEPT`] bytes of a line
/// are held. A frame ends when the next one begins, so the last one shows by [`Screen::flush`].
/// A run of backspaces takes away what it goes back over if text follows, and is a return if it
/// goes back over the whole frame. Other control bytes, apart from tabs, are dropped.
#[derive(Debug, Default)]
pub struct Screen {
    /// The pending line.
    line: Vec<u8>,
    /// How much of it was dropped.
    beyond: u64,
    escape: Escape,
    /// The pending line is a whole frame, or a line if `\n` follows.
    returned: bool,
    backspaces: usize,
    /// How much of the pending line has been flushed.
    flushed: usize,
    cut: u64,
}

/// So many bytes are looked at before their lines are handed out: with more, one strange byte would
/// cost more.
const BLOCK: usize = 4096;
const PIECE: usize = 64;
const BACKSPACE: u8 = 8;
const ESC: u8 = 0x1b;

impl Screen {
    /// An empty screen.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and hands each line that ends in them to `sink`.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.escape == Escape::None {
                if self.returned && rest.first().is_some_and(|byte| !is_control(*byte)) {
                    self.end(End::Return, sink);
                }
                if self.line.is_empty() {
                    rest = Self::whole_lines(rest, sink);
                }
            }
            rest = self.piece(rest, sink);
        }
    }

    /// Hands out what is pending, for when the source has been quiet. What follows continues it.
    pub fn flush(&mut self, sink: &mut impl FnMut(Line<'_>)) {
        if self.returned {
            return self.end(End::Return, sink);
        }
        if self.line.len() > self.flushed {
            self.flushed = self.line.len();
            emit(whole_characters(&self.line), End::Flush, self.beyond, sink);
        }
    }

    /// Hands out what is pending as a line, for when the source has ended in good order.
    pub fn finish(&mut self, sink: &mut impl FnMut(Line<'_>)) {
        self.escape = Escape::None;
        self.end(End::Newline, sink);
    }

    /// How many bytes have been dropped from lines longer than [`KEPT`].
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Hands out the plain lines at the start of `bytes` without copying them.
    fn whole_lines<'a>(bytes: &'a [u8], sink: &mut impl FnMut(Line<'_>)) -> &'a [u8] {
        let mut rest = bytes;
        loop {
            let (block, _) = rest.split_at(rest.len().min(BLOCK));
            let block = plain(block);
            let mut start = 0;
            for at in memchr2_iter(b'\n', b'\r', block.as_bytes()) {
                // The `\n` of a line that has been handed out.
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

    /// Takes what stands before the next control byte, and that byte.
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
            BACKSPACE if !self.line.is_empty() => self.backspaces += 1,
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
        self.backspaces = 0;
        self.returned = !self.line.is_empty();
    }

    fn write(&mut self, text: &[u8], sink: &mut impl FnMut(Line<'_>)) {
        if self.returned {
            self.end(End::Return, sink);
        } else if self.backspaces > 0 {
            self.go_back(sink);
        }
        let room = KEPT.saturating_sub(self.line.len());
        let (kept, beyond) = text.split_at(room.min(text.len()));
        self.line.extend_from_slice(kept);
        self.beyond += count(beyond.len());
    }

    fn go_back(&mut self, sink: &mut impl FnMut(Line<'_>)) {
        let first_bytes = self.line.iter().enumerate().rev().filter(|(_, byte)| begins(**byte));
        match first_bytes.map(|(at, _)| at).nth(self.backspaces.saturating_sub(1)) {
            Some(at) if at > 0 => {
                self.line.truncate(at);
                self.flushed = self.flushed.min(at);
                self.backspaces = 0;
            }
            _ => self.end(End::Return, sink),
        }
    }

    fn end(&mut self, end: End, sink: &mut impl FnMut(Line<'_>)) {
        if !self.line.is_empty() {
            emit(&self.line, end, self.beyond, sink);
            self.cut += self.beyond;
        }
        self.line.clear();
        self.beyond = 0;
        self.backspaces = 0;
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

/// `bytes` without the beginning of a character at its end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_begun = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if is_begun { bytes.strip_suffix(last).unwrap_or(bytes) } else { bytes }
}

/// Whether a byte is the first of a character.
fn begins(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

fn is_control(byte: u8) -> bool {
    byte < b' ' && byte != b'\t'
}

/// The start of `bytes` that is text, tabs, and ends of lines.
fn plain(bytes: &[u8]) -> &str {
    // Without an early exit within a piece, many bytes are looked at at a time.
    let strange = |piece: &&[u8]| piece.iter().fold(false, |any, byte| any | is_strange(*byte));
    let clean = bytes.chunks(PIECE).take_while(|piece| !strange(piece)).map(<[u8]>::len).sum();
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

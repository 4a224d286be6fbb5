//! Escape sequences: where they end, and whether they begin another frame.

/// The position within an escape sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Escape {
    /// Not in a sequence.
    #[default]
    None,
    /// After `ESC`.
    Begun,
    /// After `ESC` and an intermediate byte, as in `ESC ( B`.
    Charset,
    /// In a control sequence, with its first parameter so far.
    Control { column: u32, more: bool },
    /// In a title or similar text, which ends with `BEL` or `ESC \`.
    Text,
    /// After an `ESC` in a title.
    TextEnd,
}

/// The effect of a byte on a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It is part of the sequence.
    Inside,
    /// It ends a sequence that does not move the cursor to another line or to the line's start.
    Nothing,
    /// It ends a sequence that moves the cursor to the line's start or to another line.
    Moved,
    /// It cannot be part of the sequence, which is dropped. The byte is read as text.
    Foreign,
}

const BEL: u8 = 7;
const ESC: u8 = 0x1b;

impl Escape {
    /// Takes the next byte.
    pub(super) fn take(&mut self, byte: u8) -> Effect {
        let (next, effect) = self.after(byte);
        *self = next;
        effect
    }

    fn after(self, byte: u8) -> (Self, Effect) {
        // A newline is never part of a sequence: a broken sequence must not swallow the log.
        if matches!(byte, b'\n' | b'\r') {
            return (Self::None, Effect::Foreign);
        }
        match self {
            Self::None => (Self::None, Effect::Foreign),
            Self::Begun => match byte {
                b'[' => (Self::Control { column: 0, more: false }, Effect::Inside),
                b']' | b'P' | b'X' | b'^' | b'_' => (Self::Text, Effect::Inside),
                b' '..=b'/' => (Self::Charset, Effect::Inside),
                ESC => (Self::Begun, Effect::Inside),
                b'0'..=b'~' => (Self::None, Effect::Nothing),
                _ => (Self::None, Effect::Foreign),
            },
            Self::Charset => match byte {
                b' '..=b'/' => (Self::Charset, Effect::Inside),
                b'0'..=b'~' => (Self::None, Effect::Nothing),
                ESC => (Self::Begun, Effect::Inside),
                _ => (Self::None, Effect::Foreign),
            },
            Self::Control { column, more } => control(column, more, byte),
            Self::Text | Self::TextEnd => match byte {
                BEL => (Self::None, Effect::Nothing),
                b'\\' if self == Self::TextEnd => (Self::None, Effect::Nothing),
                b'[' if self == Self::TextEnd => {
                    (Self::Control { column: 0, more: false }, Effect::Inside)
                }
                ESC => (Self::TextEnd, Effect::Inside),
                _ => (Self::Text, Effect::Inside),
            },
        }
    }
}

fn control(column: u32, more: bool, byte: u8) -> (Escape, Effect) {
    match byte {
        b'0'..=b'9' if !more => {
            let column = column.saturating_mul(10).saturating_add(u32::from(byte - b'0'));
            (Escape::Control { column, more }, Effect::Inside)
        }
        b' '..=b'?' => (Escape::Control { column, more: true }, Effect::Inside),
        b'A' | b'B' | b'E' | b'F' | b'H' | b'd' | b'f' => (Escape::None, Effect::Moved),
        b'G' if column <= 1 => (Escape::None, Effect::Moved),
        b'@'..=b'~' => (Escape::None, Effect::Nothing),
        ESC => (Escape::Begun, Effect::Inside),
        _ => (Escape::None, Effect::Foreign),
    }
}

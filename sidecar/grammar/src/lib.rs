//! Parses the lines of training programs: one parser per program, and rules for all other lines.
//!
//! A [`Detector`] recognises which program's lines it is given and turns them into
//! [`Observation`]s. [`Patterns`] are added by the user. A [`Reader`] takes bytes.

mod boosting;
mod columns;
mod detection;
mod detector;
mod dict;
mod draft;
mod fastprogress;
mod flax;
mod held;
mod hugging_face;
mod json;
mod keras;
mod key_value;
mod keys;
mod language;
mod megatron;
mod mllog;
mod older;
mod others;
mod patterns;
mod pytorch;
mod reader;
mod restoration;
mod shape;
mod speech;
mod table;
#[cfg(test)]
mod testing;
mod totals;
mod tqdm;
mod tuples;
mod vision;
mod vowpal;

pub use detector::{Counts, Detector, Fate, Match, Traced};
pub use patterns::{PatternError, Patterns};
pub use reader::Reader;

use paceline_lines::observation::Observation;
use paceline_lines::terminal::End;

use draft::Draft;

/// Bytes of dicts and bars: a brace, a bracket, and the first byte of the characters of bars.
const MARKS: [u8; 3] = [b'{', b'[', 0xe2];

/// The lines of one program or framework.
trait Grammar: std::fmt::Debug + Send {
    /// Its common name.
    fn name(&self) -> &'static str;

    /// Reads a line or frame, stripped of white space and prefixes. Writes the observation into
    /// `draft`, which is empty, and empties it again if there is none.
    fn read(&mut self, line: &str, end: End, draft: &mut Draft) -> Reading;

    /// Whether one of its lines may start with `byte`. It gets only such lines.
    fn starts(&self, _byte: u8) -> bool {
        true
    }

    /// Whether the second byte of one of its lines may be `byte`.
    fn goes_on(&self, _byte: u8) -> bool {
        true
    }

    /// Whether each of its lines has one of the [`MARKS`].
    fn has_mark(&self) -> bool {
        false
    }

    /// Whether it reads dicts, whose step may be in a heading above them.
    fn is_of_dicts(&self) -> bool {
        false
    }

    /// Whether it reads bars, whose frames have no end until the bar is redrawn. Only such a
    /// grammar gets incomplete lines and blank frames.
    fn is_of_bars(&self) -> bool {
        false
    }

    /// Whether the last frame that it has read is of a bar of held-out data that is not at its end.
    fn evaluates(&self) -> bool {
        false
    }
}

/// The result of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// The line does not belong to this grammar.
    Foreign,
    /// It belongs to this grammar but contains nothing new.
    Known,
    /// A frame of the bar that counts the steps of the training, without losses. `moved`: the
    /// counter has advanced.
    Bar { moved: bool },
    /// It contains an observation.
    Says,
    /// It contains an observation whose step is in the next frame of the bar, if there is a bar.
    SaysBeforeBar,
}

impl Reading {
    /// `Says` with `found` in the draft, or `otherwise` if there is none.
    fn from_found(found: Option<Observation>, draft: &mut Draft, otherwise: Self) -> Self {
        match found {
            Some(found) => {
                draft.found = found;
                Self::Says
            }
            None => otherwise,
        }
    }
}

//! What a line says.
//!
//! A [`Detector`] finds out by itself which program's lines it is given and turns them into
//! [`Observation`]s; [`Patterns`] are what a person adds to it; a [`Reader`] takes bytes.

mod boosting;
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
mod others;
mod patterns;
mod pytorch;
mod reader;
mod scan;
mod shape;
mod table;
#[cfg(test)]
mod testing;
mod tqdm;
mod vision;

pub use detector::{Counts, Detector, Match};
pub use patterns::{PatternError, Patterns};
pub use reader::Reader;

use crate::observation::Observation;
use crate::terminal::End;
use draft::Draft;

/// The lines of one program or framework.
trait Grammar: std::fmt::Debug + Send {
    /// What people call it.
    fn name(&self) -> &'static str;

    /// Reads a line or frame without white space and prefixes around it. What it says goes into
    /// `draft`, which is clear, and is so again if it says nothing.
    fn read(&mut self, line: &str, end: End, draft: &mut Draft) -> Reading;

    /// Whether one of its lines may start with `byte`; it is not given others.
    fn starts(&self, _byte: u8) -> bool {
        true
    }

    /// Whether it is of bars, whose frames have no end until they are drawn anew: only such a
    /// grammar is given what has not ended, and frames that are blank.
    fn is_of_bars(&self) -> bool {
        false
    }
}

/// What a grammar makes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// It is not of this grammar.
    Foreign,
    /// It is, and says nothing new.
    Known,
    /// It is a frame of the bar that counts the steps of the training without their losses, and
    /// its counter has `moved` or not.
    Bar { moved: bool },
    /// It says something.
    Says,
    /// It says something whose step is in the bar, if there is one, as it is drawn next.
    SaysBeforeBar,
}

impl Reading {
    /// Says what is `told`, if anything; or else is `otherwise`.
    fn of(told: Option<Observation>, draft: &mut Draft, otherwise: Self) -> Self {
        match told {
            Some(told) => {
                draft.found = told;
                Self::Says
            }
            None => otherwise,
        }
    }
}

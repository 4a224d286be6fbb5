//! How the columns of a table are parted.

use super::{BARS, MAX_COLUMNS};

/// How the cells of a row are parted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Parted {
    /// By bars, also around them.
    Bars,
    /// By commas.
    Commas,
    /// By semicolons. Its numbers may have decimal commas.
    Semicolons,
    /// By gaps: of at least two spaces between names.
    #[default]
    Gaps,
}

impl Parted {
    pub(super) fn of(line: &str) -> Self {
        if line.starts_with(BARS) || line.matches(" | ").count() > 1 {
            Self::Bars
        } else if line.contains(',') && !line.contains('\t') && is_list(line, ',') {
            Self::Commas
        } else if line.contains(';') && !line.contains('\t') && is_list(line, ';') {
            Self::Semicolons
        } else {
            Self::Gaps
        }
    }

    /// The names in a header, and where each begins.
    pub(super) fn names(self, line: &str) -> Vec<(usize, &str)> {
        let most = MAX_COLUMNS + 1;
        match self {
            Self::Bars => {
                inside(line).split(BARS).take(most).map(|name| (0, name.trim())).collect()
            }
            Self::Commas => line.split(',').take(most).map(|name| (0, name.trim())).collect(),
            Self::Semicolons => line.split(';').take(most).map(|name| (0, name.trim())).collect(),
            Self::Gaps => pieces(line, true),
        }
    }
}

/// Whether the names between marks are words without spaces, as in `step, train_loss, lr`, or at least three short
/// names.
fn is_list(line: &str, mark: char) -> bool {
    let names = || line.split(mark).map(|name| name.trim_matches(' '));
    let is_short = |name: &str| {
        let starts = name.starts_with(|c: char| c.is_alphabetic());
        starts && name.split(' ').count() <= MAX_WORDS && !name.ends_with('.')
    };
    // Files have no spaces behind the marks, unlike sentences.
    let is_of_file = || line.split(mark).all(|name| !name.starts_with(' '));
    names().all(|name| !name.contains(' '))
        || (names().nth(2).is_some() && is_of_file() && names().all(is_short))
}

/// Maximum number of words of a name in a list.
const MAX_WORDS: usize = 3;

/// A row without the bars around it.
pub(super) fn inside(line: &str) -> &str {
    let inside = line.strip_prefix(BARS).unwrap_or(line).trim_end();
    inside.strip_suffix(BARS).unwrap_or(inside)
}

/// The pieces of a line between gaps, and where each begins. `is_wide`: a gap is a tab or at least two
/// spaces.
pub(super) fn pieces(line: &str, is_wide: bool) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    let mut rest = line;
    while all.len() <= MAX_COLUMNS {
        rest = rest.trim_start();
        let at = line.len() - rest.len();
        let end = if is_wide {
            rest.find('\t').into_iter().chain(rest.find("  ")).min()
        } else {
            rest.find(char::is_whitespace)
        };
        let Some((piece, after)) = rest.split_at_checked(end.unwrap_or(rest.len())) else { break };
        if piece.is_empty() {
            break;
        }
        all.push((at, piece));
        rest = after;
    }
    all
}

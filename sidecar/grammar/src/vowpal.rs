//! The table of Vowpal Wabbit, whose columns have their names on two lines.

use paceline_lines::observation::{Phase, Span};
use paceline_lines::scan;
use paceline_lines::terminal::End;

use super::draft::Draft;
use super::{Grammar, Reading};

/// `0.333 0.166 2 2.0 0.0 0.4 15`: the mean of the run, that since the row before, and the number of
/// examples, which are its steps.
#[derive(Debug, Default)]
pub(super) struct VowpalWabbit {
    /// The second line of names has come, and the end of the run has not.
    in_table: bool,
    ended: bool,
}

impl Grammar for VowpalWabbit {
    fn name(&self) -> &'static str {
        "vowpal wabbit"
    }

    fn starts(&self, byte: u8) -> bool {
        byte.is_ascii_digit() || matches!(byte, b'l' | b'f' | b'a')
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        match line.as_bytes().first() {
            Some(b'l') => {
                let names = line.split_whitespace().take(4);
                if names.eq(["loss", "last", "counter", "weight"]) {
                    (self.in_table, self.ended) = (true, false);
                    return Reading::Known;
                }
            }
            Some(b'f') if self.in_table && line == "finished run" => {
                (self.in_table, self.ended) = (false, true);
                return Reading::Known;
            }
            // It repeats the mean of the last row.
            Some(b'a') if self.ended && line.starts_with("average loss = ") => {
                return Reading::Known;
            }
            Some(b'0'..=b'9') if self.in_table && row(line, draft).is_some() => {
                return Reading::Says;
            }
            _ => {}
        }
        Reading::Foreign
    }
}

fn row(line: &str, draft: &mut Draft) -> Option<()> {
    let mut cells = line.split_whitespace();
    let mean = scan::whole(cells.next()?)?;
    let since = scan::whole(cells.next()?)?;
    let (step, "") = scan::count(cells.next()?)? else { return None };
    let weight = scan::whole(cells.next()?)?;
    // The rest is about the last example.
    if cells.count() < 3 || !weight.is_finite() {
        return None;
    }
    draft.found.step = Some(step);
    draft.push("since last loss", Phase::Train, Span::Interval, since);
    draft.push("average loss", Phase::Train, Span::Run, mean);
    Some(())
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn table_of_vowpal_wabbit() {
        let table = [
            ("0.5 0.5 1 1.0 1.0 0.5 12", ""),
            ("average  since         example        example  current  current  current", ""),
            ("loss     last          counter         weight    label  predict features", ""),
            (
                "0.750000 0.750000            1            1.0   1.0000   0.2500       12",
                "step 1, since last loss=0.75 Interval, average loss=0.75 Run",
            ),
            (
                "0.500000 0.250000            2            2.0   0.0000   0.5000       15",
                "step 2, since last loss=0.25 Interval, average loss=0.5 Run",
            ),
            ("0.5 0.25", ""),
            ("finished run", ""),
            ("average loss = 0.500000", ""),
            ("0.5 0.5 4 4.0 1.0 0.5 12", ""),
        ];
        check("vowpal wabbit", false, &table);
    }
}

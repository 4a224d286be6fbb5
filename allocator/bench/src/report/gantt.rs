//! A Gantt chart: when each job ran in each arm.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::grid::Cell;
use super::super::outcome::{ArmFindings, Findings, JobFacts};
use super::pictures::Shown;
use crate::figure::marked::Marked;
use crate::figure::palette::{GREY, GRID, INK, colour};
use crate::figure::scale::{mark_text, time_marks};
use crate::figure::{TEXT, inline};

/// Twice the width of a page of 1280 px without its margins.
const WIDTH: u32 = 2432;
/// The height of one bar including the gap to the next, also doubled.
const ROW: u32 = 52;
/// The mean width of a letter of a name.
const LETTER: usize = 17;
/// Room for the time axis below.
const BELOW: u32 = 100;
const MARGIN: u32 = 16;

/// Draws a bar from arrival to end for each job and arm, over `end` seconds.
pub(super) fn draw(findings: &Findings, shown: &[Shown<'_>], end: f64) -> anyhow::Result<String> {
    // The gap between two jobs is half a bar.
    let group = 2 * shown.len() + 1;
    let halves = u32::try_from(group * findings.about.jobs.len())?;
    let mut svg = String::new();
    let size = (WIDTH, halves * ROW / 2 + BELOW + MARGIN);
    let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    // The last bar's text is to the right of it.
    let reach = 1.12 * end;
    let mut chart = ChartBuilder::on(&root)
        .margin_top(MARGIN)
        .margin_right(24)
        .x_label_area_size(BELOW)
        .y_label_area_size(room_for_names(findings)?)
        .build_cartesian_2d(
            Marked { low: 0.0, high: reach, marks: time_marks(reach) },
            f64::from(halves)..0.0,
        )?;
    let font = ("sans-serif", TEXT).into_font();
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .y_labels(0)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(GREY)
        .label_style(font.clone().color(&INK))
        .x_desc("seconds after the run began")
        .x_label_formatter(&|t| mark_text(*t))
        .draw()?;
    let right = font.color(&INK).pos(Pos::new(HPos::Right, VPos::Center));
    let left = font.color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    for (place, facts) in findings.about.jobs.iter().enumerate() {
        for (row, Shown { arm, observed }) in shown.iter().enumerate() {
            let Some(job) = observed.recorded.run.jobs.get(place) else { continue };
            let top = f64::from(u32::try_from(place * group + 2 * row)?) + 0.75;
            let (from, to) = (job.arrived, job.ended);
            // The first arm's bars are pale, since the others are compared with them.
            let fill = colour(place).mix(if row == 0 { 0.45 } else { 1.0 }).filled();
            chart.draw_series([Rectangle::new([(from, top), (to, top + 1.5)], fill)])?;
            let at = |t| chart.as_coord_spec().translate(&(t, top + 0.75));
            let failure = observed.failure(job);
            let text = format!("{:.1} s", to - from);
            let figure = failure.unwrap_or_else(|| Cell::figure(text, arm.is_disturbed()).text);
            let ((zero, y), (beside, _)) = (at(0.0), at(to));
            root.draw(&Text::new(name(facts, arm), (zero - 16, y), right.clone()))?;
            root.draw(&Text::new(figure, (beside + 12, y), left.clone()))?;
        }
    }
    root.present()?;
    drop(chart);
    drop(root);
    Ok(inline(&svg, "When each job ran in each arm"))
}

fn name(facts: &JobFacts, arm: &ArmFindings) -> String {
    format!("{}, {}", facts.job.name, arm.facts.name)
}

/// The room that the longest name needs, up to a limit that leaves room for bars.
fn room_for_names(findings: &Findings) -> Result<u32, std::num::TryFromIntError> {
    let jobs = &findings.about.jobs;
    let names = jobs.iter().flat_map(|job| findings.arms.iter().map(|arm| name(job, arm)));
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    u32::try_from(48 + LETTER * longest.clamp(8, 72))
}

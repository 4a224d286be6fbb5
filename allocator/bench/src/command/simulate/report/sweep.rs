//! The report of a sweep: its heat maps.

use paceline_sim::scenario::Arm;
use paceline_sim::sweep::{Axis, Measured};

use super::super::sweep::{Map, Swept, shown};
use super::opening;
use crate::command::compared::LEAVES_OUT_JOBS;
use crate::figure::html::{each, escape};

/// The opacity of the largest figure's colour; text on it must stay readable.
const DEEPEST: f64 = 0.62;

/// The page.
pub(in crate::command::simulate) fn page(swept: &Swept<'_>) -> String {
    let seeds = usize::try_from(swept.seeds).unwrap_or(usize::MAX);
    let names: Vec<String> = swept.sweep.axes().iter().map(Axis::name).collect();
    let other = |(arm, figure): &(Arm, Option<Measured>)| {
        format!("<p>{}: {}</p>\n", escape(&arm.to_string()), escape(&shown(*figure)))
    };
    format!(
        "{}<h2>Heat map: {} by {}</h2>\n<p class=\"note\">{}</p>\n{}{}</body></html>\n",
        opening(swept.scenario, seeds),
        escape(&swept.title()),
        escape(&names.join(" and ")),
        escape(&caption(swept)),
        each(&swept.maps, |map| heat_map(swept, map)),
        each(&swept.others, other),
    )
}

fn caption(swept: &Swept<'_>) -> String {
    let reference = swept
        .others
        .first()
        .map(|(reference, _)| format!(" Below it is its change from {reference}."));
    let note = if swept.leaves_out_jobs() { format!(" {LEAVES_OUT_JOBS}") } else { String::new() };
    format!(
        "A deeper colour is a larger figure. The figure is the mean over the seeds; after ± is half of \
         the interval that contains the true mean with 95 % probability.{}{note}",
        reference.unwrap_or_default()
    )
}

fn heat_map(swept: &Swept<'_>, map: &Map) -> String {
    let (rows, columns) = swept.sides();
    let axes = swept.sweep.axes();
    let down = axes.first().map_or("", |axis| axis.parameter.as_str());
    let across = axes.get(1).map(|axis| axis.parameter.as_str());
    let head = match across {
        Some(_) => each(columns, |value| format!("<th>{value}</th>")),
        None => format!("<th>{}</th>", escape(&swept.title())),
    };
    let corner = match across {
        Some(across) => format!("{down} ↓ {across} →"),
        None => down.to_owned(),
    };
    let row = |(value, figures): (&f64, &[_])| {
        let cells = each(figures, |figure| data(swept, *figure));
        format!("<tr><th>{value}</th>{cells}</tr>\n")
    };
    let body = each(rows.iter().zip(map.figures.chunks(columns.len().max(1))), row);
    format!(
        "<div class=\"wide\"><table class=\"heat\"><caption>{}</caption>\n\
         <thead><tr><th>{}</th>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n",
        escape(&map.arm.to_string()),
        escape(&corner),
    )
}

fn data(swept: &Swept<'_>, figure: Option<Measured>) -> String {
    let heat = swept.heat(figure).unwrap_or(0.0);
    let change = swept.change(figure).map(|change| format!("{:+.1} %", 100.0 * change));
    let change = change.map_or_else(String::new, |text| format!("<small>{text}</small>"));
    let depth = DEEPEST * heat;
    let text = escape(&shown(figure));
    format!("<td style=\"background:rgb(0 114 178 / {depth:.3})\">{text}{change}</td>")
}

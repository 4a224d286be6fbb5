//! A sweep for people: a heat map of characters.

use paceline_sim::scenario::Arm;
use paceline_sim::sweep::{Axis, Measured};

use super::super::columns::{Column, write_blocks};
use super::super::table::{cell, dash, head};
use super::{Map, Swept};
use crate::command::compared::{LEAVES_OUT_JOBS, marked};

/// From the smallest to the largest figure.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

pub(super) fn text(swept: &Swept<'_>) -> String {
    let head = head(swept.scenario);
    let maps = match swept.sweep.axes() {
        [axis] => one_column_each(swept, axis),
        _ => swept.maps.iter().map(|map| heat_map(swept, map)).collect(),
    };
    let other = |(arm, figure): &(Arm, _)| format!("{arm}: {}\n", shown(*figure));
    let others: String = swept.others.iter().map(other).collect();
    let seeds = swept.seeds;
    let word = if seeds == 1 { "seed" } else { "seeds" };
    let (least, most) = (SHADES.first().unwrap_or(&' '), SHADES.last().unwrap_or(&' '));
    let note = if swept.leaves_out_jobs() { format!("{LEAVES_OUT_JOBS}\n") } else { String::new() };
    format!(
        "{head}{maps}{others}{seeds} {word}; {least} is the smallest figure, {most} the largest\n\
         {note}"
    )
}

/// A figure, marked if it leaves out jobs that did not finish.
pub(in crate::command::simulate) fn shown(figure: Option<Measured>) -> String {
    let text = cell(figure.map(|figure| figure.interval));
    marked(text, figure.is_some_and(|figure| figure.leaves_out_jobs))
}

/// All policies by one parameter.
fn one_column_each(swept: &Swept<'_>, axis: &Axis) -> String {
    let mut text = format!("{} by {}\n\n", swept.title(), axis.name());
    let columns: Vec<Column> = swept.maps.iter().flat_map(|map| beside(swept, map)).collect();
    write_blocks(&mut text, &named(&axis.values), &columns, &Vec::new());
    text
}

/// The figures of a policy by one parameter, and beside them how they differ from the reference.
fn beside(swept: &Swept<'_>, map: &Map) -> Vec<Column> {
    let mut figures = vec![map.arm.to_string() + "  "];
    figures.extend(map.figures.iter().map(|figure| shaded(swept, *figure)));
    let mut columns = vec![figures];
    if let Some((reference, _)) = swept.others.first() {
        let mut changes = vec![format!("over {reference}")];
        changes.extend(map.figures.iter().map(|figure| change(swept, *figure)));
        columns.push(changes);
    }
    columns
}

/// The figures of a policy by two parameters, and below them how they differ from the reference.
fn heat_map(swept: &Swept<'_>, map: &Map) -> String {
    let axes = swept.sweep.axes().iter().zip(["down", "across"]);
    let by: Vec<String> = axes.map(|(axis, way)| format!("{} ({way})", axis.parameter)).collect();
    let title = format!("{}: {} by {}\n\n", map.arm, swept.title(), by.join(" and "));
    let figures = block(swept, map, |figure| shaded(swept, figure));
    let changes = swept.others.first().map(|(reference, _)| {
        let changes = block(swept, map, |figure| change(swept, figure));
        format!("{}: the same, over that of {reference}\n\n{changes}", map.arm)
    });
    title + &figures + &changes.unwrap_or_default()
}

/// A row for each value of the first parameter, a column for each of the second.
fn block(swept: &Swept<'_>, map: &Map, written: impl Fn(Option<Measured>) -> String) -> String {
    let (rows, across) = swept.sides();
    let column = |(place, value): (usize, &f64)| {
        let mut column = vec![value.to_string()];
        let figures = map.figures.iter().skip(place).step_by(across.len());
        column.extend(figures.map(|figure| written(*figure)));
        column
    };
    let columns: Vec<Column> = across.iter().enumerate().map(column).collect();
    let mut text = String::new();
    write_blocks(&mut text, &named(rows), &columns, &Vec::new());
    text
}

fn named(values: &[f64]) -> Column {
    let mut column = vec![String::new()];
    column.extend(values.iter().map(f64::to_string));
    column
}

fn shaded(swept: &Swept<'_>, figure: Option<Measured>) -> String {
    let Some(heat) = swept.heat(figure) else { return dash() + "  " };
    let parts = [0.2, 0.4, 0.6, 0.8];
    let step = parts.into_iter().filter(|part| heat > *part).count();
    format!("{} {}", shown(figure), SHADES.get(step).unwrap_or(&' '))
}

fn change(swept: &Swept<'_>, figure: Option<Measured>) -> String {
    swept.change(figure).map_or_else(dash, |change| format!("{:+.1} %", 100.0 * change))
}

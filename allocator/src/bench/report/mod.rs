//! The report: one HTML file that needs nothing else, neither a network nor a script.

mod chart;
mod gantt;
mod html;
mod marked;
mod page;
mod palette;
mod scale;
mod tables;
mod traces;

pub(crate) use page::page;

#[cfg(test)]
mod tests;

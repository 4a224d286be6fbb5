//! The report: one HTML file that needs nothing else, neither a network nor a script.

mod gantt;
mod page;
mod tables;
mod traces;

pub(crate) use page::page;

#[cfg(test)]
mod tests;

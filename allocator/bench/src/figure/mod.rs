//! Pictures and HTML pages. Each page is one file and needs neither a network nor a script.

mod axis;
pub(crate) mod bars;
pub(crate) mod chart;
pub(crate) mod html;
pub(crate) mod marked;
pub(crate) mod palette;
pub(crate) mod plane;
pub(crate) mod scale;
pub(crate) mod stack;

pub(crate) use axis::Axis;
pub(crate) use plane::{TEXT, inline};

//! placeholder until merged
#[derive(Debug)]
pub(crate) struct History;
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) at: f64,
    pub(crate) step: u64,
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) rejected: u64,
    pub(crate) paused: bool,
}
impl History {
    pub(crate) fn new() -> Self {
        Self
    }
    pub(crate) fn push(&mut self, _s: Sample) {}
    pub(crate) fn wanted_period(&self) -> std::time::Duration {
        std::time::Duration::from_millis(250)
    }
}
pub(crate) fn derive(
    _h: &History,
    _p: &paceline_wire::Progress,
    _d: (crate::doing::Doing, f64),
) -> paceline_wire::Signals {
    paceline_wire::Signals::default()
}

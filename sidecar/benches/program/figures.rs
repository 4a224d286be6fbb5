//! Prints figures beside their goals.

use std::sync::Mutex;

/// The memory goal in MiB.
const MAX_MEMORY: f64 = 16.0;

/// The peak memory of all sidecars so far.
static PEAK: Mutex<f64> = Mutex::new(0.0);

/// Prints a figure in `unit` whose goal is at most `goal`.
pub(crate) fn print_at_most(what: &str, figure: f64, goal: f64, unit: &str) {
    let verdict = if figure <= goal { "ok" } else { "MISSED" };
    println!("{what:<52} {figure:>9.2} {unit:<6} goal <= {goal:>5} {unit:<6} {verdict}");
}

/// Prints a figure without a goal.
pub(crate) fn print(what: &str, figure: f64, unit: &str) {
    println!("{what:<52} {figure:>9.2} {unit}");
}

/// Prints the peak memory of a sidecar, in MiB.
pub(crate) fn print_memory(what: &str, peak: f64) {
    note_peak(peak);
    print_at_most(&format!("memory: {what}"), peak, MAX_MEMORY, "MiB");
}

/// Records the peak memory of a sidecar.
pub(crate) fn note_peak(peak: f64) {
    if let Ok(mut all) = PEAK.lock() {
        *all = all.max(peak);
    }
}

/// Prints the peak memory of all sidecars of this run.
pub(crate) fn print_peak() {
    let peak = PEAK.lock().map_or(f64::NAN, |peak| *peak);
    print_at_most("memory: the most of all above", peak, MAX_MEMORY, "MiB");
}

/// The median.
pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

/// The value that `percent` of all do not exceed.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

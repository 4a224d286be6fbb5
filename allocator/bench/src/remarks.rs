//! The remarks that follow the tables.

use super::grid;
use super::outcome::{ArmFindings, Findings, Interference, Measure, RunFindings};

/// One remark each.
pub(crate) fn remarks(findings: &Findings) -> Vec<String> {
    let mut remarks: Vec<String> = findings.interference.iter().map(Interference::words).collect();
    remarks.extend(findings.interference.as_ref().and_then(Interference::doubt).map(str::to_owned));
    for arm in &findings.arms {
        remarks.extend(arm.promise.iter().flat_map(|promise| promise.words(&arm.facts.name)));
    }
    remarks.push(prediction(findings));
    remarks.extend(speed(findings));
    remarks.extend(disturbed(findings));
    let runs = || findings.arms.iter().flat_map(|arm| arm.runs.iter().map(move |run| (arm, run)));
    let left: Vec<String> = runs()
        .flat_map(|(arm, run)| run.limits_left.iter().map(move |left| (arm, left)))
        .map(|(arm, left)| {
            format!(
                "limits: {} left {} with NanoCpus {} and CpuQuota {}",
                arm.facts.name, left.job, left.nano_cpus, left.cpu_quota
            )
        })
        .collect();
    if left.is_empty() {
        remarks.push("limits: the allocator restored every limit".to_owned());
    }
    remarks.extend(left);
    remarks
}

/// Where the prediction comes from, or why there is none.
fn prediction(findings: &Findings) -> String {
    let prediction = &findings.prediction;
    let Some(from) = &prediction.from else {
        let why = prediction.why_not.as_deref().unwrap_or("nothing was fitted");
        return format!("prediction: none: {why}");
    };
    let share = |known: Option<f64>| {
        known.map_or_else(|| "unknown".to_owned(), |part| format!("{:.1} %", 100.0 * part))
    };
    format!(
        "prediction: fitted to {from}; contention {}, background load {}; a figure holds if its error is \
         within 5 % or the arm's spread, a job if the median of its repeats' errors is within 10 %",
        share(prediction.contention),
        share(prediction.background)
    )
}

/// How much the machine's speed varied, which no policy influences.
fn speed(findings: &Findings) -> Option<String> {
    let speeds = || findings.arms.iter().flat_map(|arm| &arm.runs).filter_map(|run| run.host.speed);
    let (least, most) = speeds()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), speed| (least.min(speed), most.max(speed)));
    (most > 0.0).then(|| {
        let least = 100.0 * least / most;
        let sensitivity = findings.prediction.speed_sensitivity;
        let sensitivity = sensitivity
            .map(|part| format!("; jobs follow {:.0} % of the changes", 100.0 * part));
        format!(
            "speed: by a probe, the machine in the slowest run had {least:.0} % of its speed in the \
             fastest; each run is predicted at its own speed{}",
            sensitivity.unwrap_or_default()
        )
    })
}

/// The disturbed runs that means leave out, the arms without other runs, and the number of disturbed runs.
fn disturbed(findings: &Findings) -> Vec<String> {
    let mixed = findings.arms.iter().filter(|arm| !arm.is_disturbed());
    let mut remarks: Vec<String> = mixed.flat_map(left_out).collect();
    let arms = || findings.arms.iter();
    let no_other = arms().filter(|arm| arm.is_disturbed()).map(|arm| arm.facts.name.as_str());
    let no_other: Vec<&str> = no_other.collect();
    if !no_other.is_empty() {
        remarks.push(format!(
            "disturbed: every run of {}; their figures have no interval, and are not compared with claims \
             or predictions",
            no_other.join(", ")
        ));
    }
    let runs = || arms().flat_map(|arm| &arm.runs);
    let disturbed = runs().filter(|run| !run.is_clean()).count();
    if disturbed > 0 {
        let all = runs().count();
        remarks.push(format!("runs: {disturbed} of {all} disturbed; --redo-spoiled repeats them"));
    }
    remarks
}

/// The figures of the disturbed runs of an arm that has others.
fn left_out(arm: &ArmFindings) -> Vec<String> {
    let remark = |run: &RunFindings| {
        let why = run.disturbance(&arm.facts.name)?;
        let figures = ["completion_mean", "makespan"].into_iter().filter_map(|name| {
            let (measure, value) = (Measure::named(name)?, run.both(name).0?);
            let value = grid::value(value, None);
            Some(format!("; {} {value} {}", measure.title, measure.unit))
        });
        Some(format!("disturbed, left out of the means: {why}{}", figures.collect::<String>()))
    };
    arm.runs.iter().filter_map(remark).collect()
}

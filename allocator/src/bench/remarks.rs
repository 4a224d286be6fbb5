//! What is left to say after the tables, in sentences.

use super::outcome::{ArmFindings, Findings, Together};

/// One remark each.
pub(crate) fn remarks(findings: &Findings) -> Vec<String> {
    let mut remarks: Vec<String> = findings.together.iter().map(Together::words).collect();
    remarks.extend(findings.together.as_ref().and_then(Together::doubt).map(str::to_owned));
    remarks.push(prediction(findings));
    remarks.extend(speed(findings));
    remarks.extend(spoiled(findings));
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
        remarks.push("limits: every limit was put back".to_owned());
    }
    remarks.extend(left);
    remarks
}

/// Where the prediction comes from, or why there is none.
fn prediction(findings: &Findings) -> String {
    let prediction = &findings.prediction;
    let Some(from) = &prediction.from else {
        let why = prediction.why_not.as_deref().unwrap_or("nothing was fitted");
        return format!("prediction: none, since {why}");
    };
    let share = |known: Option<f64>| {
        known.map_or_else(|| "not known".to_owned(), |part| format!("{:.1} %", 100.0 * part))
    };
    format!(
        "prediction: fitted to {from}; contention {}, others on the machine {}; a figure holds within \
         5 % or the arm's own spread, a job if the median of its repeats' errors is within 10 %",
        share(prediction.contention),
        share(prediction.background)
    )
}

/// How much the machine's own speed varied, which no policy has a part in.
fn speed(findings: &Findings) -> Option<String> {
    let speeds = || findings.arms.iter().flat_map(|arm| &arm.runs).filter_map(|run| run.host.speed);
    let (least, most) = speeds()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), speed| (least.min(speed), most.max(speed)));
    (most > 0.0).then(|| {
        let least = 100.0 * least / most;
        let felt = findings.prediction.speed_felt;
        let felt = felt.map(|part| format!(", of which jobs feel {:.0} %", 100.0 * part));
        format!(
            "speed: the slowest run had {least:.0} % of the fastest one's, by a probe during each; \
             each is predicted by those that it had{}",
            felt.unwrap_or_default()
        )
    })
}

/// How many runs do not count.
fn spoiled(findings: &Findings) -> Option<String> {
    let of = |arm: &ArmFindings| {
        let left_out = arm.runs.iter().filter(|run| !run.is_clean()).count();
        (left_out > 0).then(|| format!("{left_out} of {} of {}", arm.runs.len(), arm.facts.name))
    };
    let each: Vec<String> = findings.arms.iter().filter_map(of).collect();
    (!each.is_empty()).then(|| {
        format!(
            "runs: left out, since something else disturbed them: {}; --redo-spoiled makes them anew",
            each.join(", ")
        )
    })
}

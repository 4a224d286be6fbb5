//! What is left to say after the tables, in sentences.

use super::outcome::{ArmFindings, Findings, RunFindings, Together};

/// The share of the machine that the allocator, the engine and the system may take: on two CPUs
/// these take 1 to 3 %.
const OTHERS_AT_MOST: f64 = 0.06;

/// One remark each.
pub(crate) fn remarks(findings: &Findings) -> Vec<String> {
    let mut remarks: Vec<String> = findings.together.iter().map(Together::words).collect();
    remarks.extend(findings.together.as_ref().and_then(Together::doubt).map(str::to_owned));
    remarks.push(prediction(findings));
    remarks.extend(spoiled(findings));
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
         5 % or the arm's own spread, a job within 10 % of the median of its repeats",
        share(prediction.contention),
        share(prediction.background)
    )
}

/// How many runs do not count.
fn spoiled(findings: &Findings) -> Option<String> {
    let of = |arm: &ArmFindings| {
        let left_out = arm.runs.iter().filter(|run| !run.is_clean()).count();
        (left_out > 0).then(|| format!("{left_out} of {} of {}", arm.runs.len(), arm.facts.name))
    };
    let each: Vec<String> = findings.arms.iter().filter_map(of).collect();
    (!each.is_empty()).then(|| {
        format!("runs: left out, since something else disturbed them: {}", each.join(", "))
    })
}

/// Says so when other work on the machine makes the figures doubtful.
fn disturbed(findings: &Findings) -> Option<String> {
    let others = |arm: &ArmFindings| {
        let of = |run: &RunFindings| Some((run.host.others?, arm.facts.name.clone()));
        arm.counted().filter_map(of).max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let most = findings.arms.iter().filter_map(others).max_by(|a, b| a.0.total_cmp(&b.0));
    let (others, arm) = most.filter(|(others, _)| *others > OTHERS_AT_MOST)?;
    let percent = 100.0 * others;
    Some(format!("machine: not idle, other work took {percent:.0} % of it under {arm}"))
}

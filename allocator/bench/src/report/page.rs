//! The report's HTML page.

use super::super::grid;
use super::super::outcome::{ArmFindings, Compared, Findings, Measure, Regression};
use super::super::remarks::remarks;
use super::pictures::Picture;
use super::sets::SETS;
use super::tables::{self, params, schedule};
use crate::figure::html::{each, escape, figure, head, legend};
use crate::figure::palette::{GREY, colour};
use crate::figure::scale::mark_text;

/// How the figures were measured.
const METHOD: &str = include_str!("method.html");

/// The report on `findings`.
pub(super) fn page(findings: &Findings, pictures: &[Picture]) -> String {
    let mut html = opening(findings);
    let mut jobs = grid::jobs(findings).into_iter();
    html.push_str(&each(jobs.next(), |grid| tables::grid(&grid)));
    html.push_str(&each(remarks(findings), |remark| format!("<p>{}</p>\n", escape(&remark))));
    html.push_str(&completion(findings, pictures));
    html.push_str("<h2>Figures</h2>\n");
    html.push_str(&tables::grid(&grid::figures(findings)));
    html.push_str(&glossary(findings));
    html.push_str(&each(jobs, |grid| tables::grid(&grid)));
    html.push_str(&prediction(findings));
    html.push_str(&claims(findings));
    html.push_str(&regressions(findings));
    html.push_str(&over_time(findings, pictures));
    html.push_str("<h2>Jobs and runs</h2>\n");
    html.push_str(&tables::grid(&grid::all_of_jobs(findings)));
    html.push_str(&tables::grid(&grid::runs(findings)));
    html.push_str(&schedule(&findings.about.jobs));
    html.push_str(METHOD);
    html.push_str("</body></html>\n");
    html
}

fn opening(findings: &Findings) -> String {
    let about = &findings.about;
    let repeats = findings.arms.iter().map(|arm| arm.runs.len()).max().unwrap_or(0);
    let counted: usize = findings.arms.iter().map(|arm| arm.counted().count()).sum();
    let all: usize = findings.arms.iter().map(|arm| arm.runs.len()).sum();
    let others = if counted < all { "; the others were disturbed" } else { "" };
    let scale = if (about.scale - 1.0).abs() > 0.0 {
        format!(" All times are the paper's divided by {}.", mark_text(about.scale))
    } else {
        String::new()
    };
    format!(
        "{}<p>{}</p>\n<p class=\"note\">{}. {}. Bench {}. {} arms, up to {repeats} repeats each; \
         {counted} of {all} runs count{others}.{scale}</p>\n",
        head(&format!("Paceline bench: {}", about.name)),
        escape(&about.description),
        escape(&about.date),
        escape(&about.place()),
        escape(&about.run),
        findings.arms.len(),
    )
}

/// An explanation of each figure.
fn glossary(findings: &Findings) -> String {
    let one = |measure: &Measure| {
        format!("<li>{}: {}</li>\n", escape(measure.title), escape(measure.about))
    };
    let all = each(findings.measures(), one);
    format!("<details><summary>What the figures mean</summary><ul>\n{all}</ul></details>\n")
}

/// The bars of all arms, and the chart of when jobs ran.
fn completion(findings: &Findings, pictures: &[Picture]) -> String {
    let arms = findings.arms.iter().map(|arm| arm.facts.name.as_str()).enumerate();
    let colours = legend(arms.map(|(place, name)| (colour(place), name)));
    let of_all = |name: &str| {
        let mut found = pictures.iter().filter(|picture| picture.arm.is_none());
        let found = found.find(|picture| picture.name == name);
        found.map(|picture| figure(&picture.svg)).unwrap_or_default()
    };
    format!(
        "<h2>Completion times</h2>\n<p class=\"note\">The means of the undisturbed repeats, each with \
         the interval that contains the true mean with 95 % probability. A ring is the simulator's \
         prediction.</p>\n{colours}<div class=\"pictures\">{}</div>\n{}\
         <h2>When each job ran</h2>\n<p class=\"note\">From arrival to end, in the median run of each \
         arm. The first arm's bars are pale.</p>\n{}\
         <h2>Who had the CPU</h2>\n<p class=\"note\">What each job used, as a part of the machine, in the \
         median run of each arm.</p>\n{}",
        of_all("completion"),
        tables::notes(&grid::notes(findings)),
        of_all("runs"),
        of_all("cpu"),
    )
}

fn prediction(findings: &Findings) -> String {
    let Some(grid) = grid::fidelity(findings) else {
        let why = findings.prediction.why_not.as_deref().map(escape);
        let none = |why| format!("<h2>Prediction</h2>\n<p>Nothing was predicted: {why}.</p>\n");
        return why.map(none).unwrap_or_default();
    };
    let note = "A figure's prediction holds if its error is within 5 % or within the arm's spread. The \
                spread is the largest deviation of a repeat's error from the mean error. The jobs' \
                predictions hold if the median of each job's errors is within 10 %. The error of a number \
                of jobs is a fraction of the jobs with a target.";
    format!("<h2>Prediction</h2>\n<p class=\"note\">{note}</p>\n{}", tables::grid(&grid))
}

fn claims(findings: &Findings) -> String {
    let Some(grid) = grid::claims(findings) else { return String::new() };
    let reason = |compared: &Compared| {
        if compared.reason.is_empty() {
            return String::new();
        }
        let (title, source) = (compared.claim.figure.title(), &compared.claim.source);
        format!("<li>{} ({}): {}</li>\n", escape(&title), escape(source), escape(&compared.reason))
    };
    let reasons = each(&findings.claims, reason);
    format!("<h2>The paper's claims</h2>\n{}<ul>\n{reasons}</ul>\n", tables::grid(&grid))
}

/// Why arms are worse.
fn regressions(findings: &Findings) -> String {
    let one = |regression: &Regression| {
        let sentences = each(&regression.sentences, |text| format!("<li>{}</li>\n", escape(text)));
        format!("<p>{}</p>\n<ul>\n{sentences}</ul>\n", escape(&regression.symptom))
    };
    let all = each(findings.arms.iter().filter_map(|arm| arm.regression.as_ref()), one);
    if all.is_empty() { all } else { format!("<h2>Why an arm is worse</h2>\n{all}") }
}

/// Each arm's median run over time.
fn over_time(findings: &Findings, pictures: &[Picture]) -> String {
    let jobs = findings.about.jobs.iter().map(|facts| facts.job.name.as_str()).enumerate();
    let jobs = jobs.map(|(place, name)| (colour(place), name));
    let mut html =
        "<h2>Each arm over time</h2>\n<p class=\"note\">The median run of each arm, by mean completion \
                    time.</p>\n"
            .to_owned();
    html.push_str(&legend(jobs.chain([(GREY, "the whole machine (use)")])));
    if pictures.iter().any(|picture| picture.name.starts_with("sets-")) {
        let sets = SETS.iter().map(|(about, place)| (colour(*place), *about));
        html.push_str(&legend(sets.chain([(GREY, "no batch yet")])));
    }
    let arm = |arm: &ArmFindings| {
        let own = pictures.iter().filter(|p| p.arm.as_ref() == Some(&arm.facts.name));
        let facts = &arm.facts;
        let settings =
            [facts.variant.to_string(), facts.enforcement.to_string(), params(&facts.params)];
        let disturbed = arm.median_run().and_then(|run| run.host.spoiled.as_ref());
        let disturbed = disturbed.map(|why| format!("disturbed: {why}"));
        let settings = settings.into_iter().filter(|text| !text.is_empty()).chain(disturbed);
        let settings: Vec<String> = settings.collect();
        format!(
            "<section><h3>{} <small>{}</small></h3>\n{}</section>\n",
            escape(&facts.name),
            escape(&settings.join(", ")),
            each(own, |picture| figure(&picture.svg))
        )
    };
    html + &format!("<div class=\"policies\">\n{}</div>\n", each(&findings.arms, arm))
}

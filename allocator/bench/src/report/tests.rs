use super::super::analysis::{Analysis, analyse};
use super::super::outcome::Observed;
use super::super::outcome::example::{Simulated, bare, disturb, example};
use super::*;

/// The page of the example, after `change` to its findings.
fn page_of(arms: &[&str], names: &[&str], change: impl FnOnce(&mut Analysis)) -> String {
    let (about, facts, runs) = example(arms, names);
    let observed: Vec<Observed<'_>> = runs.iter().map(bare).collect();
    let mut analysis = analyse(about, &facts, &observed, &[]);
    change(&mut analysis);
    let files = files(&analysis, &observed).expect("a report");
    files.into_iter().find(|(name, _)| name == PAGE).expect("a page").1
}

#[test]
fn every_chart_shows_every_job_in_its_own_colour() {
    let page = page_of(&["none", "flowcon"], &["a", "b", "c"], |_| {});
    let charts: Vec<&str> =
        page.split("<figure>").skip(1).filter_map(|rest| rest.split("</figure>").next()).collect();
    assert_eq!(
        charts.len(),
        3 + 2 * 3,
        "bars, runs, who had the CPU, and three charts for each arm"
    );
    for chart in &charts[1..] {
        for colour in ["#0072B2", "#D55E00", "#009E73"] {
            assert!(chart.contains(colour), "{colour} is not in\n{chart}");
        }
    }
    for name in ["a", "b", "c"] {
        for arm in ["none", "flowcon"] {
            assert!(page.contains(&format!("{name}, {arm}")), "{name} under {arm}");
        }
    }
}

#[test]
fn all_text_is_escaped() {
    let evil = "<script>alert('1')</script>\"";
    let page = page_of(&["none", "flowcon"], &["a"], |analysis| {
        let findings = &mut analysis.findings;
        findings.about.name = evil.to_owned();
        findings.about.description = evil.to_owned();
        findings.about.machine.kernel = Some(evil.to_owned());
        findings.about.data = Some(evil.to_owned());
        findings.about.jobs[0].job.name = evil.to_owned();
        findings.about.jobs[0].job.command = vec![evil.to_owned()];
        findings.prediction.why_not = Some(evil.to_owned());
        for arm in &mut findings.arms {
            arm.facts.name = evil.to_owned();
            arm.jobs[0].job = evil.to_owned();
            arm.runs[0].host.spoiled = Some(evil.to_owned());
            arm.runs[0].jobs[0].failure = Some(evil.to_owned());
        }
    });
    assert!(page.contains("&lt;script&gt;"));
    assert!(!page.contains("<script"), "a script came through");
    assert!(!page.contains("')<"), "a quotation mark came through");
}

#[test]
fn page_needs_no_other_file() {
    let page = page_of(&["none", "flowcon"], &["a", "b"], |_| {});
    for reference in ["http://", "https://", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn report_without_samples_has_a_page() {
    let (about, facts, mut runs) = example(&["none", "flowcon"], &["a"]);
    for run in &mut runs {
        run.samples.clear();
    }
    let observed: Vec<Observed<'_>> = runs.iter().map(bare).collect();
    let analysis = analyse(about, &facts, &observed, &[]);
    assert!(files(&analysis, &observed).is_ok());
}

#[test]
fn report_shows_and_marks_disturbed_figures() {
    let mut simulated = Simulated::bench(2);
    disturb(&mut simulated.runs, "flowcon-published", None);
    let files = files(&simulated.analyse(), &simulated.observed()).expect("a report");
    let text = |name: &str| &files.iter().find(|(own, _)| own == name).unwrap().1;
    let page = text(PAGE);
    assert!(page.contains("<td class=\"disturbed\">") && page.contains(" %*)</td>"), "{page}");
    let why = "disturbed: other work took 51 % of the machine";
    assert!(page.contains(&format!("<p class=\"note\">* {why} (flowcon-published, repeat 1)")));
    assert!(page.contains(&format!("no, {why}</td>")), "the table of all runs");
    assert!(page.contains(&format!("alpha = 0.2, interval = 5, {why}</small>")), "the charts");
    assert!(page.contains(">every run disturbed</td>") && page.contains(">not judged</td>"));
    assert!(page.contains("Not judged: every run of flowcon-published was disturbed."));
    assert!(page.contains("2 of 4 runs count; the others were disturbed."));
    let bars = text("pictures/completion.svg");
    assert_eq!(bars.matches("<circle").count(), 4, "they have no prediction");
    assert!(text("pictures/runs.svg").contains(" s*"));
}

#[test]
fn complete_report_has_prediction_claims_sets_and_pictures() {
    let simulated = Simulated::bench(2);
    let observed = simulated.observed();
    let analysis = simulated.analyse();
    let files = files(&analysis, &observed).expect("a report");
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["result.json", "fitted.toml", "pictures/completion.svg", "pictures/sets-none.svg"]
    {
        assert!(names.contains(&name), "{names:?}");
    }
    let text = |name: &str| &files.iter().find(|(own, _)| own == name).unwrap().1;
    for heading in ["Prediction", "The paper's claims", "Each arm over time", "Jobs and runs"] {
        assert!(text(PAGE).contains(&format!("<h2>{heading}</h2>")), "{heading}");
    }
    let bars = text("pictures/completion.svg");
    assert!(bars.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{bars}");
    assert_eq!(bars.matches("<circle").count(), 2 * 4, "each job's prediction, and the mean's");
    if let Ok(folder) = std::env::var("PACELINE_KEEP_REPORT") {
        for (name, text) in &files {
            let path = std::path::Path::new(&folder).join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }
}

use super::super::outcome::example::example;
use super::page;

#[test]
fn every_chart_shows_every_job_in_its_own_colour() {
    let (findings, records) = example(&["none", "flowcon"], &["a", "b", "c"]);
    let page = page(&findings, &records).expect("a page");
    let charts: Vec<&str> =
        page.split("<figure>").skip(1).filter_map(|rest| rest.split("</figure>").next()).collect();
    assert_eq!(charts.len(), 1 + 2 * 3, "a gantt chart and three charts for each policy");
    for chart in charts {
        for colour in ["#0072B2", "#D55E00", "#009E73"] {
            assert!(chart.contains(colour), "{colour} is not in\n{chart}");
        }
    }
    for name in ["a", "b", "c"] {
        for policy in ["none", "flowcon"] {
            assert!(page.contains(&format!("{name}, {policy}")), "{name} under {policy}");
        }
    }
}

#[test]
fn all_text_is_escaped() {
    let (mut findings, records) = example(&["none", "flowcon"], &["a"]);
    let evil = "<script>alert('1')</script>\"";
    findings.name = evil.to_owned();
    findings.description = evil.to_owned();
    findings.machine.kernel = Some(evil.to_owned());
    findings.jobs[0].job.name = evil.to_owned();
    findings.jobs[0].job.command = vec![evil.to_owned()];
    for arm in &mut findings.arms {
        arm.policy = evil.to_owned();
        arm.jobs[0].job = evil.to_owned();
    }
    let page = page(&findings, &records).expect("a page");
    assert!(page.contains("&lt;script&gt;"));
    assert!(!page.contains("<script"), "a script came through");
    assert!(!page.contains("')<"), "a quotation mark came through");
}

#[test]
fn the_page_needs_no_other_file() {
    let (findings, records) = example(&["none", "flowcon"], &["a", "b"]);
    let page = page(&findings, &records).expect("a page");
    for reference in ["http://", "https://", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn a_bench_without_samples_still_has_its_page() {
    let (findings, mut records) = example(&["none", "flowcon"], &["a"]);
    for record in &mut records {
        record.samples.clear();
    }
    assert!(page(&findings, &records).is_ok());
}

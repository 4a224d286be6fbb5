use paceline_sim::scenario::LIBRARY;

use super::*;

fn scenario(name: &str) -> Scenario {
    let listed = LIBRARY.iter().find(|listed| listed.name == name).unwrap();
    Scenario::parse(listed.text).unwrap()
}

fn swept<'a>(scenario: &'a Scenario, arms: &[&str], axes: &[&str], what: &str) -> Swept<'a> {
    let arms = arms.iter().map(|arm| arm.parse().unwrap()).collect();
    let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
    run(scenario, arms, axes, what.parse().unwrap(), 1).unwrap()
}

const TABLE_2: [&str; 2] = ["flowcon.alpha=0.01,0.05", "flowcon.interval=20,30,60"];

#[test]
fn table_has_a_cell_for_each_value_and_its_change() {
    let scenario = scenario("FC-3");
    let swept = swept(&scenario, &["none", "flowcon:published"], &TABLE_2, "completion:mnist-t");
    let text = swept.text();
    let head = "flowcon:published: completion of mnist-t [s] by alpha (down) and interval (across)";
    assert!(text.contains(head), "{text}");
    assert!(text.contains("none: 84.6"), "{text}");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("0.05 "))
        .map(|line| line.split_whitespace().collect())
        .collect();
    // The shades of the least and of the largest figure.
    assert_eq!((rows[0][2], rows[0][6]), ("·", "█"), "{text}");
    assert!(rows[0][1].starts_with("61."), "the paper has 59.4: {text}");
    assert!(rows[1][1].starts_with("-27."), "{text}");
    assert!(text.lines().skip(1).all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn many_values_are_written_below_each_other() {
    let scenario = scenario("FC-3");
    let axes = ["flowcon.alpha=0.05", "flowcon.interval=10..40/2"];
    let text = swept(&scenario, &["flowcon"], &axes, "completion_mean").text();
    assert!(text.lines().skip(1).all(|line| line.chars().count() <= 100), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("0.05 ")).count(), 2, "{text}");
}

#[test]
fn one_parameter_has_a_column_for_each_variant() {
    let scenario = scenario("FC-3");
    let arms = ["none", "flowcon:published", "flowcon"];
    let text = swept(&scenario, &arms, &["flowcon.interval=20,30"], "completion_mean").text();
    let head = text.lines().find(|line| line.contains("over none")).unwrap();
    assert!(head.contains("flowcon:published") && head.matches("over none").count() == 2, "{text}");
}

#[test]
fn swept_policy_is_added_to_the_scenario() {
    let scenario = scenario("TR-5");
    let swept = swept(&scenario, &["none"], &["flowcon.interval=20"], "completion_mean");
    assert_eq!(swept.maps.len(), 1);
    assert_eq!(swept.maps[0].arm.to_string(), "flowcon");
    assert_eq!(swept.maps[0].figures.len(), 1);
}

#[test]
fn json_has_every_point_with_its_parameters() {
    let scenario = scenario("FC-3");
    let swept = swept(&scenario, &["none", "flowcon"], &TABLE_2, "makespan");
    let json: serde_json::Value = serde_json::from_str(&swept.json().unwrap()).unwrap();
    let points = json["policies"][0]["points"].as_array().unwrap();
    assert_eq!(points.len(), 6);
    assert_eq!(points[4]["params"], serde_json::json!({"alpha": 0.05, "interval": 30.0}));
    assert!((points[4]["mean"].as_f64().unwrap() - 394.0).abs() < 0.1, "{json}");
    assert!(points[4]["change"].as_f64().unwrap().abs() < 1e-6, "{json}");
    assert_eq!(json["others"][0]["policy"], "none");
}

#[test]
fn unknown_job_is_refused() {
    let scenario = scenario("FC-3");
    let axes = vec!["flowcon.alpha=0.1".parse().unwrap()];
    let error = run(&scenario, Vec::new(), axes, "completion:mnist".parse().unwrap(), 1);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("vae, mnist-p, mnist-t") && error.contains("did you mean"), "{error}");
}

#[test]
fn page_colours_each_cell_and_needs_no_other_file() {
    let scenario = scenario("FC-3");
    let page =
        swept(&scenario, &["none", "flowcon:published"], &TABLE_2, "completion:mnist-t").page();
    assert_eq!(page.matches("<td style=\"background:").count(), 6);
    assert!(page.contains("/ 0.000)") && page.contains("/ 0.620)"), "{page}");
    for reference in ["http://", "https://", "src=", "href=", "url(", "@import", "<script"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn figures_of_runs_cut_short_are_marked() {
    let mut scenario = scenario("FC-3");
    let axes = ["flowcon.interval=20,30"];
    let of = |scenario: &Scenario| {
        let swept = swept(scenario, &["none", "flowcon"], &axes, "completion_mean");
        (swept.text(), swept.json().unwrap(), swept.page())
    };
    let note = "Figures marked * leave out jobs that did not finish.";
    let (text, json, page) = of(&scenario);
    assert!(!text.contains('*') && !json.contains("true") && !page.contains(note), "{text}");
    scenario.until = 300.0;
    let (text, json, page) = of(&scenario);
    assert!(text.ends_with(&format!("the largest\n{note}\n")) && page.contains(note), "{text}");
    assert_eq!(text.matches('*').count(), 4, "{text}");
    assert_eq!(json.matches("\"leaves_out_jobs\": true").count(), 3, "{json}");
}

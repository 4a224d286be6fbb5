//! `replay --explain` and `replay --suggest`.

use serde_json::Value;

use crate::program::{Bench, append, line};

fn replay(bench: &Bench, log: &str, options: &[&str]) -> String {
    let path = bench.path("train.log");
    std::fs::write(&path, "").unwrap();
    append(&path, log);
    let words = [&["replay"], options, &[path.to_str().unwrap()]].concat();
    let output = bench.run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn explained_line_has_its_grammar_its_report_and_unused_numbers() {
    let bench = Bench::new();
    let log = format!("Using 4 workers\n\n{}", line(1));
    let text = replay(&bench, &log, &["--explain"]);
    let expected = [
        "     1  Using 4 workers",
        "        not read: it has no known form, and no name of a loss with a number",
        "        not taken: 4 (Using)",
        "     3  iter 1: loss 2.5000, time 20.00ms, mfu 3.21%",
        "        read: training loss 2.5 (\"loss\", over one step), step 1, 0.02 s per batch (as nanogpt)",
        "        reported: loss 2.5, step 1",
        "        not taken: 3.21 (mfu)",
        "read as nanogpt, confidence 1.00: 2 lines, 1 of them with a new loss",
        "",
    ];
    assert_eq!(text.split('\n').collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn explained_lines_are_also_objects() {
    let bench = Bench::new();
    let text = replay(&bench, &line(3), &["--explain", "--json"]);
    let object: Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!((&object["line"], &object["grammar"]), (&1.into(), &"nanogpt".into()));
    assert_eq!(object["reported"]["step"], 3);
    assert_eq!(object["not_taken"][0]["number"], "3.21");
}

#[test]
fn losses_that_wait_for_a_step_are_explained_at_the_end() {
    let bench = Bench::new();
    let bar = |n: u32| format!("{}%|##| {n}/4 [00:01<00:01, 4.00it/s]\n", n * 25);
    let log = format!(
        "{}{}{{'loss': 0.5, 'grad_norm': 1.5, 'learning_rate': 0.1, 'epoch': 0.5}}\n",
        bar(0),
        bar(2)
    );
    let text = replay(&bench, &log, &["--explain"]);
    assert!(text.contains("not read: its step is in the next frame of the bar"), "{text}");
    assert!(text.contains("(end of the log)"), "{text}");
    assert!(text.contains("why: their step has not come until the end of the log"), "{text}");
}

#[test]
fn suggested_pattern_reads_the_log() {
    let bench = Bench::new();
    let log: Vec<_> =
        (1..=20).map(|step| format!("[{step}/80] J 0.{} lr 0.1\n", 90 - step)).collect();
    let log = log.concat();
    let text = replay(&bench, &log, &["--suggest"]);
    let option = text.lines().last().unwrap();
    let pattern = option.strip_prefix("--pattern '").and_then(|rest| rest.strip_suffix('\''));
    assert!(text.starts_with("# 20 lines such as: [1/80] J 0.89 lr 0.1\n"), "{text}");
    let read = replay(&bench, &log, &["--pattern", pattern.unwrap()]);
    assert!(read.starts_with("of 80 steps, loss 0.89, step 1\n"), "{read}");
    assert!(read.contains("20 lines, 20 of them with a new loss"), "{read}");
}

#[test]
fn empty_log_and_folder_are_named_as_such() {
    let bench = Bench::new();
    assert_eq!(replay(&bench, "", &[]), "no loss was recognised: the log is empty\n");
    let text = replay(&bench, "", &["--suggest"]);
    assert_eq!(text, "# nothing to suggest: the log is empty\n");
    let folder = bench.path("");
    let output = bench.run(&["replay", folder.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&*folder.to_string_lossy()) && said.contains("it is a folder"), "{said}");
}

#[test]
fn log_that_is_read_gets_no_suggestion() {
    let bench = Bench::new();
    let log: String = (1..=9).map(line).collect();
    let text = replay(&bench, &log, &["--suggest"]);
    assert_eq!(text, "# nothing to suggest: every line with numbers is read\n");
}

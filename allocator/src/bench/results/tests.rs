use super::*;
use crate::bench::record::Host;

const TEXT: &str = "name = 's'\npolicies = ['none', 'flowcon']\nrepeats = 2\nwarm-up = false\n\
                    [[job]]\nname = 'j'\nimage = 'i'\narrive = 0\n";

fn schedule(text: &str) -> Schedule {
    Schedule::parse(Path::new("s.toml"), text).unwrap()
}

fn place(program: &str) -> Place {
    let machine = Machine { cpus: 2, memory: None, system: None, kernel: None, engine: None };
    let program = Program { version: "1".to_owned(), sha256: program.to_owned() };
    Place { machine, engine: "E".to_owned(), program }
}

fn open(folder: &Path, text: &str, program: &str, fresh: bool) -> Result<Results, String> {
    Results::open(folder, &schedule(text), place(program), 1000.0, fresh)
        .map_err(|error| format!("{error:#}"))
}

fn recorded(results: &Results, planned: &Planned) -> Recorded {
    let folder = results.empty(&Results::name_of(planned)).unwrap();
    let host = Host { load: 0.5, others: None, steal: 0.0, spoiled: None };
    let run = Run {
        arm: planned.arm.clone(),
        repeat: planned.repeat,
        began: 1000.0,
        jobs: Vec::new(),
        limits_left: Vec::new(),
        host,
        moves: Vec::new(),
    };
    Recorded { run, samples: Vec::new(), folder }
}

#[test]
fn a_run_counts_once_it_is_whole_and_is_read_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let results = open(folder.path(), TEXT, "p", false).unwrap();
    let first = results.bench.order[0].clone();
    let made = recorded(&results, &first);
    assert_eq!(results.whole(&first).unwrap(), None, "its files are there, but not the last");
    Results::keep(&made).unwrap();
    let again = open(folder.path(), TEXT, "p", false).unwrap();
    assert_eq!(again.bench, results.bench);
    assert_eq!(again.whole(&first).unwrap(), Some(made));
    assert_eq!(again.whole(&again.bench.order[1]).unwrap(), None);
}

#[test]
fn another_schedule_machine_or_program_is_refused_until_one_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let later = TEXT.replace("arrive = 0", "arrive = 9");
    open(path, &later, "p", false).unwrap();
    let results = open(path, TEXT, "p", false).expect("nothing was measured yet");
    Results::keep(&recorded(&results, &results.bench.order[0])).unwrap();
    let later = TEXT.replace("arrive = 0", "arrive = 5");
    let error = open(path, &later, "p", false).unwrap_err();
    assert!(error.contains("job \"j\".arrive is 5.0, was 0.0"), "{error}");
    assert!(error.contains("--fresh begins anew"), "{error}");
    let error = open(path, TEXT, "q", false).unwrap_err();
    assert!(error.contains("program.sha256 is \"q\", was \"p\""), "{error}");
    let anew = open(path, &later, "q", true).unwrap();
    assert_eq!(anew.whole(&anew.bench.order[0]).unwrap(), None);
}

#[test]
fn words_and_more_repeats_make_no_other_bench() {
    let folder = tempfile::tempdir().unwrap();
    let results = open(folder.path(), TEXT, "p", false).unwrap();
    Results::keep(&recorded(&results, &results.bench.order[0])).unwrap();
    let more = TEXT.replace("repeats = 2", "repeats = 3\ndescription = 'more'");
    let more = open(folder.path(), &more, "p", false).unwrap();
    assert_eq!(more.bench.order.len(), 6);
    assert!(more.whole(&more.bench.order[0]).unwrap().is_some());
}

#[test]
fn a_complete_bench_can_be_told_of_anew_by_any_program() {
    let folder = tempfile::tempdir().unwrap();
    let results = open(folder.path(), TEXT, "p", false).unwrap();
    for planned in &results.bench.order {
        Results::keep(&recorded(&results, planned)).unwrap();
    }
    assert_eq!(open(folder.path(), TEXT, "q", false).unwrap().bench, results.bench);
}

#[test]
fn what_is_not_ours_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bench.json"), "{}").unwrap();
    let error = open(folder.path(), TEXT, "p", false).unwrap_err();
    assert!(error.contains("bench.json is not a bench's: missing field"), "{error}");
    let results = open(folder.path(), TEXT, "p", true).unwrap();
    let first = &results.bench.order[0];
    results.empty(&Results::name_of(first)).unwrap();
    fs::write(folder.path().join(Results::name_of(first)).join("run.json"), "1").unwrap();
    assert!(results.whole(first).unwrap_err().to_string().contains("is not a run's"));
}

#[test]
fn the_calibration_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = open(folder.path(), TEXT, "p", false).unwrap();
    results.calibrated(&[Some(12.5)]).unwrap();
    let again = open(folder.path(), TEXT, "p", false).unwrap();
    assert_eq!(again.bench.rates, Some(vec![Some(12.5)]));
}

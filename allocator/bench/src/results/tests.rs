use super::*;
use crate::machine::Machine;
use crate::record::Host;

const TEXT: &str = "name = 's'\npolicies = ['none', 'flowcon']\nrepeats = 2\nwarm-up = false\n\
                    [[job]]\nname = 'j'\nimage = 'i'\narrive = 0\n";

fn schedule(text: &str) -> Schedule {
    Schedule::parse(Path::new("s.toml"), text).unwrap()
}

fn environment(program: &str) -> Environment {
    let machine = Machine { cpus: 2, memory: None, system: None, kernel: None, engine: None };
    let images = [("i".to_owned(), Some("sha256:1".to_owned()))].into();
    let program = Program::called(program);
    Environment { machine, engine: "E".to_owned(), program, data: None, images }
}

fn begin_at(
    folder: &Path,
    text: &str,
    environment: Environment,
    now: f64,
    fresh: bool,
) -> Result<Results, String> {
    let begun = || {
        let rerun = if fresh { Rerun::All } else { Rerun::Nothing };
        let mut results = Results::open(folder, &schedule(text), environment, now, rerun)?;
        results.begin(now)?;
        Ok(results)
    };
    begun().map_err(|error: anyhow::Error| format!("{error:#}"))
}

fn open(folder: &Path, text: &str, program: &str, fresh: bool) -> Result<Results, String> {
    begin_at(folder, text, environment(program), 1000.0, fresh)
}

fn recorded(results: &Results, planned: &Planned) -> Recorded {
    let folder = results.empty_folder(&Results::name_of(planned)).unwrap();
    let host = Host { load: 0.5, others: None, steal: 0.0, ..Host::default() };
    let run = Run {
        arm: planned.arm.clone(),
        repeat: planned.repeat,
        began: 1000.0,
        jobs: Vec::new(),
        limits_left: Vec::new(),
        host,
        speed_samples: Vec::new(),
        moves: Vec::new(),
    };
    Recorded { run, samples: Vec::new(), folder }
}

#[test]
fn run_counts_once_complete_and_is_read_back_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let results = open(folder.path(), TEXT, "p", false).unwrap();
    let first = results.bench.order[0].clone();
    let made = recorded(&results, &first);
    assert_eq!(results.completed(&first).unwrap(), None, "its files are there, but not the last");
    Results::save_run(&made).unwrap();
    let again = open(folder.path(), TEXT, "p", false).unwrap();
    assert_eq!(again.bench, results.bench);
    assert_eq!(again.completed(&first).unwrap(), Some(made));
    assert_eq!(again.completed(&again.bench.order[1]).unwrap(), None);
}

#[test]
fn redo_repeats_disturbed_runs_only() {
    let folder = tempfile::tempdir().unwrap();
    let results = open(folder.path(), TEXT, "p", false).unwrap();
    let order = results.bench.order.clone();
    for (place, planned) in order.iter().enumerate() {
        let mut made = recorded(&results, planned);
        made.run.host.spoiled = (place == 1).then(|| "others took 40 %".to_owned());
        Results::save_run(&made).unwrap();
    }
    let again = |rerun, program| {
        Results::open(folder.path(), &schedule(TEXT), environment(program), 1000.0, rerun)
    };
    let there = |results: Results| -> Vec<bool> {
        order.iter().map(|planned| results.completed(planned).unwrap().is_some()).collect()
    };
    assert_eq!(there(again(Rerun::Nothing, "p").unwrap()), [true; 4]);
    assert_eq!(there(again(Rerun::Spoiled, "p").unwrap()), [true, false, true, true]);
    assert!(again(Rerun::Spoiled, "q").is_err(), "runs of two programs are not mixed");
    assert!(again(Rerun::Nothing, "q").is_ok());
}

#[test]
fn changed_schedule_machine_or_program_needs_a_fresh_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let later = TEXT.replace("arrive = 0", "arrive = 9");
    open(path, &later, "p", false).unwrap();
    let results = open(path, TEXT, "p", false).expect("nothing was measured yet");
    Results::save_run(&recorded(&results, &results.bench.order[0])).unwrap();
    let later = TEXT.replace("arrive = 0", "arrive = 5");
    let error = open(path, &later, "p", false).unwrap_err();
    assert!(error.contains("job \"j\".arrive is 5.0, was 0.0"), "{error}");
    assert!(error.contains("delete them with --fresh"), "{error}");
    let error = open(path, TEXT, "q", false).unwrap_err();
    assert!(error.contains("program.sha256 is \"q\", was \"p\""), "{error}");
    let image = |id: Option<&str>| [("i".to_owned(), id.map(str::to_owned))].into();
    let other = Environment {
        images: image(Some("sha256:2")),
        data: Some("/d".into()),
        ..environment("p")
    };
    let error = begin_at(path, TEXT, other, 1000.0, false).unwrap_err();
    assert!(error.contains("data is \"/d\", was null; images.i is \"sha256:2\""), "{error}");
    let none = Environment { images: image(None), ..environment("p") };
    let error = begin_at(path, TEXT, none, 1000.0, false).unwrap_err();
    assert_eq!(error, "the engine lacks the image i; build or pull it first");
    let fresh = open(path, &later, "q", true).unwrap();
    assert_eq!(fresh.completed(&fresh.bench.order[0]).unwrap(), None);
}

#[test]
fn description_and_more_repeats_keep_the_bench() {
    let folder = tempfile::tempdir().unwrap();
    let results = open(folder.path(), TEXT, "p", false).unwrap();
    Results::save_run(&recorded(&results, &results.bench.order[0])).unwrap();
    let more = TEXT.replace("repeats = 2", "repeats = 3\ndescription = 'more'");
    let more = open(folder.path(), &more, "p", false).unwrap();
    assert_eq!(more.bench.order.len(), 6);
    assert!(more.completed(&more.bench.order[0]).unwrap().is_some());
}

#[test]
fn more_arms_add_runs_and_fewer_keep_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let begun = open(path, TEXT, "p", false).unwrap();
    begun.bench.order.iter().for_each(|run| Results::save_run(&recorded(&begun, run)).unwrap());
    let more = TEXT.replace("'flowcon'", "'flowcon', 'tradl'");
    let fewer = TEXT.replace(", 'flowcon'", "");
    let runs = |text: &str| {
        let results = open(path, text, "p", false).unwrap();
        let runs = results.planned(&schedule(text)).into_iter();
        runs.map(|run| (run.folder(), results.is_complete(&run))).collect::<Vec<_>>()
    };
    let of = |runs: &[(&str, bool)]| -> Vec<(String, bool)> {
        runs.iter().map(|(run, whole)| ((*run).to_owned(), *whole)).collect()
    };
    let made =
        of(&[("001-none", true), ("002-flowcon", true), ("003-flowcon", true), ("004-none", true)]);
    assert_eq!(
        runs(&more),
        [made.clone(), of(&[("005-tradl", false), ("006-tradl", false)])].concat()
    );
    assert_eq!(runs(&fewer), of(&[("001-none", true), ("004-none", true)]));
    assert_eq!(runs(TEXT), made);
    let other = format!("{more}[params.flowcon]\nalpha = 0.5\n");
    let error = open(path, &other, "p", false).unwrap_err();
    assert!(error.contains("arm \"flowcon\".params.alpha is 0.5, was null"), "{error}");
}

#[test]
fn complete_bench_can_be_reported_by_another_program() {
    let folder = tempfile::tempdir().unwrap();
    let results = open(folder.path(), TEXT, "p", false).unwrap();
    for planned in &results.bench.order {
        Results::save_run(&recorded(&results, planned)).unwrap();
    }
    let other = Environment { images: [("i".to_owned(), None)].into(), ..environment("q") };
    let again = begin_at(folder.path(), TEXT, other, 1000.0, false).unwrap();
    assert_eq!(again.bench, results.bench);
}

#[test]
fn invalid_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.json");
    fs::write(&file, "{}").unwrap();
    for fresh in [false, true] {
        let error = open(folder.path(), TEXT, "p", fresh).unwrap_err();
        assert!(error.contains("bench.json: missing field"), "{error}");
    }
    fs::remove_file(&file).unwrap();
    let results = open(folder.path(), TEXT, "p", true).unwrap();
    let first = &results.bench.order[0];
    results.empty_folder(&Results::name_of(first)).unwrap();
    fs::write(folder.path().join(Results::name_of(first)).join("run.json"), "1").unwrap();
    assert!(results.completed(first).unwrap_err().to_string().contains("invalid run record"));
}

#[test]
fn calibration_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = open(folder.path(), TEXT, "p", false).unwrap();
    results.save_calibration(&[Some(12.5)]).unwrap();
    let again = open(folder.path(), TEXT, "p", false).unwrap();
    assert_eq!(again.bench.rates, Some(vec![Some(12.5)]));
    assert!(open(folder.path(), TEXT, "q", false).is_err(), "it was measured by another program");
}

#[test]
fn calibration_counts_once_complete_and_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = open(folder.path(), TEXT, "p", false).unwrap();
    results.empty_folder(UNFINISHED).unwrap();
    assert!(!results.has_calibration());
    results.save_calibration(&[Some(12.5)]).unwrap();
    assert!(results.has_calibration() && !folder.path().join(UNFINISHED).exists());
    fs::remove_dir(folder.path().join(CALIBRATION)).unwrap();
    let mut again = open(folder.path(), TEXT, "p", false).unwrap();
    assert!(!again.has_calibration() && again.bench.rates.is_some(), "its frames are gone");
    fs::write(again.empty_folder(UNFINISHED).unwrap().join("frames.jsonl"), "").unwrap();
    again.save_calibration(&[Some(12.5)]).unwrap();
    assert!(folder.path().join(CALIBRATION).join("frames.jsonl").exists());
}

#[test]
fn calibration_without_rates_does_not_count_as_measured() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = open(folder.path(), TEXT, "p", false).unwrap();
    results.save_calibration(&[None]).unwrap();
    open(folder.path(), TEXT, "q", false).expect("any program may continue");
}

#[test]
fn folders_without_a_bench_are_left_alone() {
    for name in MEASURED {
        let folder = tempfile::tempdir().unwrap();
        let foreign = folder.path().join(name).join("events");
        fs::create_dir_all(&foreign).unwrap();
        for fresh in [false, true] {
            let error = open(folder.path(), TEXT, "p", fresh).unwrap_err();
            assert!(error.contains(&format!("{name} exists, but no bench.json")), "{error}");
        }
        assert!(foreign.exists());
    }
}

#[test]
fn report_by_a_bare_name_uses_the_working_directory() {
    let report = Path::new("report.html");
    let results = Results::open(
        report.parent().unwrap(),
        &schedule(TEXT),
        environment("p"),
        1000.0,
        Rerun::Nothing,
    )
    .unwrap();
    assert_eq!(results.folder(), std::env::current_dir().unwrap());
}

#[test]
fn every_start_keeps_the_name_of_the_containers() {
    let folder = tempfile::tempdir().unwrap();
    let first = begin_at(folder.path(), TEXT, environment("p"), 1000.0, false).unwrap();
    for fresh in [false, true] {
        let next = begin_at(folder.path(), TEXT, environment("p"), 2000.0, fresh).unwrap();
        assert_eq!((next.bench.run, next.bench.began), (first.bench.run.clone(), 2000.0));
    }
}

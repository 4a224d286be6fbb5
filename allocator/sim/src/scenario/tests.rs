use super::*;

const MINIMAL: &str = r#"
name = "least"
description = "One job."
policies = ["none"]
[[node]]
name = "n"
cpus = 2
[[job]]
name = "a"
work = 10
"#;

fn error(more: &str) -> String {
    Scenario::parse(&format!("{MINIMAL}{more}")).unwrap_err().to_string()
}

#[test]
fn every_listed_scenario_parses_under_its_name() {
    for listed in LIBRARY {
        let scenario = Scenario::parse(listed.text);
        let scenario = scenario.unwrap_or_else(|error| panic!("{}: {error}", listed.name));
        assert_eq!(scenario.name, listed.name);
        assert!(!scenario.description.is_empty());
        for arm in &scenario.arms {
            scenario.policy(arm).unwrap();
        }
        assert!(!scenario.draw(1).is_empty() || !scenario.gangs.is_empty());
    }
}

#[test]
fn job_with_defaults_can_use_the_whole_machine() {
    let jobs = Scenario::parse(MINIMAL).unwrap().draw(1);
    let [job] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert_eq!((job.arrive, job.work, job.parallel, job.batch), (0.0, 10.0, 1.0, 0.01));
    assert_eq!((job.weight, job.cpu_shares, job.may_terminate), (1.0, 1024, true));
}

#[test]
fn group_is_numbered_by_arrival_and_drawn_from_its_seed() {
    let text = format!(
        "{MINIMAL}[[job]]\nname = \"b\"\ncount = 12\narrive = {{ uniform = [5, 9] }}\n\
         heavy_tail = {{ least = 1, shape = 1.5, most = 100 }}"
    );
    let scenario = Scenario::parse(&text).unwrap();
    let (jobs, again, other) = (scenario.draw(3), scenario.draw(3), scenario.draw(4));
    assert_eq!(jobs, again);
    assert_ne!(jobs, other);
    let group = &jobs[1..];
    assert_eq!((group[0].id.as_str(), group[11].id.as_str()), ("b-01", "b-12"));
    assert!(group.is_sorted_by(|a, b| a.arrive <= b.arrive && a.id < b.id));
    assert!(group.iter().all(|job| (5.0..9.0).contains(&job.arrive)));
    assert!(group.iter().all(|job| (1.0..=100.0).contains(&job.work)));
    // Another group does not change the one before it.
    let more = Scenario::parse(&format!("{text}\n[[job]]\nname = \"c\"\nwork = 1")).unwrap();
    assert_eq!(more.draw(3)[..13], jobs[..]);
}

#[test]
fn invalid_declared_work_and_start_are_rejected() {
    for (more, said) in [
        ("declared = 0", "job \"a\": declared is 0: must be machine-seconds above 0"),
        (
            "start = { work = 0, seconds = 1 }",
            "job \"a\": start.work is 0: must be a number above 0",
        ),
        ("start = { work = 2, seconds = 1 }", "start.seconds is 1: must be seconds, no fewer than"),
        ("start = { work = 1 }", "missing field `seconds`"),
    ] {
        let error = error(more);
        assert!(error.contains(said), "{more}: {error}");
    }
}

#[test]
fn invalid_values_are_named_with_value_and_rule() {
    for (more, said) in [
        ("works = 1", "line 11: unknown field `works`"),
        ("work = 1", "duplicate key"),
        ("parallel = 2", "job \"a\": parallel is 2: must be a share of the node"),
        ("parallel = 1e-308", "must be a share of the node, from 0.0001 to 1"),
        ("node = \"m\"", "job \"a\": node is \"m\": must be one of the nodes n"),
        ("count = 0", "job \"a\": count is 0: must be from 1 to"),
        ("cpu_shares = 0", "job \"a\": cpu_shares is 0: must be from 2 to 262144"),
        ("cpu_shares = 262145", "cpu_shares is 262145: must be from 2 to"),
        ("noise = -1", "job \"a\": noise is -1: must be at least 0"),
        ("residuals = [1.5]", "job \"a\": residuals is 1.5: must be numbers, of a job that has"),
        ("acceptable = 1", "job \"a\": acceptable is 1: must be a number, of a job that has"),
        ("objective_at = 0.5", "job \"a\": objective_at is 0.5: must be a part of the work"),
        (
            "loss = { curve = \"exponential\", start = 1, end = 0, tau = 1 }\nacceptable = 0.5\n\
             objective = 0.5\nacceptable_at = 0.5\nobjective_at = 0.4",
            "job \"a\": objective_at is 0.4: must be no less than acceptable_at, 0.5",
        ),
        (
            "told = { loss = 1, largest = 1 }",
            "job \"a\": told.loss is 1: must be a number, of a job",
        ),
        (
            "loss = { curve = \"exponential\", start = 1, end = 0, tau = 1 }\n\
             told = { loss = -2, largest = 1 }",
            "job \"a\": told.largest is 1: must be a number, at least the absolute value",
        ),
        ("arrive = { at = 1, every = 2 }", "arrive is ambiguous: only one of at, each, every"),
        ("arrive = { each = [1, 2] }", "arrive.each is a list of 2: must have as many"),
        ("heavy_tail = { least = 1, shape = 1, most = 2 }", "only one of work and heavy_tail"),
        ("loss = { curve = \"exponential\", start = 1, end = 0, tau = 0 }", "loss.tau is 0"),
        ("failures = { down = 1 }", "job \"a\": failures is incomplete: exactly one of every"),
        ("failures = { every = 9, at = [1] }", "job \"a\": failures is ambiguous"),
        ("failures = { at = [0] }", "failures.at is 0: must be seconds, above 0"),
        ("failures = { at = [1], down = -1 }", "failures.down is -1: must be seconds"),
        ("failures = { every = 9 }", "failures.every is 9: a run with repeated failures may"),
        ("failures = { often = 9 }", "unknown field `often`"),
        ("checkpoint = { every = 0 }", "checkpoint.every is 0: must be machine-seconds above 0"),
        (
            "checkpoint = { start = true }",
            "checkpoint.start is true: must be false, or the job have",
        ),
        (
            "[[node]]\nname = \"m\"\ncpus = 1\nfailures = { every = 0 }",
            "node \"m\": failures.every is 0: must be a mean in seconds, above 0",
        ),
        ("[params.flowcon]\nalhpa = 1", "did you mean \"alpha\"?"),
        ("[params.flow]\nalpha = 1", "unknown policy \"flow\""),
        (
            "[limiter]\nslew = { max_decrease = 0 }",
            "invalid limiter setting slew.max_decrease \"0\"",
        ),
        ("[[job]]\nname = \"a\"\nwork = 1", "\"a\", twice"),
        ("[[job]]\nname = \"a\"\ncount = 2\nwork = 1", "\"a\", twice"),
        (
            "count = 3\n[[job]]\nname = \"a-3\"\nwork = 1",
            "job: name is \"a-3\", twice: the names of groups and of their members must differ",
        ),
        (
            "[[node]]\nname = \"n-1\"\ncpus = 1\n[[node]]\nname = \"n\"\ncount = 2\ncpus = 1",
            "\"n\", twice",
        ),
        (
            "[[node]]\nname = \"m-1\"\ncpus = 1\n[[node]]\nname = \"m\"\ncount = 2\ncpus = 1",
            "\"m-1\", twice",
        ),
        (
            "[[node]]\nname = \"m\"\ncpus = 1\nbackground = 1",
            "node \"m\": background is 1: must be",
        ),
        ("[[job]]\nname = \"b\"", "job \"b\": work is missing: a job without it never ends"),
        (
            "[[gang]]\nname = \"g\"\nwork = 1\nservers = { count = 1, cpu = 1 }\nworkers = { min = 1, cpu = 1 }",
            "but not both",
        ),
    ] {
        let error = error(more);
        assert!(error.contains(said), "{more}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn invalid_variant_is_named_with_the_valid_ones() {
    let policy = MINIMAL.replace("\"none\"", "\"flowcon:exact\"");
    let error = Scenario::parse(&policy).unwrap_err().to_string();
    assert!(error.contains("resolved or published"), "{error}");
}

#[test]
fn crowded_and_contention_outside_their_range_are_rejected() {
    for (line, said) in [
        ("crowded = 1.5", "job \"b\": crowded is 1.5: must be from 0.0001 to 1"),
        ("contention = -1", "job \"b\": contention is -1: must be at least 0"),
        ("contention = inf", "job \"b\": contention is inf: must be at least 0"),
    ] {
        let error = error(&format!("[[job]]\nname = \"b\"\nwork = 1\n{line}"));
        assert!(error.contains(said), "{line}: {error}");
    }
}

/// The fields of the table at the end of this text, from serde's error about an unknown field.
fn fields(text: &str) -> Vec<String> {
    let text = format!("{text}\nnonsense = 1");
    let error = toml::from_str::<ScenarioFile>(&text).unwrap_err();
    let names: Vec<&str> = error.message().split('`').skip(1).step_by(2).collect();
    assert_eq!(names[0], "nonsense", "{error}");
    names[1..].iter().map(|name| (*name).to_owned()).collect()
}

const GUIDE: &str = include_str!("../../../../examples/scenarios/README.md");

#[test]
fn the_example_of_the_guide_is_a_scenario() {
    let example = GUIDE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let scenario = Scenario::parse(example.unwrap()).unwrap();
    assert_eq!((scenario.nodes.len(), scenario.draw(1).len()), (4, 1));
}

#[test]
fn the_guide_names_every_field() {
    for text in ["", "[[node]]", "[[job]]", "[[gang]]", "[[layout]]"] {
        let fields = fields(text);
        assert!(fields.len() > 1, "{text}: {fields:?}");
        for field in fields {
            let is_named = GUIDE.contains(&format!("`{field}`"))
                || GUIDE.lines().any(|line| line.starts_with(&format!("{field} = ")))
                || GUIDE.contains(&format!("[[{field}]]"))
                || GUIDE.contains(&format!("[{field}"));
            assert!(is_named, "{text}: {field}");
        }
    }
}

#[test]
fn distributed_jobs_are_not_simulated_on_nodes_that_fail() {
    let listed = Listed::named("KO-10").unwrap();
    let text = listed.text.replace("[[node]]", "[[node]]\nfailures = { at = [1] }");
    let error = Scenario::parse(&text).unwrap_err().to_string();
    assert!(error.contains("failures is given: distributed jobs"), "{error}");
}

#[test]
fn gang_with_too_many_tasks_is_rejected() {
    let head = MINIMAL.split("[[job]]").next().unwrap();
    for (tasks, said) in [
        (
            "servers = { count = 70000, cpu = 1 }\nworkers = { min = 1, cpu = 1 }",
            "servers.count is 70000",
        ),
        (
            "servers = { count = 1, cpu = 1 }\nworkers = { min = 10001, cpu = 1 }",
            "workers.min is 10001",
        ),
        (
            "servers = { count = 1, cpu = 1 }\nworkers = { min = 1, max = 4000000000, cpu = 1 }",
            "workers.max is 4000000000",
        ),
    ] {
        let text = format!("{head}[[gang]]\nname = \"g\"\nwork = 1\n{tasks}");
        let error = Scenario::parse(&text).unwrap_err().to_string();
        assert_eq!(error, format!("gang \"g\": {said}: must be at most 10000"));
    }
}

/// The error of a scenario in which `line` replaces the line of the same key.
fn error_of(line: &str) -> String {
    let key = line.split(" = ").next().unwrap();
    let own: Vec<&str> = MINIMAL.lines().filter(|own| !own.starts_with(key)).collect();
    Scenario::parse(&format!("{line}\n{}", own.join("\n"))).unwrap_err().to_string()
}

#[test]
fn number_without_measure_is_refused_with_its_bound() {
    for (more, said) in [
        ("work = 1e15", "job \"a\": work is 1000000000000000: must be at most 1000000000"),
        ("arrive = { at = 1e300 }", "arrive.at is 1"),
        ("arrive = { poisson = 1e10 }", "arrive.poisson is 10000000000: must be at most"),
        ("count = 2\narrive = { every = 9e8 }", "arrive.every is 1800000000: must be at most"),
        ("declared = 1e10", "declared is 10000000000: must be at most"),
        ("batch = { work = 1e10 }", "batch.work is 10000000000: must be at most"),
        ("batch_latency = 1e10", "batch_latency is 10000000000: must be at most"),
        ("checkpoint = { every = 1e10 }", "checkpoint.every is 10000000000: must be at most"),
        ("failures = { at = [1e10] }", "failures.at is 10000000000: must be at most"),
        ("count = 20001", "job \"a\": count is 20001: must be from 1 to 20000"),
        ("count = 4294967295", "must be from 1 to 20000"),
        (
            "count = 15000\n[[job]]\nname = \"b\"\nwork = 1\ncount = 15000",
            "job: count is 30000: must be at most 20000 in all",
        ),
        ("[[node]]\nname = \"m\"\ncpus = 1\ncount = 1000", "node: count is 1001: must be at most"),
    ] {
        let own = if more.starts_with("work") { "" } else { "work = 10\n" };
        let text = MINIMAL.replace("work = 10\n", own) + more;
        let error = Scenario::parse(&text).unwrap_err().to_string();
        assert!(error.contains(said), "{more}: {error}");
    }
    for (line, said) in [
        ("seeds = 1000000000", "seeds is 1000000000: must be from 1 to 10000"),
        ("seeds = 0", "seeds is 0: must be from 1 to 10000"),
        ("until = 1e300", "must be at most 1000000000"),
    ] {
        assert!(error_of(line).contains(said), "{line}: {}", error_of(line));
    }
}

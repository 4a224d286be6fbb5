use proptest::prelude::*;

use super::*;

/// A valid schedule; tests break one thing in it.
const GOOD: &str = r#"name = "demo"
policies = ["none", "flowcon"]
repeats = 3
scale = 4
until = 300
[full]
repeats = 5
[params.flowcon]
interval = 5
alpha = 0.04
[[arm]]
policy = "flowcon"
variant = "published"
enforcement = "quota+leftover"
params = { alpha = 0.1 }
[[arm]]
name = "gentle"
policy = "flowcon"
[[node]]
name = "a"
cpus = "0,2-3"
[[node]]
name = "b"
cpus = "1"
[[job]]
name = "vae"
image = "paceline/workloads"
command = ["vae", "--seed", "1", "--steps", "{steps}"]
arrive = 0.0
work = 55.0
node = "a"
checkpoint = "/checkpoints"
env = { OMP_NUM_THREADS = "2" }
labels = { "paceline.acceptable" = "120" }
[[job]]
name = "other"
image = "busybox"
arrive = 20
node = "b"
"#;

fn parse(text: &str) -> Result<Schedule, String> {
    Schedule::parse(Path::new("s.toml"), text).map_err(|error| error.to_string())
}

/// The line, from 1, on which `text` first appears in the valid schedule.
fn line_of(text: &str) -> usize {
    let before = GOOD.split_once(text).map(|(before, _)| before);
    1 + before.unwrap_or_else(|| panic!("{text} is not in the schedule")).matches('\n').count()
}

/// Checks that replacing `from` by `to` in the valid schedule gives the error `expected`, with the line of
/// `at`.
fn refuses(from: &str, to: &str, at: &str, expected: &str) {
    assert!(GOOD.contains(from), "{from} is not in the schedule");
    let message = parse(&GOOD.replacen(from, to, 1)).expect_err("the schedule is wrong");
    let expected = format!("s.toml:{}: {expected}", line_of(at));
    assert!(message.starts_with(&expected), "{message}\nshould begin with\n{expected}");
}

#[test]
fn valid_schedule_is_parsed() {
    let schedule = parse(GOOD).expect("the schedule is right");
    let names: Vec<&str> = schedule.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["none", "flowcon", "flowcon-published-leftover", "gentle"]);
    let params = |at: usize| schedule.arms[at].params.clone().into_iter().collect::<Vec<_>>();
    let named = |alpha| vec![("alpha".to_owned(), alpha), ("interval".to_owned(), 5.0)];
    assert_eq!((params(0), params(1), params(2)), (Vec::new(), named(0.04), named(0.1)));
    assert_eq!((schedule.repeats, schedule.warm_up, schedule.scale), (3, true, 4.0));
    assert_eq!((schedule.until, schedule.nodes.len()), (Some(300.0), 2));
    let [vae, other] = schedule.jobs.as_slice() else { panic!("two jobs") };
    assert_eq!((vae.work, vae.takes_steps()), (Some(55.0), true));
    assert_eq!((vae.node.as_deref(), vae.checkpoint.as_deref()), (Some("a"), Some("/checkpoints")));
    assert_eq!(vae.command_for(70), ["vae", "--seed", "1", "--steps", "70"]);
    assert_eq!(vae.labels["paceline.acceptable"], "120");
    assert_eq!((other.arrive, other.work, other.takes_steps()), (20.0, None, false));
    assert_eq!(schedule.in_full().repeats, 5);
}

#[test]
fn arm_of_the_full_form_runs_in_full_or_by_its_name() {
    let text = GOOD.replacen("name = \"gentle\"", "name = \"gentle\"\nfull = true", 1);
    let names = |schedule: Schedule| -> Vec<String> {
        schedule.arms.into_iter().map(|arm| arm.name).collect()
    };
    let schedule = parse(&text).expect("the schedule is right");
    let short = ["none", "flowcon", "flowcon-published-leftover"];
    assert_eq!(names(schedule.clone()), short);
    assert_eq!(names(schedule.clone().in_full()), [&short[..], &["gentle"]].concat());
    let named = schedule.under(&["gentle".to_owned(), "none".to_owned()]).expect("both are known");
    assert_eq!(names(named.clone()), ["gentle", "none"]);
    assert_eq!(names(named.in_full()), ["gentle", "none"]);
}

#[test]
fn missing_fields_have_defaults() {
    let text = "name = 'a'\npolicies = ['none']\n[[job]]\nname = 'j'\nimage = 'i'\narrive = 1\n";
    let schedule = parse(text).expect("the schedule is right");
    assert_eq!((schedule.repeats, schedule.warm_up, schedule.seed), (1, false, 1));
    assert_eq!((schedule.arrivals, schedule.until), (Arrivals::Fixed, None));
    let arm = serde_json::to_value(&schedule.arms[0]).expect("it serialises");
    assert_eq!((&arm["variant"], &arm["enforcement"]), (&"resolved".into(), &"quota".into()));
}

#[test]
fn every_example_can_be_used() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/schedules");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let schedule = Schedule::read(&path).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(path.file_stem().and_then(|stem| stem.to_str()), Some(&*schedule.name));
            assert!(schedule.arms.iter().any(|arm| arm.policy == "none"), "{}", schedule.name);
            names.push(schedule.name);
        }
    }
    names.sort();
    assert_eq!(
        names,
        ["demo", "mixed", "r-dq10", "r-fc10", "r-fc3", "r-mix", "r-sp", "r-tr5", "smoke"]
    );
}

#[test]
fn seed_does_not_change_a_jobs_speed() {
    let job = |seed: &[&str]| {
        let command = [&["vae"], seed, &["--steps", "{steps}"]].concat();
        let words = command.into_iter().map(str::to_owned).collect();
        Job { command: words, ..parse(GOOD).expect("right").jobs.remove(0) }.command_without_seed()
    };
    assert_eq!(job(&["--seed", "1"]), job(&["--seed", "2"]));
    assert_eq!(job(&["--seed=1"]), job(&["--seed", "2"]));
    assert_ne!(job(&["--seed", "1"]), job(&["--threads", "1"]));
}

#[test]
fn mistakes_in_the_head_are_named_with_line_and_rule() {
    for (from, to, expected) in [
        ("\"demo\"", "\"a/b\"", "name is \"a/b\": must be 1 to 63 letters"),
        ("\"none\", ", "\"non\", ", "policies is \"non\": unknown policy \"non\""),
        ("\"none\", ", "\"kod2\", ", "policies is \"kod2\": it is a policy for distributed"),
        ("\"none\", ", "\"flowcon\", ", "policies is \"flowcon\": each policy may"),
        ("repeats = 3", "repeats = 0", "repeats is 0: must be from 1 to 1000"),
        ("repeats = 5", "repeats = 2000", "[full] repeats is 2000: must be from 1 to"),
        ("scale = 4", "scale = 0", "scale is 0: must be a number above 0"),
        ("until = 300", "until = nan", "until is NaN: must be above 0 and at most"),
        ("until = 300", "until = 20", "until is 20: job \"other\" arrives after 20"),
        ("alpha = 0.04", "alhpa = 0.04", "unused"),
    ] {
        if expected == "unused" {
            let params = "params is [params.flowcon]: unknown parameter \"alhpa\" of flowcon";
            refuses(from, to, "[params.flowcon]", params);
        } else {
            refuses(from, to, from, expected);
        }
    }
}

#[test]
fn each_mistake_in_an_arm_or_a_node_is_named() {
    for (from, to, at, expected) in [
        (
            "\"published\"",
            "\"printed\"",
            "variant",
            "[[arm]] variant is \"printed\": invalid variant",
        ),
        (
            "\"quota+leftover\"",
            "\"soft\"",
            "enforcement",
            "[[arm]] enforcement is \"soft\": must be quota, shares or quota+leftover",
        ),
        (
            "name = \"gentle\"",
            "migration = \"live\"",
            "name = \"gentle\"",
            "[[arm]] migration is \"live\": must be restart or cpuset",
        ),
        (
            "name = \"gentle\"\npolicy = \"flowcon\"",
            "policy = \"flowcon\"",
            "[[arm]]\nname",
            "[[arm]] name is \"flowcon\": another arm has that name already",
        ),
        (
            "name = \"gentle\"\npolicy = \"flowcon\"",
            "name = \"gentle\"\npolicy = \"oracle\"",
            "policy = \"flowcon\"\n[[node]]",
            "[[arm]] policy is \"oracle\": it needs the work of every job",
        ),
        ("\"0,2-3\"", "\"0, 1\"", "cpus = \"1\"", "node \"b\": cpus is \"1\": CPU 1 already"),
        ("\"0,2-3\"", "\"0,3-2\"", "\"0,2-3\"", "node \"a\": cpus is \"0,3-2\": must be CPUs"),
        (
            "cpus = \"1\"",
            "cpus = \"2\"",
            "cpus = \"1\"",
            "node \"b\": cpus is \"2\": CPU 2 already",
        ),
        ("name = \"b\"", "name = \"a\"", "name = \"b\"", "[[node]] name is \"a\": another"),
        ("node = \"a\"", "node = \"c\"", "node = \"a\"", "job \"vae\": node is \"c\": the nodes"),
        ("node = \"b\"", "", "[[job]]\nname = \"other\"", "job \"other\": node is missing: "),
    ] {
        refuses(from, to, at, expected);
    }
}

#[test]
fn each_mistake_in_a_job_is_named() {
    let other = "[[job]]\nname = \"other\"";
    for (from, to, at, expected) in [
        ("\"other\"", "\"vae\"", "\"other\"", "[[job]] name is \"vae\": another job has"),
        ("\"busybox\"", "\"\"", "\"busybox\"", "job \"other\": image is \"\": must name"),
        ("arrive = 20", "arrive = -1", "arrive = 20", "job \"other\": arrive is -1: must be"),
        ("arrive = 20", "arrive = inf", "arrive = 20", "job \"other\": arrive is inf: must"),
        ("arrive = 20", "arrive = nan", "arrive = 20", "job \"other\": arrive is NaN: must"),
        ("arrive = 20", "", other, "job \"other\": arrive is missing: without [arrivals]"),
        ("{steps}", "{stepz}", "{steps}", "job \"vae\": command is {stepz}: the only"),
        ("{steps}", "70", "work = 55.0", "job \"vae\": work is 55: the command needs {steps}"),
        ("work = 55.0", "work = 0", "work = 55.0", "job \"vae\": work is 0: must be above 0"),
        ("work = 55.0", "", "[[job]]", "job \"vae\": work is missing: a command with {steps}"),
        ("\"/checkpoints\"", "\"c\"", "checkpoint", "job \"vae\": checkpoint is \"c\": must"),
        ("OMP_NUM_THREADS", "\"A=B\"", "OMP_", "job \"vae\": env is \"A=B\": a variable's"),
        (
            "paceline.acceptable",
            "paceline.job",
            "labels",
            "job \"vae\": labels is \"paceline.job\"",
        ),
        (
            "\"120\" }",
            "\"much\" }",
            "labels",
            "job \"vae\": paceline.acceptable is \"much\": must be a finite number",
        ),
        (
            "\"120\" }",
            "\"120\", \"paceline.objective\" = \"130\" }",
            "labels",
            "job \"vae\": paceline.objective is 130: must be at most paceline.acceptable",
        ),
        ("arrive = 20", "arive = 20", "arrive = 20", "unknown field `arive`, expected one of"),
        ("arrive = 20", "arrive = \"x\"", "arrive = 20", "invalid type: string \"x\", expected"),
        ("arrive = 20", "arrive = ", "arrive = 20", ""),
    ] {
        refuses(from, to, at, expected);
    }
}

#[test]
fn arrivals_come_from_each_job_or_from_the_schedule() {
    let with = |arrivals: &str| {
        let jobs = GOOD.replace("arrive = 0.0\n", "").replace("arrive = 20\n", "");
        parse(&jobs.replace("[full]", &format!("[arrivals]\n{arrivals}\n[full]")))
    };
    let times = |arrivals: &str| {
        let jobs = with(arrivals).expect("right").jobs;
        jobs.iter().map(|job| job.arrive).collect::<Vec<f64>>()
    };
    assert_eq!(times("kind = \"burst\""), [0.0, 0.0]);
    assert_eq!(times("kind = \"every\"\ngap = 2.5"), [0.0, 2.5]);
    assert!(times("kind = \"uniform\"\nwithin = 30").iter().all(|t| (0.0..30.0).contains(t)));
    let drawn = with("kind = \"poisson\"\nmean-gap = 9").expect("right");
    assert_eq!(drawn.jobs_of(0), drawn.jobs_of(1), "the warm-up is as the first");
    assert_eq!(drawn.jobs_of(1), drawn.jobs);
    assert_ne!(drawn.jobs_of(1), drawn.jobs_of(2));
    for (wrong, expected) in [
        ("kind = \"often\"", "s.toml:7: [arrivals] kind is \"often\": must be burst, every"),
        ("kind = \"every\"", "s.toml:6: [arrivals] gap is missing: arrivals of kind every"),
        ("kind = \"burst\"\ngap = 1", "s.toml:8: [arrivals] gap is 1: arrivals of kind burst"),
        ("kind = \"every\"\ngap = -1", "s.toml:8: [arrivals] gap is -1: must be from 0"),
        (
            "kind = \"every\"\nwithin = 3",
            "s.toml:8: [arrivals] within is 3: arrivals of kind every take gap",
        ),
    ] {
        let message = with(wrong).expect_err("wrong");
        assert!(message.starts_with(expected), "{message}\nshould begin with\n{expected}");
    }
    let both = GOOD.replace("[full]", "[arrivals]\nkind = \"burst\"\n[full]");
    let message = parse(&both).expect_err("jobs have arrivals as well");
    assert!(message.contains("arrive is 0: [arrivals] already sets when"), "{message}");
}

#[test]
fn other_braces_than_placeholders_are_left_alone() {
    let json = GOOD.replace("\"--seed\", \"1\"", r#"'{"a": {}}', '{2}', '}{'"#);
    assert!(parse(&json).is_ok());
}

#[test]
fn schedule_needs_a_job_and_an_arm() {
    let message = parse("name = 'a'\npolicies = ['none']\n").expect_err("the schedule lacks a job");
    assert_eq!(message, "s.toml:3: job is missing: there must be at least one [[job]]");
    let job = "name = 'a'\n[[job]]\nname = 'j'\nimage = 'i'\narrive = 0\n";
    let message = parse(job).expect_err("the schedule lacks an arm");
    assert!(message.starts_with("s.toml:6: policies is missing: there must be"), "{message}");
}

#[test]
fn jobs_must_arrive_in_time_in_every_repeat_of_both_forms() {
    let text = |until: f64, repeats: &str, seed: u64| {
        format!(
            "name = 'a'\npolicies = ['none']\nuntil = {until:?}\nseed = {seed}\n{repeats}\n\
             [arrivals]\nkind = 'uniform'\nwithin = 30\n[[job]]\nname = 'j'\nimage = 'i'\n"
        )
    };
    let arrival = |seed| parse(&text(31.0, "", seed)).expect("right").jobs.remove(0).arrive;
    let seed = (1..20).find(|seed| arrival(seed + 1) > arrival(*seed)).expect("one is later");
    let until = arrival(seed + 1);
    assert!(parse(&text(until, "", seed)).is_ok());
    for repeats in ["repeats = 2", "[full]\nrepeats = 2"] {
        let message = parse(&text(until, repeats, seed)).expect_err("the second is too late");
        assert!(message.contains("job \"j\" arrives after"), "{message}");
    }
}

#[test]
fn cluster_policy_needs_nodes() {
    assert!(parse(&GOOD.replace("\"none\", ", "\"none\", \"specon\", ")).is_ok());
    let one = "name = 'a'\npolicies = ['specon']\n[[job]]\nname = 'j'\nimage = 'i'\narrive = 0\n";
    let message = parse(one).expect_err("there is one node");
    assert!(message.contains("it is a policy for clusters: give two or more"), "{message}");
}

#[test]
fn single_node_is_refused() {
    let one = GOOD.replace("[[node]]\nname = \"b\"\ncpus = \"1\"\n", "");
    let message = parse(&one).expect_err("a single node is the machine");
    assert!(message.contains("[[node]] name is \"a\": it is the only one"), "{message}");
}

#[test]
fn command_line_can_choose_arms_and_policies() {
    let under = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let schedule = parse(GOOD).expect("right").under(&names).map_err(|error| error.to_string());
        schedule.map(|schedule| schedule.arms)
    };
    assert_eq!(under(&[]).expect("as it is").len(), 4);
    let arms = under(&["gentle", "tradl"]).expect("an arm and a policy");
    assert_eq!((arms[0].policy.as_str(), arms[1].policy.as_str()), ("flowcon", "tradl"));
    let unknown = under(&["fair"]).expect_err("unknown");
    assert!(unknown.starts_with("--arm fair: unknown policy \"fair\""), "{unknown}");
    assert_eq!(under(&["none", "none"]).expect_err("twice"), "--arm none: it is given twice");
    let oracle = under(&["oracle"]).expect_err("a job's work is not known");
    assert!(oracle.contains("needs the work of every job"), "{oracle}");
}

#[test]
fn missing_file_is_named() {
    let error = Schedule::read(Path::new("/nowhere/s.toml")).expect_err("no file");
    assert_eq!(error.to_string(), "cannot read the schedule /nowhere/s.toml");
}

proptest! {
    #[test]
    fn arbitrary_text_is_an_error_without_a_panic(text in "\\PC*") {
        prop_assert!(parse(&text).is_err());
    }

    #[test]
    fn damaged_schedule_never_panics(at in 0..GOOD.len(), with in "\\PC{0,8}", skip in 0_usize..9) {
        let end = (at + skip).min(GOOD.len());
        drop(parse(&format!("{}{with}{}", &GOOD[..at], &GOOD[end..])));
    }
}

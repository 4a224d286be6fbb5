use proptest::prelude::*;

use super::*;

/// A schedule that is right; tests break one thing in it.
const GOOD: &str = r#"name = "demo"
policies = ["none", "flowcon"]
[params.flowcon]
interval = 5
alpha = 0.04
[[job]]
name = "vae"
image = "paceline/workloads"
command = ["vae", "--seed", "1", "--steps", "{steps}"]
arrive = 0.0
work = 55.0
env = { OMP_NUM_THREADS = "2" }
labels = { "paceline.acceptable" = "120" }
[[job]]
name = "other"
image = "busybox"
arrive = 20
"#;

fn parse(text: &str) -> Result<Schedule, String> {
    Schedule::parse(Path::new("s.toml"), text).map_err(|error| error.to_string())
}

/// The message after `from` has become `to` in the good schedule.
fn message(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from} is not in the schedule");
    parse(&GOOD.replacen(from, to, 1)).expect_err("the schedule is wrong")
}

#[test]
fn a_schedule_says_what_its_file_says() {
    let schedule = parse(GOOD).expect("the schedule is right");
    assert_eq!(schedule.policies, ["none", "flowcon"]);
    assert_eq!(schedule.params["flowcon"].get("interval"), Some(&5.0));
    let [vae, other] = schedule.jobs.as_slice() else { panic!("two jobs") };
    assert_eq!((vae.work, vae.takes_steps()), (Some(55.0), true));
    assert_eq!(vae.command_for(70), ["vae", "--seed", "1", "--steps", "70"]);
    assert_eq!(vae.labels["paceline.acceptable"], "120");
    assert_eq!((other.arrive, other.work, other.takes_steps()), (20.0, None, false));
}

#[test]
fn the_demo_schedule_can_be_used() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/schedules/demo.toml");
    let schedule = Schedule::read(&demo).expect("the demo is right");
    assert_eq!(schedule.policies.first().map(String::as_str), Some("none"));
    assert!(schedule.jobs.iter().all(Job::takes_steps));
}

#[test]
fn a_seed_makes_no_other_speed() {
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
fn each_mistake_is_named_with_its_line_and_what_is_allowed() {
    let cases = [
        ("\"demo\"", "\"a/b\"", "s.toml:1: name is \"a/b\", but must be 1 to 63 letters"),
        ("\"none\", ", "\"non\", ", "s.toml:2: policies is \"non\", but policy \"non\" is not"),
        ("\"none\", ", "\"flowcon\", ", "s.toml:2: policies is \"flowcon\", but no policy may"),
        ("[\"none\", \"flowcon\"]", "[]", "s.toml:2: policies is [], but there must be at least"),
        ("alpha", "alhpa", "s.toml:3: params is [params.flowcon], but flowcon has no parameter"),
        ("\"other\"", "\"vae\"", "s.toml:15: [[job]] name is \"vae\", but another job has"),
        ("\"busybox\"", "\"\"", "s.toml:16: job \"other\": image is \"\", but must name"),
        (
            "arrive = 20",
            "arrive = -1",
            "s.toml:17: job \"other\": arrive is -1, but must be from 0",
        ),
        ("arrive = 20", "arrive = inf", "s.toml:17: job \"other\": arrive is inf, but must be"),
        ("arrive = 20", "arrive = nan", "s.toml:17: job \"other\": arrive is NaN, but must be"),
        (
            "{steps}",
            "{stepz}",
            "s.toml:9: job \"vae\": command is {stepz}, but the only placeholder",
        ),
        (
            "{steps}",
            "70",
            "s.toml:11: job \"vae\": work is 55, but it needs {steps} in the command",
        ),
        ("work = 55.0", "work = 0", "s.toml:11: job \"vae\": work is 0, but must be above 0"),
        ("work = 55.0", "", "s.toml:6: job \"vae\": work is missing, but a command with {steps}"),
        ("OMP_NUM_THREADS", "\"A=B\"", "s.toml:12: job \"vae\": env is \"A=B\", but a variable's"),
        (
            "paceline.acceptable",
            "paceline.job",
            "s.toml:13: job \"vae\": labels is \"paceline.job\"",
        ),
        ("arrive = 20", "", "s.toml:14: missing field `arrive`"),
        ("arrive = 20", "arive = 20", "s.toml:17: unknown field `arive`, expected one of `name`"),
        ("arrive = 20", "arrive = \"x\"", "s.toml:17: invalid type: string \"x\", expected f64"),
        ("arrive = 20", "arrive = ", "s.toml:17: "),
    ];
    for (from, to, expected) in cases {
        let message = message(from, to);
        assert!(message.starts_with(expected), "{message}\nshould begin with\n{expected}");
    }
}

#[test]
fn braces_that_are_no_placeholder_are_left_alone() {
    let json = GOOD.replace("\"--seed\", \"1\"", r#"'{"a": {}}', '{2}', '}{'"#);
    assert!(parse(&json).is_ok());
}

#[test]
fn a_schedule_needs_a_job() {
    let message = parse("name = 'a'\npolicies = ['none']\n").expect_err("there is no job");
    assert_eq!(message, "s.toml:3: job is missing, but there must be at least one [[job]]");
}

#[test]
fn the_command_line_may_choose_other_policies() {
    let under = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        parse(GOOD).expect("right").under(&names).map_err(|error| error.to_string())
    };
    assert_eq!(under(&[]).expect("as it is").policies, ["none", "flowcon"]);
    assert_eq!(under(&["flowcon"]).expect("known").policies, ["flowcon"]);
    let unknown = under(&["fair"]).expect_err("unknown");
    assert!(unknown.starts_with("--policy fair: policy \"fair\" is not known"), "{unknown}");
    assert_eq!(under(&["none", "none"]).expect_err("twice"), "--policy none: it is given twice");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Schedule::read(Path::new("/nowhere/s.toml")).expect_err("no file");
    assert_eq!(error.to_string(), "cannot read the schedule /nowhere/s.toml");
}

proptest! {
    #[test]
    fn arbitrary_text_is_never_more_than_an_error(text in "\\PC*") {
        prop_assert!(parse(&text).is_err());
    }

    #[test]
    fn a_damaged_schedule_never_panics(at in 0..GOOD.len(), with in "\\PC{0,8}", skip in 0_usize..9) {
        let end = (at + skip).min(GOOD.len());
        drop(parse(&format!("{}{with}{}", &GOOD[..at], &GOOD[end..])));
    }
}

use proptest::prelude::*;

use super::*;

pub(in crate::gangs) const EXAMPLE: &str = r#"
name = "mnist"
image = "paceline/workloads"
env = { PACELINE_DATA = "/data", ME = "{number}" }
labels = { "paceline.acceptable" = "0.3" }
mounts = ["/srv/mnist:/data:ro", "checkpoints:/ckpt"]

[ps]
count = 2
cpus = 0.5
memory = 256e6
args = ["mnist", "--role", "ps", "--part", "{index}/{count}"]

[worker]
min = 2
max = 3
cpus = 1
args = ["mnist", "--role", "worker", "--servers", "{servers}", "--seed", "{number}"]
nodes = ["w1", "w3", "w1"]
"#;

fn error(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "{from}");
    Gang::parse(&EXAMPLE.replace(from, to)).unwrap_err().to_string()
}

#[test]
fn each_task_has_its_command_and_environment() {
    let gang = Gang::parse(EXAMPLE).unwrap();
    let joined = |role, index| gang.command(role, index).unwrap().join(" ");
    assert_eq!(joined(Role::Ps, 1), "mnist --role ps --part 1/2");
    assert_eq!(
        joined(Role::Worker, 2),
        "mnist --role worker --servers mnist-ps-0:7300,mnist-ps-1:7300 --seed 3"
    );
    assert_eq!(gang.environment(Role::Worker, 2).unwrap(), ["ME=3", "PACELINE_DATA=/data"]);
    assert_eq!((gang.min, gang.worker.count), (2, 3));
    let data = Mount { source: "/srv/mnist".into(), target: "/data".into(), read_only: true };
    assert_eq!(gang.mounts.first(), Some(&data));
}

#[test]
fn optional_keys_have_defaults() {
    let text = "name = 'a'\nimage = 'i'\n[worker]\nmin = 3\ncpus = 2";
    let gang = Gang::parse(text).unwrap();
    assert_eq!((gang.ps.count, gang.min, gang.worker.count), (0, 3, 3));
    assert_eq!((gang.network, gang.worker.memory.to_bits()), (None, 0.0_f64.to_bits()));
}

#[test]
fn invalid_value_is_reported_with_allowed_values() {
    for (from, to, said) in [
        (
            "name = \"mnist\"",
            "name = \"MNIST\"",
            "invalid name \"MNIST\": expected at most 40 lower-case",
        ),
        ("name = \"mnist\"", "name = \"-a\"", "invalid name \"-a\""),
        ("image = \"paceline/workloads\"", "image = ' '", "invalid image "),
        ("min = 2", "min = 0", "invalid worker.min 0: expected at least 1"),
        ("max = 3", "max = 1", "invalid worker.max 1: expected at least worker.min, 2"),
        ("max = 3", "max = 999", "invalid number of tasks 1001: expected at most 1000"),
        ("cpus = 0.5", "cpus = -1", "invalid ps.cpus -1: expected a number above 0"),
        ("cpus = 1\n", "cpus = inf\n", "invalid worker.cpus inf"),
        ("256e6", "nan", "invalid ps.memory NaN"),
        ("\"w1\", \"w3\", \"w1\"", "\"w1\"", "invalid worker.nodes of length 1: expected 3 names"),
        ("\"{number}\" }", "\"{name}\" }", "env.ME: unknown placeholder {name}"),
        ("{index}/{count}", "{}", "ps.args: unknown placeholder {}"),
        ("ME =", "\"M=E\" =", "invalid env \"M=E\""),
        ("/srv/mnist:/data:ro", "srv/mnist:/data", "invalid mounts \"srv/mnist:/data\""),
        (":/data:ro", ":/data:rw", "SOURCE:/TARGET:ro"),
        ("\"0.3\"", "\"low\"", "labels: invalid label paceline.acceptable=\"low\""),
        ("count = 2", "cuont = 2", "did you mean \"count\"?"),
        ("cpus = 0.5", "cpus = 'much'", "line 10: "),
    ] {
        let error = error(from, to);
        assert!(error.contains(said), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".*") {
        drop(Gang::parse(&text));
    }

    #[test]
    fn no_value_makes_the_reader_panic(
        at in 0..EXAMPLE.len(), put in "[\\[\\]{}=\":a0.\\-\n]{0,3}", cut in 0..9_usize
    ) {
        let end = (at + cut).min(EXAMPLE.len());
        drop(Gang::parse(&format!("{}{put}{}", &EXAMPLE[..at], &EXAMPLE[end..])));
    }
}

#[test]
fn example_file_is_valid() {
    let text = include_str!("../../../../../examples/jobs/mnist.toml");
    let gang = Gang::parse(text).unwrap();
    assert_eq!((gang.ps.count, gang.min, gang.worker.count), (1, 2, 4));
}

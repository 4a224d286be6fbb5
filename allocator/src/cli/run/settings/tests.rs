use clap::Parser;
use paceline_policy::limiter::Enforcement;
use paceline_server::web::Address;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    run: RunArgs,
}

fn args(line: &str) -> RunArgs {
    Line::try_parse_from(line.split_whitespace()).unwrap().run
}

fn settings(line: &str, file: &str) -> Settings {
    args(line).over(&Config::parse(file).unwrap(), &Given::default())
}

const FILE: &str = r#"
policy = "tradl"
variant = "published"
shadow = ["none"]
with_label = ["a=b"]
actuator = "cgroup"
on_drift = "yield"
adopt = ["swarm"]
nodes = { a = "0", b = "1-2" }
migration = { by = "cpuset", most = 3 }
state_dir = "/file/state"
control = "/file/control"
log_level = "warn"
log_format = "json"
[params]
hold = 4
[limiter]
enforcement = "shares"
fairness = {}
[web]
listen = "none"
token_file = "/file/token"
tls_certificate = "/file/certificate"
tls_key = "/file/key"
"#;

#[test]
fn file_sets_what_the_command_line_leaves_out() {
    let all = settings("run", FILE);
    assert_eq!((all.chosen.policy.as_str(), all.chosen.variant), ("tradl", Variant::Published));
    assert_eq!(all.shadow, ["none"]);
    assert_eq!((all.log_level.to_string().as_str(), all.log_format), ("warn", Format::Json));
    let Fixed { actuator, on_drift, adopt, dry_run, with_label, .. } = all.fixed.clone();
    let Fixed { nodes, migration, control, web, state, .. } = all.fixed;
    assert_eq!(nodes.iter().map(Node::to_string).collect::<Vec<_>>(), ["a=0", "b=1-2"]);
    assert_eq!((migration.by, migration.most), (migration::MigrationMethod::Cpuset, 3));
    assert_eq!((actuator, on_drift, dry_run), (ActuatorBackend::Cgroup, OnDrift::Yield, false));
    assert_eq!((adopt, with_label), (vec![Owner::Swarm], vec!["a=b".to_owned()]));
    assert_eq!(control.socket(), Some("/file/control".into()));
    assert_eq!(state.folder(), std::path::Path::new("/file/state"));
    assert_eq!(web.listen, Some(Address::None));
    assert_eq!(web.tls_key, Some("/file/key".into()));
}

#[test]
fn command_line_overrides_the_file() {
    let given = Given { level: Some("debug".parse().unwrap()), format: Some(Format::Text) };
    let line = "run --policy dqoes --variant resolved --shadow flowcon --with-label c=d \
                --actuator engine --on-drift reassert --adopt compose --dry-run \
                --state-dir /line/state --control none --enforcement quota --listen [::1]:1 \
                --param alpha=0.3 --token-file /line/token --tls-certificate /line/certificate \
                --tls-key /line/key --node x=0 --node y=1 --migration restart --move-within 9 \
                --moves 1";
    let all = args(line).over(&Config::parse(FILE).unwrap(), &given);
    let alone = args(line).over(&Config::default(), &given);
    assert_eq!(all.fixed, alone.fixed);
    assert_eq!(
        (all.shadow, all.log_level, all.log_format),
        (alone.shadow, alone.log_level, alone.log_format)
    );
    assert_eq!(
        (all.chosen.policy, all.chosen.variant),
        (alone.chosen.policy, alone.chosen.variant)
    );
    assert_eq!(all.chosen.limiter.enforcement, alone.chosen.limiter.enforcement);
    assert!(all.chosen.limiter.fairness.is_some(), "the command line does not set it");
    assert_eq!(all.chosen.params.iter().collect::<Vec<_>>(), [("alpha", 0.3), ("hold", 4.0)]);
}

#[test]
fn changes_are_named_by_the_files_keys() {
    let before = settings("run", "[params]\nalpha = 0.02\n[limiter]\nslew = {}");
    let after = settings(
        "run",
        "policy = 'tradl'\nshadow = ['none', 'flowcon']\nlog_level = 'debug'\n\
         [limiter]\nenforcement = 'shares'\nslew = { max_decrease = 0.2 }",
    );
    assert_eq!(
        before.changes(&after),
        [
            "limiter.enforcement: quota -> shares",
            "limiter.slew.max_decrease: 0.1 -> 0.2",
            "log_level: info -> debug",
            "params.alpha: 0.02 -> unset",
            "policy: paceline -> tradl",
            "shadow: unset -> none, flowcon",
        ]
    );
    assert_eq!(before.changes(&before), [""; 0]);
}

#[test]
fn fixed_keys_that_differ_are_named_and_defaults_are_equal() {
    let (usual, other) = (settings("run", ""), settings("run", &format!("dry_run = true\n{FILE}")));
    assert_eq!(
        usual.fixed.differences(&other.fixed),
        [
            "actuator",
            "on_drift",
            "adopt",
            "dry_run",
            "with_label",
            "nodes",
            "migration",
            "control",
            "state_dir",
            "web.listen",
            "web.token_file",
            "web.tls_certificate",
            "web.tls_key",
        ]
    );
    let same = "actuator = 'auto'\ncontrol = '/run/paceline/control.sock'\n\
                [web]\nlisten = '127.0.0.1:7224'";
    assert_eq!(usual.fixed.differences(&settings("run", same).fixed), [""; 0]);
}

#[test]
fn error_names_the_file_if_the_file_causes_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("paceline.toml");
    let said = |line: &str, text: &str| {
        std::fs::write(&file, text).unwrap();
        let line = format!("{line} --config {}", file.display());
        args(&line).settings(&Given::default()).unwrap_err().to_string()
    };
    let path = file.display().to_string();
    for (text, part) in [
        ("policy = 'tradle'", "did you mean \"tradl\"?"),
        ("policy = 'flowcon'\n[params]\nbeta = -1", "invalid parameter beta \"-1\" of flowcon"),
        (
            "[params]\nbeta = 2",
            "the default policy is now paceline, but these are parameters of flowcon",
        ),
        ("shadow = ['all']", "shadow: unknown policy \"all\""),
        ("[limiter.slew]\nmax_decrease = 3", "invalid limiter setting slew.max_decrease \"3\""),
        ("policy = 'kod2'", "a policy of a cluster"),
        ("polcy = 'none'", "did you mean \"policy\"?"),
    ] {
        let said = said("run", text);
        assert!(said.starts_with(&path) && said.contains(part), "{said}");
    }
    let said = said("run --policy best", "policy = 'none'");
    assert!(said.contains("\"best\"") && !said.contains(&path), "{said}");
}

#[test]
fn shown_parameters_are_those_in_force() {
    let shown = |line: &str| {
        let settings = settings(line, "");
        settings.policy_view(&settings.build().unwrap().policy.params()).params
    };
    let printed = shown("run --policy tradl --variant published");
    assert_eq!(printed.get("confirm"), Some(&1.0));
    assert_eq!(shown("run --policy tradl").get("confirm"), Some(&3.0));
    let flowcon = shown("run --policy flowcon --param interval=5");
    assert_eq!((flowcon["interval"], flowcon["max_interval"], flowcon["alpha"]), (5.0, 80.0, 0.01));
}

#[test]
fn default_enforcement_is_the_policys_own() {
    let enforcement = |line: &str, file: &str| settings(line, file).chosen.limiter.enforcement;
    assert_eq!(settings("run", "").chosen.policy, "paceline");
    assert_eq!(enforcement("run", ""), Enforcement::Quota);
    assert_eq!(enforcement("run --policy flowcon", ""), Enforcement::QuotaLeftover);
    assert_eq!(enforcement("run", "[limiter]\nenforcement = 'shares'"), Enforcement::Shares);
    assert_eq!(enforcement("run --enforcement quota --policy tradl", ""), Enforcement::Quota);
}

/// The shipped example.
const EXAMPLE: &str = include_str!("../../../../../examples/deploy/paceline.toml");

#[test]
fn several_nodes_need_a_policy_that_moves_jobs() {
    let error = |line: &str| settings(line, "").build().unwrap_err().to_string();
    let nodes = "--node a=0 --node b=1";
    for policy in ["specon", "none"] {
        let built = settings(&format!("run --policy {policy} {nodes}"), "").build().unwrap();
        assert_eq!(built.nodes.specs().count(), 2);
    }
    for policy in ["flowcon", "spread", "kod2"] {
        let error = error(&format!("run --policy {policy} {nodes}"));
        assert!(
            error.contains("does not move running jobs") && error.contains("specon"),
            "{error}"
        );
    }
    assert!(error("run --policy specon").contains("`--node a=0 --node b=1`"));
    assert!(error(&format!("run --policy none --shadow tradl {nodes}")).contains("tradl"));
    assert!(error("run --policy none --node a=0 --node b=0").contains("CPU 0 is on a and on b"));
    assert!(error("run --policy none --move-within 0").contains("invalid migration.within 0"));
}

#[test]
fn example_file_shows_every_key_with_its_default() {
    let shown: Vec<&str> = EXAMPLE
        .lines()
        .map(|line| {
            line.strip_prefix('#').filter(|rest| !rest.starts_with([' ', ':'])).unwrap_or(line)
        })
        .collect();
    let usual = settings("run", EXAMPLE);
    assert_eq!(usual, settings("run", ""));
    let whole = Config::parse(&shown.join("\n")).unwrap();
    for key in ["policy", "variant", "actuator", "on_drift", "state_dir", "control", "dry_run"]
        .into_iter()
        .chain(["log_level", "log_format", "shadow", "with_label", "adopt", "[params]", "[web]"])
        .chain(["listen", "token_file", "tls_certificate", "tls_key", "enforcement"])
        .chain(["slew", "fairness", "canary", "nodes", "migration"])
    {
        assert!(shown.iter().any(|line| line.starts_with(key)), "{key} is not shown");
    }
    let all = args("run").over(&whole, &Given::default());
    assert_eq!(
        all.fixed.differences(&usual.fixed).join(" "),
        "web.token_file web.tls_certificate web.tls_key"
    );
    all.build().unwrap();
}

#[test]
fn shown_settings_are_a_file_with_the_same_meaning() {
    let lines = ["run", "run --policy flowcon --param alpha=0.05 --dry-run --control none"];
    for (line, file) in lines.into_iter().flat_map(|line| [(line, ""), (line, FILE)]) {
        // FILE's parameter is one of tradl.
        let file = if line == "run" { file.to_owned() } else { file.replace("hold = 4", "") };
        let all = settings(line, &file);
        let text = toml::to_string(&all.as_file()).unwrap();
        let again = settings("run", &text);
        assert_eq!(all.fixed.differences(&again.fixed), Vec::<&str>::new(), "{text}");
        assert_eq!(all.changes(&again), Vec::<String>::new(), "{text}");
        assert_eq!(again.as_file(), all.as_file());
    }
}

#[test]
fn kubernetes_refuses_weights_and_sets_of_cpus() {
    let of_kubernetes = |line: &str| {
        let args = RunArgs { place: Place::Kubernetes, ..args(line) };
        args.settings(&Given::default()).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(of_kubernetes("run --enforcement quota"), Ok(()));
    assert_eq!(
        of_kubernetes("run --enforcement shares").unwrap_err(),
        "invalid enforcement \"shares\" on Kubernetes: expected quota or quota+leftover, because a \
         pod's weight is its request"
    );
    let error = of_kubernetes("run --policy specon --node a=0 --node b=1").unwrap_err();
    assert!(error.starts_with("cannot split a Kubernetes node by --node: "), "{error}");
    assert!(args("run --enforcement shares").settings(&Given::default()).is_ok());
}

#[test]
fn policy_must_fit_the_nodes_of_the_run_and_not_those_of_the_file() {
    let one = settings("run --policy flowcon", "");
    let several = settings("run --policy specon --node a=0 --node b=1", "");
    for (run, new, part) in [
        (&one, &several, "cannot run specon on one node"),
        (&several, &one, "cannot run flowcon on several nodes"),
    ] {
        let error = new.build_for(run.fixed.clone()).unwrap_err().to_string();
        let restart = "only a restart applies the change of nodes";
        assert!(error.contains(part) && error.ends_with(restart), "{error}");
        run.build_for(run.fixed.clone()).unwrap();
    }
    let free = settings("run --policy none", "");
    for run in [one, several] {
        free.build_for(run.fixed).unwrap();
    }
}

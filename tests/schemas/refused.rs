//! Wrong files: the schema refuses them, and so does the program.

use std::fs;

use serde_json::Value;

use crate::examples::{ENGINE, from_toml, paceline};
use crate::fake_engine::FakeEngine;
use crate::schema;
use crate::validator::Validator;

/// The file of a test.
const FILE: &str = "written.txt";

/// A kind of files.
struct Kind {
    schema: &'static str,
    /// The command that reads a file.
    command: &'static [&'static str],
    /// Whether it asks an engine first.
    asks: bool,
    /// What an error about a file has.
    named: &'static str,
    /// A right file.
    right: &'static str,
    /// A part of it, and what makes it wrong in its place.
    wrong: &'static [(&'static str, &'static str)],
}

const CONFIG: Kind = Kind {
    schema: "config.json",
    command: &["config", "check"],
    asks: false,
    named: FILE,
    right: "policy = 'specon'\nvariant = 'resolved'\nactuator = 'auto'\nadopt = ['swarm']\n\
            nodes = { a = '0', b = '1' }\nlog_level = 'info'\n\
            migration = { by = 'cpuset', within = 60 }\n[params]\ninterval = 20\n\
            [limiter]\nenforcement = 'quota'\nslew = { max_decrease = 0.1 }\n\
            fairness = { max_slowdown = 3 }\ncanary = { reports = 3, quarantine = 300 }\n\
            [web]\nlisten = '127.0.0.1:7224'\n",
    wrong: &[
        ("policy", "polcy"),
        ("'specon'", "'best'"),
        ("'resolved'", "'exact'"),
        ("'auto'", "'hand'"),
        ("['swarm']", "['nomad']"),
        ("'0'", "'x'"),
        ("'info'", "''"),
        ("'cpuset'", "'magic'"),
        ("within = 60", "within = 0"),
        ("interval = 20", "interval = 'often'"),
        ("'quota'", "'hope'"),
        ("max_decrease = 0.1", "max_decrease = 1.5"),
        ("max_slowdown = 3", "max_slowdown = 0.5"),
        ("reports = 3", "reports = 0"),
        ("quarantine = 300", "quarantine = 0"),
        ("quarantine = 300", "pause = 300"),
        ("'127.0.0.1:7224'", "'7224'"),
        ("[web]", "[wbe]"),
    ],
};

const SCENARIO: Kind = Kind {
    schema: "scenario.json",
    command: &["simulate"],
    asks: false,
    named: FILE,
    right: "name = 'a'\ndescription = 'one'\npolicies = ['none', 'flowcon:published']\n\
            [[node]]\nname = 'n'\ncpus = 4\n[[job]]\nname = 'j'\nwork = 20\narrive = { at = 0 }\n\
            min = 0.1\nstated_total = { factor = 0.5 }\n\
            loss = { curve = 'exponential', start = 2.3, end = 0.1, tau = 0.2 }\n",
    wrong: &[
        ("description = 'one'\n", ""),
        ("'flowcon:published'", "'flowcon:exact'"),
        ("'none'", "'best'"),
        ("cpus = 4", "cpus = 0"),
        ("work = 20", "work = -1"),
        ("at = 0", "at = -1"),
        ("at = 0", "when = 0"),
        ("min = 0.1", "min = 2"),
        ("min = 0.1", "mini = 0.1"),
        ("factor", "half"),
        ("'exponential'", "'straight'"),
        (", tau = 0.2", ""),
    ],
};

const SCHEDULE: Kind = Kind {
    schema: "schedule.json",
    command: &["bench"],
    asks: true,
    named: FILE,
    right: "name = 'a'\npolicies = ['none']\nrepeats = 2\n[arrivals]\nkind = 'every'\ngap = 5\n\
            [[arm]]\npolicy = 'flowcon'\nenforcement = 'shares'\n[[job]]\nname = 'j'\nimage = 'i'\n",
    wrong: &[
        ("'a'", "'a b'"),
        ("['none']", "['best']"),
        ("repeats = 2", "repeats = 0"),
        ("repeats = 2", "repeat = 2"),
        ("'every'", "'sometimes'"),
        ("gap = 5", "gap = -5"),
        ("'flowcon'", "'best'"),
        ("'shares'", "'hope'"),
        ("'i'", "''"),
        ("image = 'i'\n", ""),
    ],
};

const JOB: Kind = Kind {
    schema: "job.json",
    command: &["submit"],
    asks: false,
    named: FILE,
    right: "name = 'mnist'\nimage = 'i'\nmounts = ['/srv:/data:ro']\n[ps]\ncount = 1\ncpus = 0.5\n\
            [worker]\nmin = 2\nmax = 4\ncpus = 1\n",
    wrong: &[
        ("'mnist'", "'Mnist'"),
        ("'i'", "''"),
        (":ro'", ":rw'"),
        ("count = 1", "number = 1"),
        ("cpus = 0.5", "cpus = 0"),
        ("min = 2", "min = 0"),
        ("max = 4", "max = 'all'"),
        ("cpus = 1", ""),
    ],
};

const FRAME: Kind = Kind {
    schema: "frame.json",
    command: &["replay", "--policy", "tradl"],
    asks: false,
    named: "line 1: ",
    right: "{\"t\":1,\"nodes\":[{\"name\":\"n\",\"cpus\":4}],\"jobs\":[{\"id\":\"a\",\"loss\":0.3,\
            \"direction\":\"minimize\",\"targets\":null}]}\n",
    wrong: &[
        ("\"t\":1,", ""),
        ("\"id\":\"a\"", "\"id\":\"\""),
        ("\"minimize\"", "\"up\""),
        ("0.3", "\"0.3\""),
        ("\"name\":\"n\",", ""),
    ],
};

impl Kind {
    fn value(&self, text: &str) -> Value {
        if self.schema == FRAME.schema {
            return serde_json::from_str(text).unwrap();
        }
        from_toml(text).unwrap()
    }

    async fn check(&self) {
        let folder = tempfile::tempdir().unwrap();
        let validator = Validator::new(schema(self.schema));
        let _engine = self.asks.then(|| FakeEngine::listen(&folder.path().join(ENGINE)));
        let run = async |text: &str| {
            fs::write(folder.path().join(FILE), text).unwrap();
            let (code, _, error) = paceline(folder.path(), &[self.command, &[FILE]].concat()).await;
            (code, error)
        };
        validator.check(&self.value(self.right)).unwrap();
        let (code, error) = run(self.right).await;
        // A right file comes as far as the engine, which has no image and may not be there, or to its end.
        assert!(code != Some(2) || !error.contains(self.named), "{}: {error}", self.schema);
        for (part, wrong) in self.wrong {
            assert!(self.right.contains(part), "{part}");
            let text = self.right.replacen(part, wrong, 1);
            let name = format!("{}: {wrong:?} for {part:?}", self.schema);
            assert!(validator.check(&self.value(&text)).is_err(), "the schema allows {name}");
            let (code, error) = run(&text).await;
            assert!(code == Some(2) && error.contains(self.named), "{name}: {code:?} {error}");
        }
    }
}

#[tokio::test]
async fn wrong_configuration_is_refused_by_schema_and_program() {
    CONFIG.check().await;
}

#[tokio::test]
async fn wrong_scenario_is_refused_by_schema_and_program() {
    SCENARIO.check().await;
}

#[tokio::test]
async fn wrong_schedule_is_refused_by_schema_and_program() {
    SCHEDULE.check().await;
}

#[tokio::test]
async fn wrong_job_is_refused_by_schema_and_program() {
    JOB.check().await;
}

#[tokio::test]
async fn wrong_frame_is_refused_by_schema_and_program() {
    FRAME.check().await;
}

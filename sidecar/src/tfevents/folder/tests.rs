use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};

use paceline_lines::observation::{Phase, Span};
use paceline_tfevents::{OWN_SUFFIX, Scalar, Writer};
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::super::encode::{self, record, series, simple, tensor, version};
use super::super::event::Event;
use super::super::file::Place;
use super::super::record::{MAX_RECORD_LEN, Records};
use super::*;

const FIRST: &str = "events.out.tfevents.1700000000.host.1.0";
const SECOND: &str = "events.out.tfevents.1700000100.host.2.0";

/// A folder of logs and its follower.
struct Logs {
    folder: tempfile::TempDir,
    follower: Folder,
    now: Duration,
}

impl Logs {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let follower = Folder::new(folder.path().join("logs"), 0);
        Self { folder, follower, now: Duration::ZERO }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("logs").join(name)
    }

    fn append(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(bytes).unwrap();
    }

    /// All observations until there is nothing more to read.
    fn poll(&mut self) -> Vec<(String, bool, Observation)> {
        self.now += Duration::from_mins(1);
        let mut found = Vec::new();
        let mut take = |f: Found<'_>| found.push((f.run.to_owned(), f.rewound, f.observation));
        while self.follower.poll(self.now, &mut take).more {}
        found
    }

    /// The steps of all observations, with an exclamation mark where the job went back.
    fn steps(&mut self) -> String {
        let step = |(_, rewound, found): (String, bool, Observation)| {
            format!("{}{}", found.step.unwrap(), if rewound { "!" } else { "" })
        };
        self.poll().into_iter().map(step).collect::<Vec<_>>().join(" ")
    }

    /// Resumes with a new follower from the saved state.
    fn restart(&mut self) {
        let saved = serde_json::to_string(&self.follower.saved()).unwrap();
        let saved = serde_json::from_str(&saved).unwrap();
        self.follower = Folder::resume(self.folder.path().join("logs"), 0, saved);
    }
}

/// A file may become another one after its folder was scanned.
#[test]
fn file_that_has_become_a_pipe_is_an_error_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join(FIRST);
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let (mut place, mut met) = (Place::default(), Met::default());
    let error = place.read(&pipe, &mut { BUDGET }, &mut met, &mut |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "it is not a regular file");
}

#[test]
fn losses_have_time_step_and_phase() {
    let mut logs = Logs::new();
    assert_eq!(logs.poll(), []);
    let now = logs.now;
    assert!(!logs.follower.poll(now, &mut |_| ()).source_up);
    let event = encode::event(1.7e9, 7, &[simple("Loss/train", 0.5), simple("lr", 0.1)]);
    logs.append(FIRST, &[version(1.7e9), record(&event)].concat());
    let found = logs.poll();
    let [(_, false, observation)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((observation.at, observation.step), (Some(1.7e9), Some(7)));
    let loss = &observation.losses[0];
    assert_eq!((loss.name.as_str(), loss.value), ("Loss/train", 0.5));
    assert_eq!((loss.phase, loss.span), (Phase::Train, Span::Step));
    assert_eq!(logs.poll(), []);
}

#[test]
fn what_paceline_writes_is_not_read_back() {
    let mut logs = Logs::new();
    let folder = logs.folder.path().join("logs");
    let mut writer = Writer::new(&folder, "host");
    let losses = [Scalar { tag: "loss/train", value: 0.5 }];
    for step in 1..=3 {
        writer.write(1.7e9, step, &losses).unwrap();
    }
    assert_eq!(logs.poll(), []);
    // The job's own files beside it are read, and the writer makes room for them.
    logs.append(FIRST, &series("loss", 1..3, 0.0));
    Writer::new(&folder, "host").write(1.7e9, 4, &losses).unwrap();
    assert_eq!(logs.steps(), "1 2");
    // The reader understands it: a file that is named itself is read.
    let mut files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let own = files.find(|path| path.to_string_lossy().ends_with(OWN_SUFFIX)).unwrap();
    let mut steps = Vec::new();
    let mut take = |found: Found<'_>| steps.push(found.observation.step.unwrap());
    Folder::new(own, 0).poll(Duration::ZERO, &mut take);
    assert_eq!(steps, [1, 2, 3]);
}

proptest! {
    #[test]
    fn any_written_event_is_read_as_it_was(
        written in prop::collection::vec(
            (0_u64..1 << 40, 0.0_f64..4e9, prop::collection::vec(("[a-z/_]{1,20}", any::<f32>()), 0..8)),
            1..20,
        ),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(folder.path(), "host");
        let mut expected = Vec::new();
        for (step, time, values) in &written {
            let scalars = values.iter().map(|(tag, value)| Scalar { tag, value: (*value).into() });
            writer.write(*time, *step, &scalars.collect::<Vec<_>>()).unwrap();
            let bits = values.iter().map(|(tag, value)| (tag.clone(), f64::from(*value).to_bits()));
            expected.push((i64::try_from(*step).unwrap(), *time, bits.collect::<Vec<_>>()));
        }
        let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let mut events = Vec::new();
        let mut records = Records::default();
        records.feed(&fs::read(file).unwrap(), &mut |data| events.push(Event::read(data).unwrap()));
        let version = events.remove(0);
        prop_assert_eq!(version.file_version.as_deref(), Some("brain.Event:2"));
        let seen: Vec<_> = events
            .into_iter()
            .filter(|event| !event.starts)
            .map(|event| {
                let scalars = event.scalars.into_iter();
                let bits = scalars.map(|scalar| (scalar.tag, scalar.value.to_bits()));
                (event.step, event.wall_time, bits.collect::<Vec<_>>())
            })
            .collect();
        // What a NaN is made of may change on the way from one precision to the other.
        let is_nan = |bits: u64| f64::from_bits(bits).is_nan();
        prop_assert_eq!(seen.len(), expected.len());
        for (seen, expected) in seen.iter().zip(&expected) {
            prop_assert_eq!((seen.0, seen.1), (expected.0, expected.1));
            for ((tag, value), (known, truth)) in seen.2.iter().zip(&expected.2) {
                prop_assert_eq!(tag, known);
                prop_assert!(value == truth || is_nan(*value) && is_nan(*truth));
            }
        }
    }
}

#[test]
fn duplicate_validation_of_keras_counts_once() {
    let mut logs = Logs::new();
    let event = |step, tag, value| record(&encode::event(1.7e9, step, &[tensor(tag, value)]));
    let train = [event(0, "epoch_loss", 3.0), event(1, "epoch_loss", 2.0)];
    logs.append(&format!("train/{FIRST}.v2"), &train.concat());
    let evaluation = "evaluation_loss_vs_iterations";
    let validation = [event(6, evaluation, 1.5), event(0, "epoch_loss", 1.5)];
    logs.append(&format!("validation/{FIRST}.v2"), &validation.concat());
    let found = logs.poll();
    let brief = found.iter().map(|(run, _, found)| {
        let loss = found.losses.first().map(|loss| (loss.phase, loss.span, loss.value));
        (run.as_str(), found.step, found.epoch, loss)
    });
    assert_eq!(
        brief.collect::<Vec<_>>(),
        [
            ("train", None, Some(0.0), Some((Phase::Train, Span::Epoch, 3.0))),
            ("train", None, Some(1.0), Some((Phase::Train, Span::Epoch, 2.0))),
            ("validation", Some(6), None, Some((Phase::Validation, Span::Epoch, 1.5))),
            ("validation", None, Some(0.0), None),
        ]
    );
}

#[test]
fn values_of_different_axes_are_kept_apart() {
    let mut logs = Logs::new();
    let values = ["loss", "epoch_loss", "Train/Samples/train_loss"].map(|tag| simple(tag, 0.5));
    logs.append(FIRST, &record(&encode::event(1.7e9, 64, &values)));
    let found = logs.poll();
    let brief = |(_, _, found): &(String, bool, Observation)| {
        (found.step, found.epoch, found.step_in_samples, found.losses[0].name.clone())
    };
    let [steps, epochs, samples] = &found[..] else { panic!("{found:?}") };
    assert_eq!(brief(steps), (Some(64), None, false, "loss".to_owned()));
    assert_eq!(brief(epochs), (None, Some(64.0), false, "epoch_loss".to_owned()));
    assert_eq!(brief(samples), (Some(64), None, true, "Train/Samples/train_loss".to_owned()));
}

#[test]
fn live_restart_is_marked_once() {
    let mut logs = Logs::new();
    logs.append(FIRST, &series("train/loss", 1..6, 0.0));
    logs.append(FIRST, &series("eval/loss", 5..6, 0.0));
    assert_eq!(logs.steps(), "1 2 3 4 5 5");
    logs.append(SECOND, &[version(1.7e9), series("train/loss", 4..6, 0.5)].concat());
    assert_eq!(logs.steps(), "4! 5");
    logs.append(
        SECOND,
        &[series("eval/loss", 5..6, 0.5), series("train/loss", 6..8, 0.5)].concat(),
    );
    assert_eq!(logs.steps(), "5 6 7");
    assert_eq!(logs.follower.counts().rewinds, 1);
    // The new process repeats what the old one still writes.
    logs.append(FIRST, &series("train/loss", 6..9, 0.0));
    assert_eq!(logs.steps(), "");
    assert_eq!(logs.follower.counts().superseded, 3);
}

#[test]
fn restart_read_from_the_start_counts_each_step_once() {
    let mut logs = Logs::new();
    let evaluations = series("eval/loss", 5..6, 0.0);
    logs.append(FIRST, &[version(1.7e9), series("train/loss", 1..6, 0.0), evaluations].concat());
    logs.append(SECOND, &[version(1.7e9), series("train/loss", 4..8, 0.5)].concat());
    assert_eq!(logs.steps(), "1 2 3 4 5 6 7");
    assert_eq!(logs.follower.counts().superseded, 3);
}

#[test]
fn second_writer_of_other_tags_is_not_a_restart() {
    let mut logs = Logs::new();
    logs.append(FIRST, &series("train/loss", 1..6, 0.0));
    logs.append(SECOND, &series("eval/loss", 2..4, 0.0));
    assert_eq!(logs.steps(), "1 2 3 4 5 2 3");
    assert_eq!(logs.follower.counts().rewinds, 0);
}

#[test]
fn newest_of_several_runs_is_read_alone() {
    let mut logs = Logs::new();
    logs.append(&format!("run_1/{FIRST}"), &series("train/loss", 1..4, 0.0));
    assert_eq!(logs.steps(), "1 2 3");
    logs.append(&format!("run_2/{SECOND}"), &series("train/loss", 1..3, 0.5));
    logs.append(&format!("run_1/{FIRST}"), &series("train/loss", 4..6, 0.0));
    assert_eq!(logs.steps(), "1 2");
    // Read from the start, the older one is left out as well.
    let mut later = Logs::new();
    later.append(&format!("run_1/{FIRST}"), &series("train/loss", 1..9, 0.0));
    later.append(&format!("run_2/{SECOND}"), &series("train/loss", 1..3, 0.5));
    assert_eq!(later.steps(), "1 2");
}

#[test]
fn folders_of_one_run_are_read_together() {
    for (first, second) in [("train/", "validation/"), ("", "eval/"), ("run_1/", "run_1/hparams/")]
    {
        let mut logs = Logs::new();
        logs.append(&format!("{first}{FIRST}"), &series("train/loss", 1..3, 0.0));
        logs.append(&format!("{second}{SECOND}"), &series("eval/loss", 2..3, 0.0));
        assert_eq!(logs.poll().len(), 3, "{first} {second}");
    }
}

#[test]
fn session_start_rewinds_to_its_step() {
    let mut logs = Logs::new();
    logs.append(FIRST, &series("loss", 1..6, 0.0));
    assert_eq!(logs.steps(), "1 2 3 4 5");
    logs.append(FIRST, &[encode::start(1.7e9, 3), series("loss", 3..5, 0.0)].concat());
    assert_eq!(logs.steps(), "3! 4");
    // When read from the start, a session start supersedes even tags that have no value after it yet.
    let mut logs = Logs::new();
    logs.append(FIRST, &series("loss", 1..6, 0.0));
    logs.append(SECOND, &encode::start(1.7e9, 3));
    assert_eq!(logs.steps(), "1 2");
}

#[test]
fn new_sidecar_resumes_where_the_old_one_stopped() {
    let mut logs = Logs::new();
    let bytes = [version(1.7e9), series("loss", 1..5, 0.0)].concat();
    let (whole, part) = bytes.split_at(bytes.len() - 9);
    logs.append(FIRST, whole);
    assert_eq!(logs.steps(), "1 2 3");
    logs.restart();
    assert_eq!(logs.steps(), "");
    logs.append(FIRST, part);
    assert_eq!(logs.steps(), "4");
    // The job restarts while the sidecar is down.
    logs.append(FIRST, &series("loss", 5..9, 0.0));
    logs.append(SECOND, &series("loss", 3..7, 0.0));
    logs.restart();
    assert_eq!(logs.steps(), "3! 4 5 6");
}

#[test]
fn files_that_vanish_and_come_back_are_not_read_twice() {
    let mut logs = Logs::new();
    logs.append(FIRST, &series("loss", 1..4, 0.0));
    assert_eq!(logs.steps(), "1 2 3");
    let kept = fs::read(logs.path(FIRST)).unwrap();
    fs::remove_dir_all(logs.path("")).unwrap();
    assert_eq!(logs.steps(), "");
    let now = logs.now;
    assert!(!logs.follower.poll(now, &mut |_| ()).source_up);
    logs.append(FIRST, &[kept, series("loss", 4..6, 0.0)].concat());
    assert_eq!(logs.steps(), "4 5");
    // Cut short, it waits; as another file, it is read from its start.
    fs::write(logs.path(FIRST), series("loss", 1..3, 0.0)).unwrap();
    assert_eq!(logs.steps(), "");
    fs::write(logs.path(FIRST), series("loss", 1..3, 9.0)).unwrap();
    assert_eq!(logs.steps(), "1! 2");
    assert_eq!(logs.follower.counts().replaced, 1);
}

#[test]
fn damaged_records_are_counted_and_skipped() {
    let mut logs = Logs::new();
    let mut bytes = series("loss", 1..4, 0.0);
    bytes[15] ^= 1;
    let invalid = record(&encode::event(f64::NAN, 9, &[simple("loss", 1.0)]));
    logs.append(FIRST, &[bytes, invalid, series("loss", 4..5, 0.0)].concat());
    assert_eq!(logs.steps(), "2 3 4");
    let counts = logs.follower.counts();
    assert_eq!((counts.records.damaged, counts.malformed), (1, 1));
    // After a damaged length, the rest is lost.
    logs.append(FIRST, &[vec![1; 12], series("loss", 5..6, 0.0)].concat());
    assert_eq!(logs.steps(), "");
    let now = logs.now;
    assert_eq!(logs.follower.poll(now, &mut |_| ()).broken, 1);
    // A file that was never valid may be replaced by a valid one.
    logs.append("b/events.out.tfevents.1", &[1; 50]);
    assert_eq!(logs.steps(), "");
    fs::write(logs.path("b/events.out.tfevents.1"), series("loss", 1..2, 0.0)).unwrap();
    assert_eq!(logs.steps(), "1");
}

#[test]
fn zeros_are_waited_for() {
    let mut logs = Logs::new();
    let bytes = series("loss", 1..4, 0.0);
    let record = bytes.len() / 3;
    let mut unwritten = bytes.clone();
    unwritten[record + 20..].fill(0);
    logs.append(FIRST, &unwritten);
    assert_eq!(logs.steps(), "1");
    assert_eq!(logs.steps(), "");
    fs::write(logs.path(FIRST), &bytes).unwrap();
    assert_eq!(logs.steps(), "2 3");
}

#[test]
fn ten_thousand_tags_do_not_grow_the_memory() {
    let mut logs = Logs::new();
    let event = |step, tag: &str| record(&encode::event(1.7e9, step, &[simple(tag, 1.0)]));
    let others: Vec<u8> = (0..10_000).flat_map(|n| event(1, &format!("layer_{n}/norm"))).collect();
    let losses: Vec<u8> = (0..10_000).flat_map(|n| event(1, &format!("loss/part_{n}"))).collect();
    logs.append(FIRST, &others);
    assert_eq!(logs.poll().len(), 0);
    assert_eq!(logs.follower.counts().tags_refused, 0);
    logs.append(FIRST, &losses);
    assert_eq!(logs.poll().len(), MAX_TAGS);
    assert_eq!(logs.follower.counts().tags_refused, 9_000);
    // The first tags are still followed.
    logs.append(FIRST, &event(2, "loss/part_0"));
    assert_eq!(logs.steps(), "2");
    // All in one event.
    let all: Vec<_> = (0..10_000).map(|n| simple(&format!("loss/part_{n}"), 1.0)).collect();
    logs.append(FIRST, &record(&encode::event(1.7e9, 3, &all)));
    let found = logs.poll();
    assert_eq!((found.len(), found[0].2.losses.len()), (1, 256));
    logs.append(FIRST, &event(4, &format!("loss/{}", "x".repeat(300))));
    assert_eq!(logs.steps(), "");
}

#[test]
fn new_run_is_read_beside_too_many_old_files() {
    let mut logs = Logs::new();
    let known = |logs: &Logs| logs.follower.runs.values().map(|run| run.files.len()).sum::<usize>();
    for n in 0..=MAX_FILES {
        logs.append(&format!("old_{n}/{FIRST}"), &series("loss", 1..2, 0.0));
    }
    assert_eq!(logs.steps(), "1");
    logs.append(&format!("new/{SECOND}"), &series("loss", 1..4, 0.0));
    assert_eq!(logs.steps(), "1 2 3");
    let now = logs.now;
    assert_eq!(logs.follower.poll(now, &mut |_| panic!()).left_out, 2);
    assert_eq!(known(&logs), MAX_FILES);
    // Files that are gone have no place before one that is there, and a saved state holds none up.
    fs::remove_dir_all(logs.path("")).unwrap();
    assert_eq!(logs.steps(), "");
    logs.restart();
    logs.append(&format!("newer/{SECOND}"), &series("loss", 1..3, 0.0));
    assert_eq!(logs.steps(), "1 2");
    assert_eq!(known(&logs), MAX_FILES);
    // What was read before is still known.
    logs.append(&format!("new/{SECOND}"), &series("loss", 1..5, 0.0));
    fs::remove_dir_all(logs.path("newer")).unwrap();
    assert_eq!(logs.steps(), "4");
}

#[test]
fn tags_of_older_runs_leave_the_newest_its_room() {
    let mut logs = Logs::new();
    let event = |tag: &str| record(&encode::event(1.7e9, 1, &[simple(tag, 1.0)]));
    let tags = |logs: &Logs| logs.follower.runs.values().map(Run::tags).sum::<usize>();
    let losses: Vec<u8> = (0..MAX_TAGS).flat_map(|n| event(&format!("loss/part_{n}"))).collect();
    logs.append(&format!("run_1/{FIRST}"), &losses);
    assert_eq!((logs.poll().len(), tags(&logs)), (MAX_TAGS, MAX_TAGS));
    logs.restart();
    logs.append(&format!("run_2/{SECOND}"), &series("train/loss", 1..3, 0.0));
    assert_eq!(logs.steps(), "1 2");
    assert_eq!(tags(&logs), 1, "the total is bounded");
    assert_eq!(logs.follower.counts().tags_refused, 0);
}

#[test]
fn one_poll_reads_a_bounded_amount() {
    let mut logs = Logs::new();
    for name in [FIRST, SECOND] {
        let padding = record(&encode::bytes(4, &vec![0; 900_000]));
        let large = record(&encode::bytes(4, &vec![0; 3_000_000]));
        logs.append(name, &[padding.clone(), padding, large, series("loss", 1..2, 0.0)].concat());
    }
    let mut polls = 0;
    let mut losses = 0;
    while logs.follower.poll(Duration::ZERO, &mut |_| losses += 1).more {
        polls += 1;
        assert!(logs.follower.counts().bytes <= polls * (BUDGET + MAX_RECORD_LEN));
    }
    assert_eq!((losses, logs.follower.counts().records.oversized), (1, 2));
    assert!(polls >= 2);
}

#[test]
fn links_are_followed_once() {
    let mut logs = Logs::new();
    logs.append(&format!("real/{FIRST}"), &series("loss", 1..3, 0.0));
    symlink(logs.path("real"), logs.path("alias")).unwrap();
    symlink(logs.path(""), logs.path("real/loop")).unwrap();
    symlink(logs.path("nowhere"), logs.path("real/dangling.tfevents")).unwrap();
    assert_eq!(logs.steps(), "1 2");
    let newest: Vec<_> = logs.follower.folders().map(Path::to_owned).collect();
    assert_eq!(newest, [logs.path("alias")]);
}

#[test]
fn old_files_and_deep_folders_are_ignored() {
    let mut logs = Logs::new();
    logs.append(FIRST, &series("loss", 1..3, 0.0));
    logs.append(&format!("b/{SECOND}"), &series("loss", 5..6, 0.0));
    logs.append(&format!("1/2/3/4/5/6/7/8/9/{SECOND}"), &series("loss", 7..8, 0.0));
    logs.follower = Folder::new(logs.path(""), 1_700_000_050);
    assert_eq!(logs.steps(), "5");
    // One file instead of a folder.
    logs.follower = Folder::new(logs.path(FIRST), 0);
    assert_eq!(logs.steps(), "1 2");
}

#[test]
fn unreadable_file_is_counted_and_tried_again() {
    let mut logs = Logs::new();
    logs.append(FIRST, &series("loss", 1..3, 0.0));
    let path = logs.path(FIRST);
    let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode));
    mode(0o000).unwrap();
    if fs::read(&path).is_ok() {
        // The superuser may read everything.
        return;
    }
    let progress = logs.follower.poll(Duration::ZERO, &mut |_| panic!());
    assert_eq!((progress.unreadable, progress.source_up), (1, true));
    mode(0o600).unwrap();
    assert_eq!(logs.steps(), "1 2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn growing_file_gives_the_same_as_a_whole_one(
        cuts in prop::collection::vec(1_usize..200, 1..12),
        restarts in prop::collection::vec(any::<bool>(), 12),
    ) {
        let bytes = [version(1.7e9), series("loss", 1..12, 0.0), series("val_loss", 3..6, 0.0)];
        let bytes = bytes.concat();
        let mut whole = Logs::new();
        whole.append(FIRST, &bytes);
        let mut growing = Logs::new();
        let mut rest = &bytes[..];
        let mut found = Vec::new();
        for (cut, restart) in cuts.into_iter().zip(restarts) {
            let (piece, left) = rest.split_at(cut.min(rest.len()));
            growing.append(FIRST, piece);
            found.extend(growing.poll());
            if restart {
                growing.restart();
            }
            rest = left;
        }
        growing.append(FIRST, rest);
        found.extend(growing.poll());
        prop_assert_eq!(found, whole.poll());
    }

    #[test]
    fn random_bytes_do_not_hide_other_files(
        noise in prop::collection::vec(any::<u8>(), 0..300),
        data in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut logs = Logs::new();
        logs.append(FIRST, &[series("loss", 1..3, 0.0), record(&data), noise].concat());
        logs.append(SECOND, &series("loss", 7..8, 0.0));
        let found = logs.poll();
        prop_assert!(found.len() >= 3);
    }
}

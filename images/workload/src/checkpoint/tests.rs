use std::borrow::Cow;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use proptest::prelude::*;
use safetensors::{Dtype, View};
use tempfile::TempDir;

use super::*;

/// Four numbers, or a panic instead of them.
#[derive(Clone, Copy)]
struct Numbers([u8; 4], bool);

impl View for Numbers {
    fn dtype(&self) -> Dtype {
        Dtype::U8
    }

    fn shape(&self) -> &[usize] {
        &[4]
    }

    fn data(&self) -> Cow<'_, [u8]> {
        assert!(!self.1, "as if the disk were full or the process killed");
        self.0.as_slice().into()
    }

    fn data_len(&self) -> usize {
        4
    }
}

fn tensors(first: u8) -> Vec<(String, Numbers)> {
    vec![("model.a".to_owned(), Numbers([first, 2, 3, 4], false))]
}

fn metadata(step: u64, loss: Option<f64>) -> Metadata {
    let [workload, dataset] = ["vae", "MNIST"].map(str::to_owned);
    Metadata { identity: Identity { workload, dataset, seed: 1, batch_size: 128 }, step, loss }
}

fn folder() -> (TempDir, Checkpoints) {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::open(folder.path().to_owned(), "vae").unwrap();
    (folder, checkpoints)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn refusal(checkpoints: &Checkpoints, run: &Identity) -> String {
    let error = checkpoints.resume(run).unwrap_err().to_string();
    error.replace(checkpoints.latest().to_str().unwrap(), "FILE")
}

#[test]
fn saved_checkpoint_is_read_back() {
    let (folder, checkpoints) = folder();
    let saved = metadata(7, Some(0.1 + 0.2));
    assert!(checkpoints.resume(&saved.identity).unwrap().is_none());
    let path = checkpoints.save(&saved, tensors(1)).unwrap();
    assert_eq!(names(folder.path()), ["vae.safetensors"]);

    let read = checkpoints.resume(&saved.identity).unwrap().unwrap();
    assert_eq!((read.path(), read.metadata()), (path.as_path(), &saved));
    assert_eq!(read.tensors().unwrap().tensor("model.a").unwrap().data(), [1, 2, 3, 4]);
}

#[test]
fn checkpoint_of_another_run_is_refused_with_difference() {
    let (_folder, checkpoints) = folder();
    let saved = metadata(7, None);
    checkpoints.save(&saved, tensors(1)).unwrap();
    let run = saved.identity;
    let of = |run: Identity| refusal(&checkpoints, &run);
    let said = of(Identity { seed: 2, ..run.clone() });
    assert_eq!(said, "FILE is a checkpoint of another seed: 1, not 2");
    let said = of(Identity { batch_size: 64, ..run.clone() });
    assert_eq!(said, "FILE is a checkpoint of another batch size: 128, not 64");
    let said = of(Identity { dataset: "Fashion-MNIST".to_owned(), ..run.clone() });
    assert_eq!(said, "FILE is a checkpoint of another data set: MNIST, not Fashion-MNIST");
    let said = of(Identity { workload: "gru".to_owned(), ..run });
    assert_eq!(said, "FILE is a checkpoint of another workload: vae, not gru");
}

#[test]
fn invalid_checkpoint_is_refused() {
    let (_folder, checkpoints) = folder();
    let run = metadata(1, None).identity;
    fs::write(checkpoints.latest(), "").unwrap();
    assert_eq!(refusal(&checkpoints, &run), "FILE is not a valid checkpoint: HeaderTooSmall");
    safetensors::serialize_to_file(tensors(1), &None, &checkpoints.latest()).unwrap();
    let said = refusal(&checkpoints, &run);
    assert_eq!(said, "FILE is not a valid checkpoint: its format_version is missing");
    fs::remove_file(checkpoints.latest()).unwrap();
    fs::create_dir(checkpoints.latest()).unwrap();
    assert!(refusal(&checkpoints, &run).starts_with("cannot read FILE"));
}

#[test]
fn newer_version_and_invalid_number_are_refused() {
    let (_folder, checkpoints) = folder();
    let write = |key: &str, value: &str| {
        let mut entries = file::format(&metadata(1, Some(0.5)));
        *entries.get_mut(key).unwrap() = value.to_owned();
        let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        safetensors::serialize_to_file(tensors(1), &Some(entries), &checkpoints.latest()).unwrap();
        refusal(&checkpoints, &metadata(1, None).identity)
    };
    let known = "FILE is not a valid checkpoint: its format_version is \"2\", expected \"1\"";
    assert_eq!(write("format_version", "2"), known);
    assert_eq!(write("step", "-1"), "FILE is not a valid checkpoint: its step is \"-1\"");
    assert_eq!(write("loss", "low"), "FILE is not a valid checkpoint: its loss is \"low\"");
}

#[test]
fn interrupted_write_leaves_only_previous_checkpoint() {
    let (folder, checkpoints) = folder();
    let saved = metadata(7, None);
    checkpoints.save(&saved, tensors(1)).unwrap();
    let broken = vec![("model.a".to_owned(), Numbers([0; 4], true))];
    let save = || checkpoints.save(&metadata(8, None), broken);
    assert!(catch_unwind(AssertUnwindSafe(save)).is_err());
    assert_eq!(names(folder.path()), ["vae.safetensors"]);
    assert_eq!(checkpoints.resume(&saved.identity).unwrap().unwrap().metadata().step, 7);
}

#[test]
fn start_removes_only_own_incomplete_files() {
    let folder = tempfile::tempdir().unwrap();
    for name in [".vae.safetensors-1a.tmp", ".gru.safetensors-1a.tmp", "notes.tmp"] {
        fs::write(folder.path().join(name), "half").unwrap();
    }
    Checkpoints::open(folder.path().to_owned(), "vae").unwrap();
    let mut left = names(folder.path());
    left.sort();
    assert_eq!(left, [".gru.safetensors-1a.tmp", "notes.tmp"]);
}

#[test]
fn missing_folder_or_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for name in ["missing", "file"] {
        let path = folder.path().join(name);
        let error = Checkpoints::open(path.clone(), "vae").unwrap_err().to_string();
        let begin = format!("cannot write a checkpoint to {}: ", path.display());
        assert!(error.starts_with(&begin), "{error}");
    }
}

#[test]
fn kept_checkpoint_is_replaced_by_better_or_other_data_only() {
    let (_folder, checkpoints) = folder();
    let keep = |metadata: Metadata| {
        let path = checkpoints.keep(&metadata, tensors(1)).unwrap();
        assert_eq!(path, checkpoints.acceptable());
        Checkpoint::read(&path).unwrap().metadata().step
    };
    assert_eq!(keep(metadata(1, Some(5.0))), 1);
    assert_eq!(keep(metadata(2, Some(6.0))), 1, "worse");
    assert_eq!(keep(metadata(3, None)), 1, "not known to be better");
    assert_eq!(keep(metadata(4, Some(4.0))), 4, "better");
    let mut other = metadata(5, Some(9.0));
    other.identity.dataset = "Fashion-MNIST".to_owned();
    assert_eq!(keep(other), 5, "of other data");
    fs::write(checkpoints.acceptable(), "damage").unwrap();
    assert_eq!(keep(metadata(6, Some(9.0))), 6, "damaged");
    assert!(!checkpoints.latest().exists());
}

/// The bytes of a valid file.
fn whole() -> Vec<u8> {
    let (_folder, checkpoints) = folder();
    fs::read(checkpoints.save(&metadata(7, Some(0.5)), tensors(1)).unwrap()).unwrap()
}

fn parse(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
    Checkpoint::parse(PathBuf::from("FILE"), bytes.to_vec())
}

proptest! {
    #[test]
    fn file_of_wrong_length_is_refused(at in 0_usize..10_000, more in 1_usize..9) {
        let mut bytes = whole();
        bytes.extend(vec![0; more]);
        prop_assert!(parse(&bytes).is_err());
        bytes.truncate(at % (bytes.len() - more));
        prop_assert!(parse(&bytes).is_err());
    }

    #[test]
    fn damage_never_panics(at in 0_usize..10_000, value: u8) {
        let mut bytes = whole();
        let at = at % bytes.len();
        bytes[at] = value;
        if let Ok(checkpoint) = parse(&bytes) {
            prop_assert!(checkpoint.tensors().is_ok());
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused(bytes: Vec<u8>, header in "[ -~]{0,80}") {
        prop_assert!(parse(&bytes).is_err());
        let length = u64::try_from(header.len()).unwrap().to_le_bytes();
        prop_assert!(parse(&[&length, header.as_bytes(), &bytes].concat()).is_err());
    }

    #[test]
    fn metadata_round_trips(
        workload: String,
        dataset: String,
        seed: u64,
        batch_size: usize,
        step: u64,
        loss in proptest::option::of(proptest::num::f64::NORMAL),
    ) {
        let (_folder, checkpoints) = folder();
        let identity = Identity { workload, dataset, seed, batch_size };
        let saved = Metadata { identity, step, loss };
        checkpoints.save(&saved, tensors(1)).unwrap();
        let read = checkpoints.resume(&saved.identity).unwrap().unwrap();
        prop_assert_eq!(read.metadata(), &saved);
    }
}

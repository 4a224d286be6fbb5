use proptest::prelude::*;

use super::*;

/// A disk with room for some bytes, whose files may refuse to be cut.
#[derive(Debug, Default)]
struct SmallDisk {
    bytes: Vec<u8>,
    room: usize,
    cuts: bool,
}

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room - self.bytes.len();
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(room);
        self.bytes.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Cut for SmallDisk {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        if !self.cuts {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.bytes.truncate(usize::try_from(len).unwrap());
        Ok(())
    }
}

/// The data of each record of a file, whose checksums must be right.
fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<12>() {
        assert_eq!(head[8..], record::masked(&head[..8]));
        let size = usize::try_from(u64::from_le_bytes(head[..8].try_into().unwrap())).unwrap();
        assert_eq!(rest[size..size + 4], record::masked(&rest[..size]));
        all.push(rest[..size].to_vec());
        bytes = &rest[size + 4..];
    }
    assert!(bytes.is_empty());
    all
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn loss(value: f64) -> [Scalar<'static>; 1] {
    [Scalar { tag: "loss", value }]
}

#[test]
fn file_begins_with_the_version_and_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(folder.path().join("new/run"), "a.b/c");
    writer.write(1_700_000_000.4, 7, &loss(0.5)).unwrap();
    writer.write(1_700_000_001.4, 8, &loss(0.25)).unwrap();
    let files = files(&folder.path().join("new/run"));
    let name = files[0].file_name().unwrap().to_string_lossy().into_owned();
    let pid = std::process::id();
    assert_eq!(name, format!("events.out.tfevents.1700000000.abc.{pid}.0.paceline"));
    let expected = vec![
        event::version(1_700_000_000.4),
        event::start(1_700_000_000.4, 7),
        event::scalars(1_700_000_000.4, 7, &loss(0.5)),
        event::scalars(1_700_000_001.4, 8, &loss(0.25)),
    ];
    assert_eq!(records(&fs::read(&files[0]).unwrap()), expected);
    assert_eq!(writer.counts(), Counts { written: 2, ..Counts::default() });
}

#[test]
fn step_that_goes_back_starts_a_session_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(folder.path(), "host");
    for step in [5, 6, 3, 4] {
        writer.write(1.0, step, &loss(0.5)).unwrap();
    }
    let all = records(&fs::read(&files(folder.path())[0]).unwrap());
    let is_start = |data: &Vec<u8>| (3..=5).any(|step| *data == event::start(1.0, step));
    let starts: Vec<_> = (0..all.len()).filter(|at| is_start(&all[*at])).collect();
    assert_eq!(starts, [1, 4]);
    assert_eq!(all[4], event::start(1.0, 3));
}

#[test]
fn further_writer_has_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        Writer::new(folder.path(), "host").write(1.0, 1, &loss(0.5)).unwrap();
    }
    assert_eq!(files(folder.path()).len(), 3);
}

#[test]
fn files_of_another_program_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("events.out.tfevents.1600000000.host.1.0");
    fs::write(&other, "of the job").unwrap();
    for _ in 0..2 {
        Writer::new(folder.path(), "host").write(1.0, 1, &loss(0.5)).unwrap();
    }
    assert_eq!(files(&folder.path().join("paceline")).len(), 2);
    assert_eq!(files(folder.path()), [other, folder.path().join("paceline")]);
}

#[test]
fn events_wait_for_a_folder_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fs::write(&run, "in the way").unwrap();
    let mut writer = Writer::new(&run, "host");
    for step in 1..=3 {
        writer.write(1.0, step, &loss(0.5)).unwrap_err();
    }
    assert_eq!(writer.counts(), Counts { written: 0, dropped: 0, failures: 3 });
    fs::remove_file(&run).unwrap();
    writer.write(1.0, 4, &loss(0.5)).unwrap();
    assert_eq!(writer.counts(), Counts { written: 4, dropped: 0, failures: 3 });
    assert_eq!(records(&fs::read(&files(&run)[0]).unwrap()).len(), 2 + 4);
}

#[test]
fn waiting_events_are_bounded_and_the_rest_counted() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fs::write(&run, "in the way").unwrap();
    let mut writer = Writer::new(&run, "host");
    for step in 1..=10_000 {
        writer.write(1.0, step, &loss(0.5)).unwrap_err();
    }
    assert!(writer.pending.len() <= MAX_PENDING && writer.counts().dropped > 1_000);
    let dropped = writer.counts().dropped;
    fs::remove_file(&run).unwrap();
    writer.flush(1.0).unwrap();
    assert_eq!(writer.counts().written + dropped, 10_000);
}

#[test]
fn removed_file_is_replaced_by_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut writer = Writer::new(&run, "host");
    writer.write(1.0, 1, &loss(0.5)).unwrap();
    fs::remove_dir_all(&run).unwrap();
    writer.write(2.0, 2, &loss(0.5)).unwrap();
    let all = records(&fs::read(&files(&run)[0]).unwrap());
    assert_eq!(all, [event::version(2.0), event::scalars(2.0, 2, &loss(0.5))]);
}

proptest! {
    #[test]
    fn full_disk_leaves_whole_records_only(
        sizes in prop::collection::vec(0_usize..200, 1..20),
        room in 0_usize..1_000,
    ) {
        let mut tail = Tail { file: SmallDisk { room, cuts: true, ..SmallDisk::default() }, len: 0 };
        let mut expected = Vec::new();
        for size in sizes {
            let mut one = Vec::new();
            record::append(&mut one, &vec![7; size]);
            match tail.append(&one) {
                Ok(()) => expected.push(vec![7; size]),
                Err(failure) => prop_assert!(!failure.is_torn),
            }
        }
        prop_assert_eq!(records(&tail.file.bytes), expected);
    }

    #[test]
    fn any_name_of_a_machine_gives_a_plain_file_name(host in any::<String>()) {
        let folder = tempfile::tempdir().unwrap();
        Writer::new(folder.path(), &host).write(1.0, 1, &loss(0.5)).unwrap();
        let files = files(folder.path());
        prop_assert_eq!(files.len(), 1);
        prop_assert!(files[0].is_file());
    }
}

#[test]
fn part_that_cannot_be_removed_is_reported() {
    let mut tail = Tail { file: SmallDisk { room: 10, ..SmallDisk::default() }, len: 0 };
    let failure = tail.append(&[0; 20]).unwrap_err();
    assert!(failure.is_torn);
    assert_eq!(failure.error.kind(), io::ErrorKind::StorageFull);
}

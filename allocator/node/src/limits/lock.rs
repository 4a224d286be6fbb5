//! Locks: of a state folder, of an engine, and of each container that is written to.
//!
//! All are held by the kernel for an open file, so that they end with the process. A lock's file names
//! its holder. The engine's lock and the containers' locks lie in one folder of the machine, which
//! belongs to root, so that no other user can take them. A user of Docker who is not root runs
//! the allocator in a container of root's, where this folder is mounted.
//!
//! - A state folder has one holder for each engine, as in version 0.1.0.
//! - An engine has one allocator that manages all opted-in containers, or any number of allocators that
//!   are confined to some of them by labels. A restore works beside them.
//! - A container has one holder, from the first write to the end of its record. Without its process, the
//!   lock's file still names the state folder that has the container's originals.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use paceline_api::clock::unix_seconds;
use paceline_api::state_folder::make_private;
use rustix::io::Errno;
use tracing::warn;

use super::originals::{OriginalsError, at};
use super::record_files::no_link;

/// How often a lock whose file is replaced meanwhile is tried again.
const MAX_TRIES: usize = 16;
/// How often the empty file of a lock is read again that another process has just taken, and the pause. It
/// is short: on a full disk the file stays empty, and the caller may be the controller.
const MAX_LOOKS: u32 = 20;
const LOOK_PAUSE: Duration = Duration::from_millis(10);
/// How long a start waits for a lock. `paceline doctor` and a search for leftovers hold locks for an
/// instant.
pub const START_WAIT: Duration = Duration::from_millis(500);
/// The longest text of a lock's file that is read, in bytes.
const MAX_TEXT: u64 = 4096;
/// The most characters of an engine's data folder in the name of its lock.
const MAX_SUFFIX: usize = 100;
/// The second line of a folder's lock, of a version that knows the engine's lock: version 0.1.0 locks
/// its folder alone.
const KNOWS_ENGINE_LOCK: &str = "locks 2";

/// The first line of a container's lock while no state folder needs to have its originals: before its
/// record is written, and after its limits were restored.
const NO_STATE: &str = "-";

/// Which containers of an engine an allocator manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All that opted in.
    All,
    /// Those with certain labels.
    Some,
    /// None: it restores those with a record. Their own locks are enough for that, so that limits come
    /// back while another allocator works on the engine.
    Recorded,
}

/// An open lock.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    file: File,
    /// Whether its text cannot be written, since its file system is read-only.
    read_only: bool,
}

/// Whether a state folder on a read-only file system is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOnly {
    /// A run would record nothing, so it must not start.
    Refused,
    /// A restore needs the records alone.
    Allowed,
}

/// Why a lock cannot be taken.
enum Failed {
    /// Another process has it: its file.
    Held(File),
    Io(io::Error),
}

impl Lock {
    /// Takes the lock at `path`, shared or alone.
    fn take(path: &Path, shared: bool) -> Result<Self, Failed> {
        for _ in 0..MAX_TRIES {
            let (file, read_only) = open(path).map_err(Failed::Io)?;
            let locked = if shared { file.try_lock_shared() } else { file.try_lock() };
            match locked {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Failed::Held(file)),
                Err(TryLockError::Error(error)) => return Err(Failed::Io(error)),
            }
            // Its last holder may have removed the file between our two calls.
            let lock = Self { path: path.to_owned(), file, read_only };
            if lock.is_at_its_path() {
                return Ok(lock);
            }
        }
        Err(Failed::Io(io::ErrorKind::ResourceBusy.into()))
    }

    /// The same, at a start: it waits for one who only looks.
    fn take_at_start(path: &Path, shared: bool, wait: Duration) -> Result<Self, Failed> {
        for _ in 0..wait.as_millis() / LOOK_PAUSE.as_millis() {
            match Self::take(path, shared) {
                Err(Failed::Held(_)) => std::thread::park_timeout(LOOK_PAUSE),
                taken => return taken,
            }
        }
        Self::take(path, shared)
    }

    fn is_at_its_path(&self) -> bool {
        let number = |file: fs::Metadata| (file.dev(), file.ino());
        let there = fs::symlink_metadata(&self.path).map(number);
        let own = self.file.metadata().map(number);
        own.ok().zip(there.ok()).is_some_and(|(own, there)| own == there)
    }

    /// Writes its text, where that is possible.
    fn write(&mut self, text: &str) -> io::Result<()> {
        if self.read_only {
            return Ok(());
        }
        self.file.set_len(0)?;
        io::Seek::rewind(&mut self.file)?;
        self.file.write_all(text.as_bytes())
    }

    /// Removes the file, if no other process holds the lock.
    fn remove(&self) {
        if self.file.try_lock().is_ok() && self.is_at_its_path() {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Opens the file of a lock, and creates it if it is missing. Returns whether it can only be read.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    match options.custom_flags(no_link()).open(path) {
        Ok(file) => regular(file).map(|file| (file, false)),
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            open_to_read(path).map(|file| (file, true))
        }
        // The kernel's own words for a link are "too many levels of symbolic links".
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => Err(not_regular()),
        Err(error) => Err(error),
    }
}

/// Opens the file of a lock to read it.
fn open_to_read(path: &Path) -> io::Result<File> {
    regular(File::options().read(true).custom_flags(no_link()).open(path)?)
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file; remove this file")
}

/// The text of a lock's file.
fn text(file: &File) -> String {
    let mut text = String::new();
    let _ignored: Result<usize, io::Error> = file.take(MAX_TEXT).read_to_string(&mut text);
    text.trim().to_owned()
}

/// The text of a lock's file that another process holds. It writes the text after it has taken the lock,
/// so an empty file is read again, `looks` times at most.
fn text_of_holder(mut file: &File, looks: u32) -> String {
    let mut found = text(file);
    for _ in 0..looks {
        if !found.is_empty() || io::Seek::rewind(&mut file).is_err() {
            break;
        }
        std::thread::park_timeout(LOOK_PAUSE);
        found = text(file);
    }
    found
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The process that holds a lock, its machine, its start and its `purpose`.
fn holder(purpose: &str) -> String {
    let began = UNIX_EPOCH + Duration::try_from_secs_f64(unix_seconds()).unwrap_or_default();
    let began = humantime::format_rfc3339_seconds(began);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let (host, process) = (host.trim(), std::process::id());
    format!("process {process} on {host} since {began}, {purpose}")
}

/// The lock of a state folder, for one engine.
#[derive(Debug)]
pub(super) struct FolderLock {
    lock: Lock,
    text: String,
}

impl FolderLock {
    /// Takes the lock in `folder`, at a start.
    pub(super) fn take(
        folder: &Path,
        purpose: &str,
        read_only: ReadOnly,
    ) -> Result<Self, OriginalsError> {
        let take = |path: &Path, shared| Lock::take_at_start(path, shared, START_WAIT);
        let taken = Self::taken_by(take, folder, purpose)?;
        if taken.lock.read_only && read_only == ReadOnly::Refused {
            return Err(OriginalsError::Io(
                taken.lock.path,
                io::ErrorKind::ReadOnlyFilesystem.into(),
            ));
        }
        Ok(taken)
    }

    /// Takes the lock in the folder of another engine, for an instant.
    pub(super) fn take_to_search(folder: &Path) -> Result<Self, OriginalsError> {
        Self::taken_by(Lock::take, folder, "a search for leftovers")
    }

    fn taken_by(
        take: impl Fn(&Path, bool) -> Result<Lock, Failed>,
        folder: &Path,
        purpose: &str,
    ) -> Result<Self, OriginalsError> {
        let path = folder.join("lock");
        let text = format!("{}\n{KNOWS_ENGINE_LOCK}\n", holder(purpose));
        let mut lock = take(&path, false).map_err(|failed| failed.at(&path))?;
        lock.write(&text).map_err(at(&path))?;
        Ok(Self { lock, text })
    }

    /// Takes the lock again if its file was removed; otherwise another allocator could take it.
    pub(super) fn renew(&mut self) -> Result<(), OriginalsError> {
        if self.lock.is_at_its_path() {
            return Ok(());
        }
        let path = self.lock.path.clone();
        if let Some(folder) = path.parent() {
            make_private(folder).map_err(at(folder))?;
        }
        let mut lock = Lock::take(&path, false).map_err(|failed| failed.at(&path))?;
        lock.write(&self.text).map_err(at(&path))?;
        self.lock = lock;
        Ok(())
    }
}

impl Failed {
    fn at(self, path: &Path) -> OriginalsError {
        let lock = path.to_owned();
        match self {
            Self::Held(file) => {
                let holder = text_of_holder(&file, MAX_LOOKS);
                OriginalsError::Held { holder: first_line(&holder).to_owned(), lock }
            }
            Self::Io(error) => OriginalsError::Io(lock, error),
        }
    }
}

/// The lock of an engine, and the folder with the locks of its containers.
#[derive(Debug)]
pub(super) struct EngineLock {
    folder: PathBuf,
    /// `None` for a restore.
    lock: Option<Lock>,
    /// Whether other allocators may share that lock.
    shared: bool,
    /// The text in that lock.
    named: String,
    /// The state folder of this process, and its purpose.
    text: String,
}

/// The lock of one container.
#[derive(Debug)]
pub(super) struct Claim {
    lock: Lock,
    /// The state folder with its originals, and the lines after it.
    text: String,
}

/// A container whose lock no process has, and whose record is missing.
pub(super) struct Abandoned {
    pub(super) id: String,
    pub(super) state: PathBuf,
    /// The file of its lock.
    pub(super) claim: PathBuf,
}

/// What the lock of a container lacks.
enum Missing {
    /// Nothing of ours is in the container.
    Nothing,
    /// The record of its originals, in this state folder.
    RecordIn(PathBuf),
}

impl EngineLock {
    /// Takes the lock of `engine` in `folder`. Returns `None`, with a warning, if the folder cannot be
    /// used: then only the state folder is locked.
    pub(super) fn take(
        folder: &Path,
        (engine, data): (&str, &str),
        (scope, wait): (Scope, Duration),
        (state, own): (&Path, &FolderLock),
    ) -> Result<Option<Self>, OriginalsError> {
        let unusable = |error: &io::Error| {
            warn!(
                "cannot lock the container engine in {}: {error}; an allocator with another state \
                 folder is not noticed",
                folder.display()
            );
        };
        if let Err(error) = open_folder(folder) {
            unusable(&error);
            return Ok(None);
        }
        refuse_older(folder, engine, &own.lock.path)?;
        let path = engine_file(folder, engine, data);
        let taken = match scope {
            Scope::All => Lock::take_at_start(&path, false, wait).map(Some),
            Scope::Some => Lock::take_at_start(&path, true, wait).map(Some),
            Scope::Recorded => Ok(None),
        };
        let mut lock = match taken {
            Ok(lock) => lock,
            Err(Failed::Io(error)) => {
                unusable(&error);
                return Ok(None);
            }
            Err(held @ Failed::Held(_)) => return Err(held.at(&path)),
        };
        let state = fs::canonicalize(state).unwrap_or_else(|_| state.to_owned());
        let holder = first_line(&own.text);
        let text = format!("{}\nengine {engine}\n{holder}\n", state.display());
        let named = format!("{holder}, state folder {}\n", state.display());
        if let Some(lock) = &mut lock
            && let Err(error) = lock.write(&named)
        {
            warn!("cannot write {}: {error}", path.display());
        }
        let (folder, shared) = (folder.to_owned(), scope == Scope::Some);
        Ok(Some(Self { folder, lock, shared, named, text }))
    }

    /// Takes the lock of container `id`. It is refused while another process has it, and while another
    /// state folder has the container's originals, or our own one has lost them. With `recorded`, our own
    /// one has them: if the other one is missing, it was moved here.
    pub(super) fn claim(&self, id: &str, recorded: bool) -> Result<Claim, OriginalsError> {
        let path = self.claim_of(id);
        if !self.folder.exists() {
            open_folder(&self.folder).map_err(at(&self.folder))?;
        }
        let mut lock = Lock::take(&path, false).map_err(|failed| match failed {
            Failed::Held(file) => {
                let holder = text_of_holder(&file, MAX_LOOKS);
                let holder = holder.lines().last().unwrap_or_default().to_owned();
                OriginalsError::Claimed { holder, claim: path.clone() }
            }
            Failed::Io(error) => OriginalsError::Io(path.clone(), error),
        })?;
        let before = text(&lock.file);
        if let Some(state) = before.lines().next().filter(|state| *state != NO_STATE) {
            let is_own = self.text.lines().next() == Some(state);
            let state = Path::new(state);
            let is_lost = is_own && !recorded;
            let is_elsewhere =
                !is_own && may_have_record(state, id) && (!recorded || state.exists());
            if is_lost || is_elsewhere {
                return Err(OriginalsError::LeftBehind { state: state.to_owned(), claim: path });
            }
        }
        let text = self.text.clone();
        let begun = if recorded { text.clone() } else { without_state(&text) };
        lock.write(&begun).map_err(at(&path))?;
        Ok(Claim { lock, text })
    }

    /// The containers of this engine whose locks no process has, and whose records are not where the locks
    /// say.
    pub(super) fn abandoned(&self) -> Vec<Abandoned> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let abandoned = |file: fs::DirEntry| {
            let name = file.file_name();
            let id = name.to_str()?.strip_suffix(".claim")?.to_owned();
            let claim = file.path();
            // While a lock is held here, an allocator that needs it is refused. So it is taken only where
            // its text says that none will.
            self.missing(&text(&open_to_read(&claim).ok()?), &id)?;
            let lock = Lock::take(&claim, false).ok()?;
            match self.missing(&text(&lock.file), &id)? {
                Missing::Nothing => {
                    lock.remove();
                    None
                }
                Missing::RecordIn(state) => Some(Abandoned { id, state, claim }),
            }
        };
        files.filter_map(abandoned).collect()
    }

    /// What the lock of container `id` with this text lacks; `None` if it is needed, or another engine's.
    fn missing(&self, text: &str, id: &str) -> Option<Missing> {
        let mut lines = text.lines();
        let (state, engine) = (lines.next()?, lines.next());
        if engine != self.text.lines().nth(1) {
            return None;
        }
        if state == NO_STATE {
            return Some(Missing::Nothing);
        }
        let state = PathBuf::from(state);
        let is_lost = !state.exists() || !may_have_record(&state, id);
        is_lost.then_some(Missing::RecordIn(state))
    }

    /// Creates the folder again if it was removed, and takes the engine's lock again if its file was.
    pub(super) fn renew(&mut self) -> Result<(), OriginalsError> {
        open_folder(&self.folder).map_err(at(&self.folder))?;
        let Some(lock) = self.lock.as_mut().filter(|lock| !lock.is_at_its_path()) else {
            return Ok(());
        };
        let mut new =
            Lock::take(&lock.path, self.shared).map_err(|failed| failed.at(&lock.path))?;
        new.write(&self.named).map_err(at(&lock.path))?;
        *lock = new;
        Ok(())
    }

    /// Whether the lock of container `id` names a state folder that has the originals, or had.
    pub(super) fn names_a_record(&self, id: &str) -> bool {
        let state = open_to_read(&self.claim_of(id)).map(|file| text(&file));
        state.is_ok_and(|state| !matches!(first_line(&state), "" | NO_STATE))
    }

    /// Removes the lock of a container that does not exist any more.
    pub(super) fn remove_claim(&self, id: &str) {
        if let Ok(lock) = Lock::take(&self.claim_of(id), false) {
            lock.remove();
        }
    }

    fn claim_of(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.claim"))
    }
}

impl Drop for EngineLock {
    fn drop(&mut self) {
        if let Some(lock) = &self.lock {
            lock.remove();
        }
    }
}

impl Claim {
    /// Whether its file is still there, so that no other process can take it.
    pub(super) fn is_held(&self) -> bool {
        self.lock.is_at_its_path()
    }

    /// From now on the state folder has the container's originals.
    pub(super) fn is_recorded(&mut self) {
        self.say(&self.text.clone());
    }

    /// From now on no state folder needs to have them: nothing of ours is left in the container.
    pub(super) fn is_restored(&mut self) {
        self.say(&without_state(&self.text));
    }

    fn say(&mut self, text: &str) {
        if let Err(error) = self.lock.write(text) {
            warn!("cannot write {}: {error}", self.lock.path.display());
        }
    }

    /// Ends it.
    pub(super) fn release(self) {
        self.lock.remove();
    }
}

/// The text of a container's lock without its state folder.
fn without_state(text: &str) -> String {
    text.split_once('\n').map_or_else(String::new, |(_, rest)| format!("{NO_STATE}\n{rest}"))
}

/// The file of an engine's lock.
pub(super) fn engine_file(folder: &Path, engine: &str, data: &str) -> PathBuf {
    folder.join(format!("engine-{engine}{}.lock", suffix(data)))
}

/// The end of the name of an engine's lock, by the folder of its data. Engines that are started by hand
/// on one machine share an id, since it is kept in `/etc/docker`.
fn suffix(data: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let last: Vec<char> = data.chars().rev().take(MAX_SUFFIX).collect();
    last.into_iter().rev().map(plain).collect()
}

/// Whether a state folder has a record of container `id`, or cannot be seen from here.
fn may_have_record(state: &Path, id: &str) -> bool {
    let Ok(engines) = fs::read_dir(state) else { return true };
    engines.flatten().any(|engine| engine.path().join(format!("{id}.json")).exists())
}

/// Creates the folder of the locks, and checks that it is ours alone.
fn open_folder(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = fs::symlink_metadata(folder)?;
    let own = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != own || found.mode() & 0o022 != 0 {
        let why = format!("expected a folder of user {own} that no other user can write to");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

/// Refuses to start beside version 0.1.0 with the default state folder: it locks only that one.
fn refuse_older(folder: &Path, engine: &str, own: &Path) -> Result<(), OriginalsError> {
    let Some(path) = folder.parent().map(|state| state.join(engine).join("lock")) else {
        return Ok(());
    };
    let same = fs::canonicalize(&path).ok() == fs::canonicalize(own).ok();
    let Ok(file) = open_to_read(&path) else { return Ok(()) };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) if !same => {
            let holder = text_of_holder(&file, MAX_LOOKS);
            if holder.contains(KNOWS_ENGINE_LOCK) {
                return Ok(());
            }
            Err(OriginalsError::Held { holder, lock: path })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn pipe_in_the_place_of_a_lock_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("lock");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from(0o600), 0).unwrap();
        let error = format!(
            "{:#}",
            anyhow::Error::from(
                FolderLock::take(folder.path(), "a test", ReadOnly::Refused).unwrap_err()
            )
        );
        assert!(error.contains("/lock") && error.contains("not a regular file"), "{error}");
    }

    #[test]
    fn link_in_the_place_of_a_lock_is_named_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "another program's").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("lock")).unwrap();
        let taken = FolderLock::take(folder.path(), "a test", ReadOnly::Refused);
        let error = format!("{:#}", anyhow::Error::from(taken.unwrap_err()));
        assert!(error.contains("/lock") && error.contains("not a regular file"), "{error}");
        assert_eq!(fs::read_to_string(&other).unwrap(), "another program's");
    }

    #[test]
    fn search_for_lost_records_waits_for_no_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let locks = folder.path().join("locks");
        fs::create_dir_all(state.join("engine")).unwrap();
        let own = FolderLock::take(&state.join("engine"), "a test", ReadOnly::Refused).unwrap();
        let take = || {
            let engine = ("engine", "/var/lib/docker");
            EngineLock::take(&locks, engine, (Scope::Some, Duration::ZERO), (&state, &own))
        };
        let lock = take().unwrap().unwrap();
        let older = folder.path().join("engine");
        fs::create_dir(&older).unwrap();
        for pipe in [locks.join("job.claim"), older.join("lock")] {
            mknodat(CWD, &pipe, FileType::Fifo, Mode::from(0o600), 0).unwrap();
        }
        assert!(lock.abandoned().is_empty());
        assert!(take().unwrap().is_some());
    }

    #[test]
    fn search_for_lost_records_takes_no_lock_that_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let originals = state.join("engine");
        fs::create_dir_all(&originals).unwrap();
        fs::write(originals.join("job.json"), "{}").unwrap();
        let own = FolderLock::take(&originals, "a test", ReadOnly::Refused).unwrap();
        let locks = folder.path().join("locks");
        let engine = ("engine", "/var/lib/docker");
        let lock = EngineLock::take(&locks, engine, (Scope::Some, Duration::ZERO), (&state, &own))
            .unwrap()
            .unwrap();
        let claims = 2_000;
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert!(lock.abandoned().is_empty());
                }
            });
            let taken = (0..claims).filter(|_| lock.claim("job", true).is_ok()).count();
            done.store(true, Ordering::Relaxed);
            assert_eq!(taken, claims);
        });
    }

    #[test]
    fn holder_that_has_just_taken_a_lock_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let Ok(mut first) = Lock::take(&path, false) else { panic!("it is free") };
        let writing = std::thread::spawn(move || {
            std::thread::park_timeout(LOOK_PAUSE * 3);
            first.write("process 7\n").unwrap();
            first
        });
        let Err(Failed::Held(file)) = Lock::take(&path, false) else { panic!("it is held") };
        // As many looks as a busy machine may need.
        assert_eq!(text_of_holder(&file, 10_000), "process 7");
        drop(writing.join());
    }
}

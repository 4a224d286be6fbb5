//! The successive files under one name.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirEntryExt, FileTypeExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::open::{Got, Identity, Mark, Open};
use super::{Break, Piece, Progress, READS, State};

/// Number of remembered files, for example for a link that points back at one.
const KNOWN: usize = 8;
/// Maximum number of folder entries searched for a renamed file.
const ENTRIES: usize = 10_000;
/// The most bytes before a saved position that are read again.
const RECALLED: u64 = 256 << 20;
/// Maximum number of breaks in one poll.
const BREAKS: u32 = 8;

/// Follows the files under a name.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    open: Option<Open>,
    /// Files that were read before.
    known: VecDeque<Mark>,
    /// The file that the previous follower was reading. It may have been renamed since.
    unfinished: Option<Mark>,
    recall: Recall,
}

/// Whether the first file was read again up to its saved position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recall {
    NotYet,
    /// From here on it was not.
    From(u64),
    Done,
}

/// The file type found under the name.
#[derive(Debug)]
pub(super) enum Found {
    File(Progress),
    Pipe(File),
}

impl Tail {
    pub(super) fn new(path: PathBuf, known: Vec<Mark>) -> Self {
        let unfinished = known.last().copied();
        Self { path, open: None, known: known.into(), unfinished, recall: Recall::NotYet }
    }

    pub(super) fn poll(
        &mut self,
        buffer: &mut [u8],
        sink: &mut dyn FnMut(Piece<'_>),
    ) -> io::Result<Found> {
        let mut progress = Progress::default();
        if self.open.is_none() {
            match self.find()? {
                Some(Opened::File(open)) => self.open = Some(open),
                Some(Opened::Pipe(file)) => return Ok(Found::Pipe(file)),
                None => return Ok(Found::File(progress)),
            }
            progress.opened = true;
        }
        if self.recall != Recall::Done {
            progress.more = self.recall(buffer, sink)?;
            if progress.more {
                progress.state = State::Up;
                return Ok(Found::File(progress));
            }
        }
        self.read(buffer, sink, &mut progress)?;
        Ok(Found::File(progress))
    }

    /// Reads what is before the saved position again. Returns whether there is more of it.
    fn recall(&mut self, buffer: &mut [u8], sink: &mut dyn FnMut(Piece<'_>)) -> io::Result<bool> {
        let Some(open) = &self.open else { return Ok(false) };
        let mut from = match self.recall {
            Recall::From(from) => from,
            Recall::NotYet | Recall::Done => open.mark().offset.saturating_sub(RECALLED),
        };
        for _ in 0..READS {
            let read = open.read_again(buffer, from)?;
            let bytes = buffer.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                self.recall = Recall::Done;
                return Ok(false);
            }
            from = from.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
            sink(Piece::Recalled(bytes));
        }
        self.recall = Recall::From(from);
        Ok(true)
    }

    fn read(
        &mut self,
        buffer: &mut [u8],
        sink: &mut dyn FnMut(Piece<'_>),
        progress: &mut Progress,
    ) -> io::Result<()> {
        // Set once the old file has a successor. The old file is read to its end first.
        let mut successor = None;
        for _ in 0..READS + BREAKS {
            let Some(open) = &mut self.open else { return Ok(()) };
            let got = open.has_name().and_then(|has_name| {
                progress.state = if has_name { State::Up } else { State::Missing };
                open.read(buffer, sink)
            });
            if got.is_err() {
                // A stale handle is useless.
                self.close();
            }
            match got? {
                Got::Bytes => {}
                Got::Truncated => sink(Piece::Break(Break::Truncated)),
                Got::Replaced => sink(Piece::Break(Break::Replaced)),
                Got::End => match successor.take() {
                    Some((file, identity)) => {
                        self.close();
                        self.open = Some(Open::new(file, identity, self.known.iter())?);
                        progress.opened = true;
                        sink(Piece::Break(Break::Rotated));
                    }
                    None => match self.successor()? {
                        None => return Ok(()),
                        found => successor = found,
                    },
                },
            }
        }
        progress.more = true;
        Ok(())
    }

    /// The read positions of all files; the current one last.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let open = self.open.as_ref().map(Open::mark);
        let rest =
            self.known.iter().filter(|mark| open.is_none_or(|o| o.identity != mark.identity));
        rest.copied().chain(open).collect()
    }

    fn close(&mut self) {
        let Some(mark) = self.open.take().map(|open| open.mark()) else { return };
        self.known.retain(|known| known.identity != mark.identity);
        self.known.push_back(mark);
        if self.known.len() > KNOWN {
            self.known.pop_front();
        }
    }

    /// The first file to read, if there is any.
    fn find(&mut self) -> io::Result<Option<Opened>> {
        let found = open(&self.path)?;
        let inode = found.as_ref().map(|(_, metadata)| Identity::from_metadata(metadata).inode);
        // The rest of a file that was renamed meanwhile comes first.
        if let Some(unfinished) = self.unfinished
            && inode != Some(unfinished.identity.inode)
            && let Some(open) = renamed(&self.path, unfinished)
        {
            self.unfinished = None;
            return Ok(Some(Opened::File(open)));
        }
        let Some((file, metadata)) = found else { return Ok(None) };
        self.unfinished = None;
        let kind = metadata.file_type();
        Ok(Some(if kind.is_fifo() || kind.is_char_device() {
            Opened::Pipe(file)
        } else {
            Opened::File(Open::new(file, Identity::from_metadata(&metadata), self.known.iter())?)
        }))
    }

    /// The file that has the name now, if it is a different one.
    fn successor(&self) -> io::Result<Option<(File, Identity)>> {
        let other = |metadata: &fs::Metadata| {
            let identity = Identity::from_metadata(metadata);
            let is_new = self.open.as_ref().is_none_or(|open| open.identity != identity);
            Some(identity).filter(|_| is_new && metadata.is_file())
        };
        // It is usually the same file and need not be opened.
        if !fs::metadata(&self.path).is_ok_and(|metadata| other(&metadata).is_some()) {
            return Ok(None);
        }
        let found = open(&self.path)?;
        Ok(found.and_then(|(file, metadata)| Some((file, other(&metadata)?))))
    }
}

/// The first file under a name.
enum Opened {
    File(Open),
    Pipe(File),
}

/// Opens without waiting for the other end of a pipe. `None` if it does not exist.
pub(super) fn open(path: &Path) -> io::Result<Option<(File, fs::Metadata)>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => {
            let file = File::from(file);
            let metadata = file.metadata()?;
            Ok(Some((file, metadata)))
        }
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Searches the folder of `path` for the file of `mark`.
fn renamed(path: &Path, mark: Mark) -> Option<Open> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let mut same = entries.take(ENTRIES).flatten().filter(|e| e.ino() == mark.identity.inode);
    same.find_map(|entry| {
        let (file, metadata) = open(&entry.path()).ok()??;
        let identity = Identity::from_metadata(&metadata);
        let open = Open::new(file, identity, std::iter::once(&mark)).ok()?;
        Some(open).filter(|open| metadata.is_file() && open.mark().offset == mark.offset)
    })
}

//! Reads all files in one thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use paceline_grammar::Patterns;
use paceline_reporter::wire::Source;

use crate::clock::Clock;
use crate::csv;
use crate::follow::wake::Wake;
use crate::follow::{self, Follower, Piece, State};
use crate::job::{Age, Job};
use crate::merger::{Kind, SourceId};
use crate::say::say;
use crate::source::text::Text;
use crate::state::{Saved, SavedFiles};
use crate::tfevents::folder::Folder;

/// Polling period, for file systems that do not report changes.
const PERIOD: Duration = Duration::from_millis(250);
/// An incomplete line is read after this much silence: progress bars are drawn without a newline.
const SILENCE: Duration = Duration::from_millis(40);

/// How long the last read may take, after the end was asked for: Docker kills a container after 10 s.
const MAX_LAST_READ: Duration = Duration::from_secs(8);

/// The files to read.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Logs; `-` is standard input.
    pub logs: Vec<PathBuf>,
    /// CSV files.
    pub csvs: Vec<PathBuf>,
    /// Folders of event files.
    pub events: Vec<PathBuf>,
}

/// Reads files for a job.
#[derive(Debug)]
pub struct Files {
    job: Arc<Job>,
    wake: Option<Wake>,
    all: Vec<OneFile>,
}

#[derive(Debug)]
struct OneFile {
    source: SourceId,
    path: PathBuf,
    reader: Reader,
}

#[derive(Debug)]
enum Reader {
    Log(Box<(Follower, Text)>),
    Csv(Box<csv::Reader>),
    Events(Folder),
}

/// The result of a round of reads.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    more: bool,
    pending: bool,
}

impl Files {
    /// Follows files, which need not exist yet, from the positions in `saved`.
    pub fn new(
        job: &Arc<Job>,
        wanted: &Wanted,
        patterns: &Patterns,
        saved: &SavedFiles,
    ) -> io::Result<Self> {
        let mut files = Vec::new();
        for path in &wanted.logs {
            let source = job.add(Kind::Text, format!("log:{}", path.display()));
            let follower = if path.as_os_str() == "-" {
                Follower::stdin()?
            } else {
                Follower::resume(path, saved.logs.get(path).cloned().unwrap_or_default())
            };
            let mut text = Text::new(Arc::clone(job), source, patterns.clone());
            text.set_age(Age::Old);
            let reader = Reader::Log(Box::new((follower, text)));
            files.push(OneFile { source, path: path.clone(), reader });
        }
        for path in &wanted.csvs {
            let source = job.add(Kind::Csv, format!("csv:{}", path.display()));
            let seen = saved.csvs.get(path).cloned().unwrap_or_default();
            let reader = Reader::Csv(Box::new(csv::Reader::resume(path, seen)));
            files.push(OneFile { source, path: path.clone(), reader });
        }
        for path in &wanted.events {
            let source = job.add(Kind::Events, format!("tfevents:{}", path.display()));
            let before = saved.events.get(path).cloned().unwrap_or_default();
            let reader = Reader::Events(Folder::resume(path, 0, before));
            files.push(OneFile { source, path: path.clone(), reader });
        }
        // Without it, files are polled.
        let mut wake = Wake::new().ok();
        if let Some(wake) = &mut wake {
            for file in &files {
                file.watch(wake);
            }
        }
        Ok(Self { job: Arc::clone(job), wake, all: files })
    }

    /// Reads until `stop`, and then once more to the end, for some seconds at most. Calls `save`
    /// whenever it has caught up, and at the end.
    pub fn run(&mut self, stop: &AtomicBool, mut save: impl FnMut(&Self)) {
        while !stop.load(Ordering::Relaxed) {
            let round = self.round();
            if round.more {
                continue;
            }
            save(self);
            let quiet = !self.wait(if round.pending { SILENCE } else { PERIOD });
            if quiet {
                self.texts().for_each(Text::flush);
            }
        }
        self.read_rest(MAX_LAST_READ);
        save(self);
    }

    /// Reads to the end, for `max_time` at most: what is written faster than it is read, or is endless, must
    /// not delay the end of the job.
    fn read_rest(&mut self, max_time: Duration) {
        let clock = Clock::start();
        while self.round().more {
            if clock.elapsed() >= max_time {
                say(format_args!(
                    "ending with unread text: the sources have more than {} s can read",
                    max_time.as_secs()
                ));
                // The last line may be cut at the end of a piece: it is not a report.
                return;
            }
        }
        self.texts().for_each(Text::finish);
    }

    /// Reads a bounded amount of each file.
    fn round(&mut self) -> Round {
        let mut round = Round::default();
        for file in &mut self.all {
            let one = file.read(&self.job, self.wake.as_mut());
            round.more |= one.more;
            round.pending |= one.pending;
        }
        round
    }

    /// Waits for a change and returns whether there was one.
    fn wait(&self, timeout: Duration) -> bool {
        if let Some(Ok(changed)) = self.wake.as_ref().map(|wake| wake.wait(timeout)) {
            return changed;
        }
        std::thread::park_timeout(timeout);
        false
    }

    fn texts(&mut self) -> impl Iterator<Item = &mut Text> {
        self.all.iter_mut().filter_map(|file| match &mut file.reader {
            Reader::Log(log) => Some(&mut log.1),
            Reader::Csv(_) | Reader::Events(_) => None,
        })
    }

    /// The read positions of all files.
    pub fn saved(&self) -> SavedFiles {
        let mut saved = Saved::default().files;
        for OneFile { path, reader, .. } in &self.all {
            let path = path.clone();
            match reader {
                Reader::Log(log) => {
                    saved.logs.extend(log.0.saved().map(|saved| (path, saved)));
                }
                Reader::Csv(reader) => {
                    saved.csvs.insert(path, reader.seen().clone());
                }
                Reader::Events(folder) => {
                    saved.events.insert(path, folder.saved());
                }
            }
        }
        saved
    }
}

impl OneFile {
    fn read(&mut self, job: &Job, wake: Option<&mut Wake>) -> Round {
        let source = self.source;
        let result = match &mut self.reader {
            Reader::Log(log) => {
                let (follower, text) = &mut **log;
                let read = follower.poll(&mut |piece| match piece {
                    Piece::Bytes(bytes) => text.feed(bytes),
                    Piece::Recalled(bytes) => text.recall(bytes),
                    Piece::CaughtUp => text.set_age(Age::New),
                    Piece::Break(_) => text.restart(),
                });
                read.map(|progress| {
                    job.describe(source, |known| known.up = progress.state == State::Up);
                    (progress.more, text.is_pending(), progress.opened)
                })
            }
            Reader::Csv(reader) => {
                let mut lock = job.lock(source);
                let read = reader.poll(&mut |observation| lock.take(&observation));
                drop(lock);
                let counts = reader.counts();
                read.map(|progress: follow::Progress| {
                    job.describe(source, |known| {
                        known.up = progress.state == State::Up;
                        known.grammar = Some("csv".to_owned());
                        known.bytes = counts.file.bytes;
                        known.lines = counts.rows.new;
                        known.errors = counts.rows.malformed;
                    });
                    (progress.more, false, progress.opened)
                })
            }
            Reader::Events(folder) => {
                let now = job.clock().elapsed();
                let mut lock = job.lock(source);
                let progress = folder.poll(now, &mut |found| lock.take(&found.observation));
                drop(lock);
                let counts = folder.counts();
                job.describe(source, |known| {
                    known.up = progress.source_up;
                    known.grammar = Some("tfevents".to_owned());
                    known.bytes = counts.bytes;
                    known.lines = counts.records.whole;
                    known.errors = counts.malformed + counts.records.damaged;
                    let is_unread = known.observations == 0 && progress.left_out > 0;
                    known.hint = is_unread.then(|| left_out(progress.left_out));
                });
                Ok((progress.more, false, true))
            }
        };
        match result {
            Ok((more, pending, opened)) => {
                if let Some(wake) = wake.filter(|_| opened) {
                    self.watch(wake);
                }
                job.describe(source, |known| known.error = None);
                Round { more, pending }
            }
            Err(error) => {
                job.describe(source, |known: &mut Source| {
                    known.up = false;
                    known.error = Some(error.to_string());
                });
                Round::default()
            }
        }
    }

    /// Asks the system to report changes. Returns whether it does.
    fn watch(&self, wake: &mut Wake) -> bool {
        match &self.reader {
            Reader::Log(log) if log.0.readable().is_some() => false,
            Reader::Log(_) | Reader::Csv(_) => wake.watch_log(&self.path),
            Reader::Events(folder) => {
                let folders: Vec<&Path> = folder.folders().collect();
                wake.watch_folders(&self.path, folders)
            }
        }
    }
}

/// What the user can do where the newest event files of a folder have no loss.
fn left_out(files: usize) -> String {
    format!("{files} older event files are left out: name the folder of one run")
}

#[cfg(test)]
mod tests {
    use paceline_reporter::Reporter;
    use paceline_reporter::wire::Progress;

    use super::*;
    use crate::merger::Hints;

    /// The progress of a job, and the number of bytes read, after the rest of `path` was read for `max_time`
    /// at most.
    fn read_within(path: &Path, max_time: Duration) -> (Progress, u64) {
        let wanted = Wanted { logs: vec![path.to_owned()], ..Wanted::default() };
        let (progress, (bytes, _)) = read(&wanted, max_time);
        (progress, bytes)
    }

    /// The job's progress, and the bytes and the hint of its first source.
    fn read(wanted: &Wanted, max_time: Duration) -> (Progress, (u64, Option<String>)) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("sidecar.sock");
        let builder = Reporter::builder("vae").listen(&format!("unix:{}", socket.display()));
        let job = Job::start(builder, Hints::default()).unwrap();
        let mut files =
            Files::new(&job, wanted, &Patterns::default(), &SavedFiles::default()).unwrap();
        files.read_rest(max_time);
        let source = job.describe(files.all[0].source, |it| (it.bytes, it.hint.clone())).unwrap();
        let progress = job.progress().unwrap();
        job.close();
        (progress, source)
    }

    #[test]
    fn endless_file_does_not_delay_the_end() {
        let (progress, bytes) = read_within(Path::new("/dev/zero"), Duration::ZERO);
        assert!(progress.eval.count == 0 && bytes > 0, "{bytes} bytes");
    }

    #[test]
    fn event_files_that_are_left_out_are_named() {
        let folder = tempfile::tempdir().unwrap();
        for stamp in 1_700_000_000..1_700_001_003 {
            let name = format!("events.out.tfevents.{stamp}.host.1.0");
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let wanted = Wanted { events: vec![folder.path().to_owned()], ..Wanted::default() };
        let (_, (_, hint)) = read(&wanted, Duration::ZERO);
        assert_eq!(hint, Some(left_out(3)));
    }

    #[test]
    fn line_that_the_end_cuts_is_no_report() {
        let line = |step: u64| format!("iter {step}: loss 2.5000, time 20ms\n");
        let text: String = (100_000..145_000).map(line).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.log");
        std::fs::write(&path, &text).unwrap();
        let (progress, bytes) = read_within(&path, Duration::ZERO);
        let read = &text[..usize::try_from(bytes).unwrap()];
        let (whole, cut) = read.rsplit_once('\n').unwrap();
        assert!(cut.contains("loss 2.5"), "{bytes} bytes end in {cut:?}");
        assert_eq!(progress.eval.count, u64::try_from(whole.lines().count()).unwrap());
    }
}

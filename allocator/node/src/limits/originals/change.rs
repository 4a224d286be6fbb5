//! Changes of the records: each is in the files before it is in the memory.

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use paceline_api::clock::unix_seconds;
use paceline_api::state_folder::make_private;
use paceline_runtime::processes::{is_job, mark, unmark};
use tracing::{debug, warn};

use super::super::error::chain;
use super::super::lock::{Claim, EngineLock};
use super::super::record_files::RecordFiles;
use super::{
    Absence, Kept, Known, LastWrite, Original, Originals, OriginalsError, Record, at, booted_at,
};

/// By how many seconds the clock may change between two counts without having been set.
const MAX_CLOCK_CHANGE: f64 = 5.0;

impl Originals {
    /// Records the values that the next write may leave. The first call for a container records
    /// `original` as well. With `sync`, all of it is on the disk afterwards.
    pub(in crate::limits) fn write_ahead(
        &self,
        original: &Original,
        last: LastWrite,
        sync: bool,
    ) -> Result<(), OriginalsError> {
        let _busy = self.begin();
        let id = &original.id;
        let files = self.files(id);
        let failed = at(files.path());
        let known = match self.kept().get(id) {
            Some(Kept::Known(known)) => {
                let synced = known.record.last.as_ref().is_some_and(|last| last.engine);
                Some((known.number, (sync && !synced) || known.seal.is_none()))
            }
            Some(Kept::Unreadable { .. } | Kept::Ended(_)) | None => None,
        };
        let Some((before, outdated)) = known else {
            // A file that cannot be read is not an absent one.
            self.get(id)?;
            let mut claim = self.take_claim(id, false)?;
            make_private(&self.folder).map_err(&failed)?;
            files.create_last(1, &last, sync).map_err(&failed)?;
            let seal = files.write_original(original, sync).map_err(&failed)?;
            if let Some(claim) = &mut claim {
                claim.is_recorded();
            }
            if is_job(id)
                && let Err(error) = mark(id)
            {
                warn!("cannot mark job {id} as limited for allocators of other users: {error}");
            }
            let record = Record { original: original.clone(), last: Some(last) };
            let known = Known { record, number: 1, seal: Some(seal), claim };
            self.kept().insert(id.clone(), Kept::Known(Box::new(known)));
            return Ok(());
        };
        self.claim(id)?;
        if outdated {
            self.replace(original)?;
        }
        let number = before.wrapping_add(1);
        if files.write_last(number, &last, sync).is_err() {
            // The file is missing, of an older version, or was changed by others.
            make_private(&self.folder).map_err(&failed)?;
            files.create_last(number, &last, sync).map_err(&failed)?;
        }
        self.change(id, |known| (known.record.last, known.number) = (Some(last), number));
        Ok(())
    }

    /// The same before a restore, for which the memory is enough. On an error, the memory has the values
    /// all the same, unless the container belongs to another allocator.
    pub(in crate::limits) fn write_ahead_of_restore(
        &self,
        original: &Original,
        last: LastWrite,
        sync: bool,
    ) -> Result<(), OriginalsError> {
        let written = self.write_ahead(original, last.clone(), sync);
        if written.as_ref().is_err_and(|error| !error.is_of_one_container()) {
            self.change(&original.id, |known| (known.record.last, known.seal) = (Some(last), None));
        }
        written
    }

    /// Records the values that are left after a write was read back. Without it, the values from before
    /// the write stay as well, so a failure is none of the write's.
    pub(in crate::limits) fn settle(&self, id: &str, last: LastWrite) {
        let _busy = self.begin();
        let mut number = 0;
        self.change(id, |known| number = known.number.wrapping_add(1));
        if self.files(id).write_last(number, &last, false).is_ok() {
            self.change(id, |known| (known.record.last, known.number) = (Some(last), number));
        }
    }

    /// Records other limits of a container's owner. On return they are on the disk.
    pub(in crate::limits) fn replace(&self, original: &Original) -> Result<(), OriginalsError> {
        self.write_again(original, true)
    }

    fn write_again(&self, original: &Original, sync: bool) -> Result<(), OriginalsError> {
        let _busy = self.begin();
        let files = self.files(&original.id);
        let failed = at(files.path());
        make_private(&self.folder).map_err(&failed)?;
        let seal = files.write_original(original, sync).map_err(&failed)?;
        self.change(&original.id, |known| {
            known.record.original = original.clone();
            known.seal = Some(seal);
        });
        Ok(())
    }

    /// The same before a restore, for which the memory is enough: on an error, it has the limits all the
    /// same.
    pub(in crate::limits) fn replace_to_restore(
        &self,
        original: &Original,
    ) -> Result<(), OriginalsError> {
        let replaced = self.replace(original);
        if replaced.is_err() {
            self.change(&original.id, |known| {
                (known.record.original, known.seal) = (original.clone(), None);
            });
        }
        replaced
    }

    /// Takes over a record from another folder. On return it is on the disk.
    pub(in crate::limits) fn take_over(
        &self,
        record: Record,
        number: u64,
    ) -> Result<(), OriginalsError> {
        let _busy = self.begin();
        let id = record.original.id.clone();
        let (files, claim) = (self.files(&id), self.take_claim(&id, true)?);
        let failed = at(files.path());
        if let Some(last) = &record.last {
            files.create_last(number, last, true).map_err(&failed)?;
        }
        let seal = Some(files.write_original(&record.original, true).map_err(&failed)?);
        let known = Known { record, number, seal, claim };
        self.kept().insert(id, Kept::Known(Box::new(known)));
        Ok(())
    }

    /// Removes the record of a container in which nothing of ours is left. It ends even if its files
    /// cannot be removed, which is tried again at each survey.
    pub fn forget(&self, id: &str) -> Result<(), OriginalsError> {
        let _busy = self.begin();
        let mut claim = match self.kept().remove(id) {
            Some(Kept::Known(known)) => known.claim,
            Some(Kept::Ended(claim)) => claim,
            Some(Kept::Unreadable { .. }) | None => None,
        };
        // Between these two steps, a record that is missing must not be taken for a lost one.
        claim.iter_mut().for_each(Claim::is_restored);
        if is_job(id) {
            unmark(id);
        }
        if let Err(error) = self.files(id).remove() {
            self.kept().insert(id.to_owned(), Kept::Ended(claim));
            return Err(error);
        }
        claim.into_iter().for_each(Claim::release);
        Ok(())
    }

    /// Counts that the engine does not know a container; returns since when, and how often it was asked.
    pub(in crate::limits) fn count_absence(&self, id: &str) -> Absence {
        let now = unix_seconds();
        let (engine, booted) = (self.engine.clone(), booted_at().as_secs_f64());
        let mut counted = None;
        // A clock that was set meanwhile makes no time pass: then the count begins again.
        let same_clock = |before: &Absence| {
            before.booted.is_some_and(|at| (at - booted).abs() < MAX_CLOCK_CHANGE)
        };
        let mut count = |absent: &mut Option<Absence>| {
            let before = absent.take().filter(|it| it.engine == engine && same_clock(it));
            let since = before.as_ref().map_or(now, |before| before.since.min(now));
            let times = before.map_or(1, |before| before.times.saturating_add(1));
            let engine = engine.clone();
            *absent = Some(Absence { engine, since, times, booted: Some(booted) });
            counted.clone_from(absent);
        };
        let mut changed = None;
        match self.kept().get_mut(id) {
            Some(Kept::Known(known)) => {
                count(&mut known.record.original.absent);
                changed = Some(known.record.original.clone());
            }
            Some(Kept::Unreadable { absent, .. }) => count(absent),
            Some(Kept::Ended(_)) | None => {}
        }
        // Without it, only the time until the record ends is longer. So the caller does not wait for the disk.
        if let Some(error) = changed.and_then(|original| self.write_again(&original, false).err()) {
            warn!("{}", chain(&error));
        }
        let engine = self.engine.clone();
        counted.unwrap_or(Absence { engine, since: now, times: 1, booted: Some(booted) })
    }

    /// Writes every file again that was removed or changed by others, or could not be written. Removes
    /// those that could not be removed. Takes every lock again whose file was removed.
    pub(in crate::limits) fn mend(&self) {
        if self.busy.load(Ordering::Acquire) > 0 {
            return;
        }
        let mut mended = Vec::new();
        for (id, one) in self.kept().iter_mut() {
            let (Kept::Known(known), files) = (one, self.files(id)) else { continue };
            let lacks_last = known.record.last.is_some() && !files.has_last();
            if files.seal() == known.seal && !lacks_last {
                continue;
            }
            match known.write(&files) {
                Ok(()) => mended.push(id.clone()),
                Err(error) => warn!("cannot write {} again: {error}", files.path().display()),
            }
        }
        if !mended.is_empty() {
            warn!(
                "original limits in {} were removed or changed: written again for container {}",
                self.folder.display(),
                mended.join(", ")
            );
        }
        self.kept().retain(|id, one| {
            let Kept::Ended(claim) = one else { return true };
            if let Err(error) = self.files(id).remove() {
                debug!("cannot remove the record of container {id}: {}", chain(&error));
                return true;
            }
            claim.take().into_iter().for_each(Claim::release);
            false
        });
        self.renew_locks();
    }

    /// Takes every lock again whose file was removed. Otherwise another allocator could take it.
    fn renew_locks(&self) {
        let renewed = self.lock.lock().unwrap_or_else(PoisonError::into_inner).renew();
        if let Err(error) = renewed {
            warn!("cannot lock the state folder again: {}", chain(&error));
        }
        if let Some(Err(error)) = self.engine_lock().as_mut().map(EngineLock::renew) {
            warn!("cannot lock the container engine again: {}", chain(&error));
        }
        let mut lost = Vec::new();
        for (id, one) in self.kept().iter_mut() {
            if let Kept::Known(known) = one
                && known.claim.take_if(|claim| !claim.is_held()).is_some()
            {
                lost.push(id.clone());
            }
        }
        for id in lost {
            // Without its lock, nothing more is written to the container until it can be restored.
            if let Err(error) = self.claim(&id) {
                warn!("cannot lock container {id} again: {}", chain(&error));
            }
        }
    }
}

impl Known {
    /// Writes both files again.
    fn write(&mut self, files: &RecordFiles) -> io::Result<()> {
        if let Some(folder) = files.path().parent() {
            make_private(folder)?;
        }
        if let Some(last) = &self.record.last {
            files.create_last(self.number, last, true)?;
        }
        self.seal = Some(files.write_original(&self.record.original, true)?);
        Ok(())
    }
}

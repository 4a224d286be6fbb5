//! Finding the images on this machine, or fetching them.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::debian;
use crate::files;
use crate::mirror;
use crate::note::note;

/// The cache's folder of MNIST.
const MNIST: &str = "mnist";
/// The cache's folder of Fashion-MNIST.
const FASHION_MNIST: &str = "fashion-mnist";

/// The possible places of images, in the order of the search.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder that the user named: if there is one, no other place is searched.
    pub chosen: Option<PathBuf>,
    /// The folder of fetched data sets.
    pub cache: PathBuf,
    /// The servers of MNIST.
    pub mirrors: Vec<String>,
    /// The installation folder of Debian's package of Fashion-MNIST.
    pub installed: PathBuf,
    /// The program that fetches this package, if it is not installed.
    pub apt_get: PathBuf,
}

/// The reason why no images were found.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// Neither `XDG_CACHE_HOME` nor `HOME` says where the cache is.
    #[error("neither XDG_CACHE_HOME nor HOME is set: name a folder of IDX files with --data")]
    NoHome,
    /// The cache could not be written.
    #[error("cannot write to {folder}: {cause}")]
    Cache {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// None of the places has images.
    #[error("no images were found; name a folder of IDX files with --data\n{0}")]
    Nowhere(String),
}

impl Places {
    /// The usual places of the current user, after the named folder, if any.
    pub fn of_user(chosen: Option<PathBuf>) -> Result<Self, LocateError> {
        let folder = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = folder("XDG_CACHE_HOME");
        let cache = cache.or_else(|| folder("HOME").map(|home| home.join(".cache")));
        Ok(Self {
            // With a named folder, no cache is needed.
            cache: match (cache, &chosen) {
                (Some(cache), _) => cache.join("paceline"),
                (None, Some(_)) => PathBuf::new(),
                (None, None) => return Err(LocateError::NoHome),
            },
            chosen,
            mirrors: mirror::MIRRORS.map(str::to_owned).to_vec(),
            installed: Path::new("/").join(debian::FOLDER),
            apt_get: PathBuf::from("apt-get"),
        })
    }

    /// The first folder that has images, or into which images could be fetched.
    pub fn locate(&self) -> Result<PathBuf, LocateError> {
        if let Some(chosen) = &self.chosen {
            return Ok(chosen.clone());
        }
        let [mnist, fashion_mnist] = [MNIST, FASHION_MNIST].map(|name| self.cache.join(name));
        if let Some(cached) = [&mnist, &fashion_mnist].into_iter().find(|it| files::is_whole(it)) {
            return Ok(cached.clone());
        }
        let mut failures = Vec::new();
        for mirror in &self.mirrors {
            note(format_args!("Fetching MNIST from {mirror}."));
            let files = self.scratch()?;
            match mirror::fetch(mirror, &mirror::MNIST, files.path()) {
                Ok(()) => return publish(files, mnist),
                Err(error) => failures.push(error.to_string()),
            }
        }
        note("Cannot fetch MNIST; Fashion-MNIST has the same form.");
        if files::is_whole(&self.installed) {
            return Ok(self.installed.clone());
        }
        note(format_args!("Fetching Debian's package {}.", debian::PACKAGE));
        let (files, scratch) = (self.scratch()?, self.scratch()?);
        match debian::fetch(&self.apt_get, scratch.path(), files.path()) {
            Ok(()) => return publish(files, fashion_mnist),
            Err(error) => failures.push(error.to_string()),
        }
        Err(LocateError::Nowhere(failures.join("\n")))
    }

    /// A new folder next to the final folder of the images, so that they can be moved there atomically.
    fn scratch(&self) -> Result<TempDir, LocateError> {
        let new = || {
            fs::create_dir_all(&self.cache)?;
            tempfile::Builder::new().prefix(".fetching-").tempdir_in(&self.cache)
        };
        new().map_err(|cause| LocateError::Cache { folder: self.cache.clone(), cause })
    }
}

fn publish(files: TempDir, folder: PathBuf) -> Result<PathBuf, LocateError> {
    match files::publish(files, &folder) {
        Ok(()) => Ok(folder),
        Err(cause) => Err(LocateError::Cache { folder, cause }),
    }
}

#[cfg(test)]
mod tests;

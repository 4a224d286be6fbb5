//! The four files of a data set, their checksums, and the publishing of a folder with them.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};
use tempfile::TempDir;

/// The images to train on.
pub(crate) const TRAIN_IMAGES: &str = "train-images-idx3-ubyte";
/// Their labels.
pub(crate) const TRAIN_LABELS: &str = "train-labels-idx1-ubyte";
/// The images to test on.
pub(crate) const TEST_IMAGES: &str = "t10k-images-idx3-ubyte";
/// Their labels.
pub(crate) const TEST_LABELS: &str = "t10k-labels-idx1-ubyte";
/// All of them.
pub(crate) const ALL: [&str; 4] = [TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS];

/// The plain or the compressed file of this name, if there is one.
pub(crate) fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let compressed = folder.join(format!("{name}.gz"));
    [folder.join(name), compressed].into_iter().find(|path| path.is_file())
}

/// Whether a folder has all four files.
pub(crate) fn is_whole(folder: &Path) -> bool {
    ALL.iter().all(|name| find(folder, name).is_some())
}

/// The MD5 checksum, in hexadecimal. It distinguishes data sets and finds damage. It does not protect
/// against an attacker.
pub(crate) fn md5(data: &[u8]) -> String {
    Md5::digest(data).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Publishes a folder of files atomically, readable by everyone, since containers run as other
/// users. If it exists by now, another process was faster, and its files are used.
pub(crate) fn publish(files: TempDir, folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(files.path())? {
        fs::set_permissions(entry?.path(), Permissions::from_mode(0o644))?;
    }
    fs::set_permissions(files.path(), Permissions::from_mode(0o755))?;
    match fs::rename(files.path(), folder) {
        Err(_) if is_whole(folder) => files.close(),
        Err(error) => Err(error),
        Ok(()) => {
            // The temporary name is gone.
            drop(files.keep());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of(names: &[&str]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(folder.path().join(name), "").unwrap();
        }
        folder
    }

    #[test]
    fn the_checksum_is_that_of_rfc_1321() {
        assert_eq!(md5(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(md5(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
    }

    #[test]
    fn file_is_found_plain_or_compressed() {
        let folder = folder_of(&[TRAIN_IMAGES, "t10k-labels-idx1-ubyte.gz"]);
        assert!(find(folder.path(), TRAIN_IMAGES).is_some());
        assert!(find(folder.path(), TEST_LABELS).is_some());
        assert!(find(folder.path(), TEST_IMAGES).is_none());
        assert!(!is_whole(folder.path()));
    }

    #[test]
    fn published_folder_is_whole_and_readable_by_all() {
        let cache = tempfile::tempdir().unwrap();
        let target = cache.path().join("mnist");
        publish(folder_of(&ALL), &target).unwrap();
        assert!(is_whole(&target));
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o755);
        let file = fs::metadata(target.join(TEST_LABELS)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o644);
    }

    #[test]
    fn second_publisher_uses_existing_folder() {
        let cache = tempfile::tempdir().unwrap();
        let target = cache.path().join("mnist");
        publish(folder_of(&ALL), &target).unwrap();
        let second = folder_of(&ALL);
        let left_over = second.path().to_owned();
        publish(second, &target).unwrap();
        assert!(!left_over.exists());
    }

    #[test]
    fn unexpected_target_folder_is_an_error() {
        let cache = tempfile::tempdir().unwrap();
        let target = cache.path().join("mnist");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("notes.txt"), "").unwrap();
        assert!(publish(folder_of(&ALL), &target).is_err());
    }
}

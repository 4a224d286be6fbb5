//! What libraries read of the environment before `main`: where it is missing, the program has to
//! start anew with it.

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Variables and what they are, unless somebody has set them.
///
/// libgomp, which libtorch computes with, lets threads that wait for others spin, for milliseconds.
/// Where two jobs share the CPUs, the threads of one spin while those of the other should compute, and
/// both become many times slower. Threads that sleep at once must be woken for every operation. So they
/// spin for about as long as that takes.
///
/// glibc gives large blocks back to the kernel when they are freed. Each step of a training frees and
/// takes the same ones, and the kernel would clear them anew each time: a fifth of `mnist`'s step.
const SETTINGS: [(&str, &str); 4] = [
    ("OMP_WAIT_POLICY", "PASSIVE"),
    ("GOMP_SPINCOUNT", "2000"),
    ("MALLOC_MMAP_THRESHOLD_", "1073741824"),
    ("MALLOC_TRIM_THRESHOLD_", "1073741824"),
];

/// Starts this program anew, in the same process, where one of the settings is missing. It returns
/// only if there was no need to, or if that failed.
pub fn complete() -> io::Result<()> {
    match anew(|name| env::var_os(name).is_some())? {
        Some(mut command) => Err(command.exec()),
        None => Ok(()),
    }
}

fn anew(is_set: impl Fn(&str) -> bool) -> io::Result<Option<Command>> {
    let missing: Vec<_> = SETTINGS.into_iter().filter(|(name, _)| !is_set(name)).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let mut arguments = env::args_os();
    let mut command = Command::new(env::current_exe()?);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).envs(missing);
    Ok(Some(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_all_is_set_nothing_is_started_anew() {
        assert!(anew(|_| true).unwrap().is_none());
    }

    #[test]
    fn the_program_starts_anew_with_what_is_missing_and_the_same_arguments() {
        let command = anew(|name| name != "OMP_WAIT_POLICY").unwrap().unwrap();
        assert!(command.get_envs().eq([("OMP_WAIT_POLICY".as_ref(), Some("PASSIVE".as_ref()))]));
        assert!(command.get_args().eq(env::args_os().skip(1).collect::<Vec<_>>()));
    }
}

//! Environment variables that libraries read before `main`: if they are missing, the program has to
//! restart with them.

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Variables and their defaults, used unless the user has set them.
///
/// libgomp, which libtorch computes with, lets waiting threads spin for milliseconds. Where two jobs
/// share the CPUs, the threads of one spin while those of the other should compute. Both become many
/// times slower. Threads that sleep at once must be woken for every operation. So they spin for about
/// as long as that takes.
///
/// glibc gives large blocks back to the kernel when they are freed. Each step of a training frees and
/// takes the same ones, and the kernel would clear them again each time: a fifth of `mnist`'s step.
const SETTINGS: [(&str, &str); 4] = [
    ("OMP_WAIT_POLICY", "PASSIVE"),
    ("GOMP_SPINCOUNT", "2000"),
    ("MALLOC_MMAP_THRESHOLD_", "1073741824"),
    ("MALLOC_TRIM_THRESHOLD_", "1073741824"),
];

/// Restarts this program, in the same process, if one of the settings is missing. It returns only if
/// no restart was needed, or if it failed.
pub fn complete() -> io::Result<()> {
    match restart_command(|name| env::var_os(name).is_some())? {
        Some(mut command) => Err(command.exec()),
        None => Ok(()),
    }
}

fn restart_command(is_set: impl Fn(&str) -> bool) -> io::Result<Option<Command>> {
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
    fn complete_environment_needs_no_restart() {
        assert!(restart_command(|_| true).unwrap().is_none());
    }

    #[test]
    fn restart_adds_missing_variables_and_keeps_arguments() {
        let command = restart_command(|name| name != "OMP_WAIT_POLICY").unwrap().unwrap();
        assert!(command.get_envs().eq([("OMP_WAIT_POLICY".as_ref(), Some("PASSIVE".as_ref()))]));
        assert!(command.get_args().eq(env::args_os().skip(1).collect::<Vec<_>>()));
    }
}

//! Making OpenMP's threads sleep when they wait.
//!
//! libgomp, which libtorch computes with, lets threads that wait for others spin. Where two jobs
//! share the CPUs, the threads of one spin while those of the other should compute, and both become
//! many times slower. Libgomp reads its settings when it is loaded, which is before `main`: the
//! program has to start anew with the right one.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What libgomp reads.
const VARIABLE: &str = "OMP_WAIT_POLICY";

/// Starts this program anew, in the same process, unless somebody has set how threads wait. It
/// returns only if there was no need to, or if that failed.
pub fn wait_passively() -> io::Result<()> {
    match anew(env::var_os(VARIABLE).as_deref())? {
        Some(mut command) => Err(command.exec()),
        None => Ok(()),
    }
}

fn anew(policy: Option<&OsStr>) -> io::Result<Option<Command>> {
    if policy.is_some() {
        return Ok(None);
    }
    let mut arguments = env::args_os();
    let mut command = Command::new(env::current_exe()?);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env(VARIABLE, "PASSIVE");
    Ok(Some(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_somebody_set_is_kept() {
        assert!(anew(Some("ACTIVE".as_ref())).unwrap().is_none());
    }

    #[test]
    fn without_a_policy_the_program_starts_anew_with_one_and_the_same_arguments() {
        let command = anew(None).unwrap().unwrap();
        assert!(command.get_envs().eq([(VARIABLE.as_ref(), Some("PASSIVE".as_ref()))]));
        assert!(command.get_args().eq(env::args_os().skip(1).collect::<Vec<_>>()));
    }
}

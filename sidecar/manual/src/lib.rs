//! `completions` and `man` of Paceline's commands, made from what the command line itself says.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

/// Print completions for a shell
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = "Examples:
  source <(paceline completions bash)
  paceline completions zsh > ~/.zfunc/_paceline
  paceline-sidecar completions fish > ~/.config/fish/completions/paceline-sidecar.fish")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Print a manual page, or write all of them into a folder
///
/// Without a command it is the page of the whole program.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  man -l <(paceline man run)
  paceline man --into ~/.local/share/man/man1
  paceline-sidecar man --into /usr/share/man/man1")]
pub struct ManArgs {
    /// The command that the page is about
    #[arg(value_name = "COMMAND", conflicts_with = "into")]
    about: Vec<String>,

    /// Write a page for each command into this folder, for example `paceline-run.1`
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

/// Why a page cannot be printed or written.
#[derive(Debug, thiserror::Error)]
pub enum ManError {
    /// The command is unknown.
    #[error("invalid command \"{0}\": expected one that --help lists")]
    Unknown(String),
    /// The folder of this path cannot be written.
    #[error("cannot write {}: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Print(io::Error),
}

impl CompletionsArgs {
    /// Prints the completions of `command`.
    ///
    /// # Errors
    ///
    /// If standard output cannot be written.
    pub fn run(self, command: Command) -> Result<(), ManError> {
        print(&self.script(command)).map_err(ManError::Print)
    }

    fn script(self, mut command: Command) -> Vec<u8> {
        let name = command.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        script
    }
}

impl ManArgs {
    /// Prints or writes pages of `command`.
    ///
    /// # Errors
    ///
    /// If the command is unknown, or a page cannot be written.
    pub fn run(&self, command: Command) -> Result<(), ManError> {
        match &self.into {
            Some(folder) => write_all(command, folder),
            None => print(&self.page(command)?).map_err(ManError::Print),
        }
    }

    fn page(&self, command: Command) -> Result<Vec<u8>, ManError> {
        // The command `help` repeats what the pages say.
        let mut command = command.disable_help_subcommand(true);
        command.build();
        let mut found = &command;
        for name in &self.about {
            let known = found.find_subcommand(name).filter(|found| !found.is_hide_set());
            found = known.ok_or_else(|| ManError::Unknown(name.clone()))?;
        }
        let mut page = Vec::new();
        Man::new(found.clone()).render(&mut page).map_err(ManError::Print)?;
        Ok(page)
    }
}

fn write_all(command: Command, folder: &Path) -> Result<(), ManError> {
    let failed = |error| ManError::Write(folder.to_owned(), error);
    fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder).map_err(failed)
}

/// Writes to standard output. A reader that has closed it has read enough.
fn print(text: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match output.write_all(text).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Command {
        let run = Command::new("run").about("Run it").arg(clap::arg!(--fast "Faster"));
        Command::new("tool")
            .about("A tool")
            .subcommand(run)
            .subcommand(Command::new("x").hide(true))
    }

    fn page(about: &[&str]) -> Result<String, ManError> {
        let about = about.iter().map(|&word| word.to_owned()).collect();
        let page = ManArgs { about, into: None }.page(example())?;
        Ok(String::from_utf8(page).expect("a text"))
    }

    #[test]
    fn completions_name_commands_and_options_for_every_shell() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = CompletionsArgs { shell }.script(example());
            let script = String::from_utf8(script).expect("a text");
            assert!(script.contains("run") && script.contains("fast"), "{shell}: {script}");
        }
    }

    #[test]
    fn page_is_about_the_command_that_is_named() {
        assert!(page(&[]).unwrap().contains("A tool"));
        let run = page(&["run"]).unwrap();
        assert!(run.contains("Run it") && run.contains("fast"), "{run}");
        for hidden_or_unknown in ["x", "walk"] {
            let error = page(&[hidden_or_unknown]).unwrap_err().to_string();
            assert!(error.contains(hidden_or_unknown) && error.contains("--help"), "{error}");
        }
    }

    #[test]
    fn all_pages_are_written_into_a_new_folder() {
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("man1");
        ManArgs { about: Vec::new(), into: Some(into.clone()) }.run(example()).unwrap();
        let page = |name: &str| into.join(name).exists();
        assert!(page("tool.1") && page("tool-run.1") && !page("tool-x.1"));
        let taken = folder.path().join("file");
        fs::write(&taken, "").unwrap();
        let args = ManArgs { about: Vec::new(), into: Some(taken) };
        assert!(args.run(example()).unwrap_err().to_string().starts_with("cannot write "));
    }
}

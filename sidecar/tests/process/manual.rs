//! `completions` and `man`.

use std::fs;
use std::process::Command;

use crate::program::Bench;

#[test]
fn script_of_each_shell_names_the_commands() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = bench.run(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{shell}");
        for word in ["paceline-sidecar", "exec", "replay", "healthcheck"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let unknown = bench.run(&["completions", "tcsh"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8(unknown.stderr).unwrap().contains("possible values"));
}

#[test]
fn bash_accepts_the_script_for_bash() {
    let bench = Bench::new();
    let output = bench.run(&["completions", "bash"]);
    let script = bench.path("script");
    fs::write(&script, output.stdout).unwrap();
    // What bash itself would call, with the function that the script has registered.
    let command = "source \"$1\"; function=$(complete -p paceline-sidecar | grep -o -- '-F [^ ]*'); \
                   COMP_WORDS=(paceline-sidecar he); COMP_CWORD=1; \
                   ${function#-F } paceline-sidecar he paceline-sidecar; echo \"${COMPREPLY[@]}\"";
    let Ok(output) = Command::new("bash").args(["-c", command, "bash"]).arg(&script).output()
    else {
        eprintln!("skipped: there is no bash");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.split_whitespace().any(|word| word == "healthcheck"), "{output:?}");
}

#[test]
fn manual_has_a_page_per_command() {
    let bench = Bench::new();
    let folder = bench.path("man1");
    assert_eq!(bench.run(&["man", "--into", folder.to_str().unwrap()]).status.code(), Some(0));
    for name in ["paceline-sidecar.1", "paceline-sidecar-exec.1", "paceline-sidecar-replay.1"] {
        let page = fs::read_to_string(folder.join(name)).unwrap();
        assert!(page.contains(".TH paceline-sidecar") && page.contains(".SH SYNOPSIS"), "{name}");
    }
    let taken = bench.path("file");
    fs::write(&taken, "").unwrap();
    let failed = bench.run(&["man", "--into", taken.to_str().unwrap()]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8(failed.stderr).unwrap().contains("cannot write "));
    let unknown = bench.run(&["man", "fly"]);
    assert_eq!(unknown.status.code(), Some(2));
    let printed = bench.run(&["man"]).stdout;
    assert_eq!(printed, fs::read(folder.join("paceline-sidecar.1")).unwrap());
}

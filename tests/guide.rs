//! The documents: each link leads somewhere, and each command exists.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use paceline_system_tests::program;

/// Commands of these documents that need neither an engine nor files, and end within seconds.
const RUN_FOR_REAL: &[&str] = &[
    "paceline policies",
    "paceline simulate FC-3",
    "paceline simulate FC-3 --sweep flowcon.interval=20..60/10",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All documents of the repository, relative to its root.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // Outputs of builds, and folders that are not part of the repository.
            let skipped =
                name.starts_with('.') || ["target", "dist", "node_modules"].contains(&&*name);
            if path.is_dir() && !path.is_symlink() && !skipped {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The lines of a document, each with whether it is within a fenced block, and of which language.
fn lines(text: &str) -> Vec<(Option<String>, &str)> {
    let mut fence: Option<String> = None;
    let mut found = Vec::new();
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &fence) {
            (Some(language), None) => fence = Some(language.trim().to_owned()),
            (Some(_), Some(_)) => fence = None,
            (None, _) => found.push((fence.clone(), line)),
        }
    }
    found
}

/// The anchors of a document's headings, as code hosts form them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings =
        lines(text).into_iter().filter(|(fence, line)| fence.is_none() && line.starts_with('#'));
    let anchor = |(_, line): (Option<String>, &str)| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// The targets of a document's links.
fn links(text: &str) -> Vec<String> {
    let prose: Vec<&str> = lines(text)
        .into_iter()
        .filter_map(|(fence, line)| fence.is_none().then_some(line))
        .collect();
    let prose = prose.join("\n");
    let ends = prose.match_indices("](").map(|(at, _)| at + 2);
    let target = |at: usize| Some(prose.get(at..)?.split_once(')')?.0.trim().to_owned());
    ends.filter_map(target).collect()
}

/// The commands of a document's shell blocks, one line each.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut open = String::new();
    for (fence, line) in lines(text) {
        if fence.as_deref() != Some("sh") {
            continue;
        }
        open.push_str(line.trim_end_matches('\\'));
        if line.ends_with('\\') {
            continue;
        }
        // A variable of the reader's: any value that has the right form.
        let line = open.replace("$HASH", &"0".repeat(64));
        let words = shlex::split(&line).unwrap_or_else(|| panic!("unbalanced quotes: {open}"));
        open.clear();
        found.extend(
            words.split(|word| ["|", "&&", ";"].contains(&&**word)).map(<[String]>::to_vec),
        );
    }
    found
}

/// The words from the name of one of our programs on, if the command runs one.
fn ours(command: &[String]) -> Option<&[String]> {
    let assigned = |word: &String| word.contains('=') && !word.starts_with('-');
    let start = command.iter().position(|word| word != "sudo" && !assigned(word))?;
    let words = command.get(start..)?;
    let name = words.first()?;
    ["paceline", "paceline-sidecar"].contains(&&**name).then_some(words)
}

/// What a shell would pass: the words before a redirection.
fn arguments(words: &[String]) -> Vec<String> {
    let words = words.iter().skip(1);
    words.take_while(|word| !word.starts_with(['>', '<'])).cloned().collect()
}

#[test]
fn every_link_of_the_documents_leads_to_a_file_and_heading() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(root().join(&document)).unwrap();
        for link in
            links(&text).iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
        {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root().join(&document),
                file => root().join(document.parent().unwrap()).join(file),
            };
            let heading = || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor);
            let leads = target.exists() && (anchor.is_empty() || heading());
            if !leads {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// `--help` comes last: what stands before it is parsed, and nothing runs.
#[test]
fn every_command_of_the_documents_is_one_of_ours() {
    let mut wrong = Vec::new();
    let mut checked = BTreeSet::new();
    for document in documents() {
        let text = fs::read_to_string(root().join(&document)).unwrap();
        for command in commands(&text) {
            let Some(words) = ours(&command) else { continue };
            let mut arguments = arguments(words);
            let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
            arguments.truncate(end);
            // What follows `--` is the user's own command.
            arguments.push("--help".to_owned());
            let program = program(words.first().unwrap()).unwrap();
            let output = Command::new(program).args(&arguments).output().unwrap();
            checked.insert(command.join(" "));
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                wrong.push(format!("{}: {}: {said}", document.display(), command.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked.len() > 50, "only {} commands were found", checked.len());
}

#[test]
fn every_make_target_of_the_documents_exists() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let named = |target: &str| makefile.lines().any(|line| line.starts_with(&format!("{target}:")));
    let mut missing = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(root().join(&document)).unwrap();
        for command in commands(&text) {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            let ["make", targets @ ..] = words.as_slice() else { continue };
            let targets =
                targets.iter().filter(|word| !word.contains('=') && !word.starts_with('-'));
            missing.extend(
                targets
                    .filter(|target| !named(target))
                    .map(|target| format!("{}: make {target}", document.display())),
            );
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn commands_that_need_no_engine_end_well_as_written() {
    let all: BTreeSet<String> = documents()
        .iter()
        .flat_map(|document| commands(&fs::read_to_string(root().join(document)).unwrap()))
        .map(|command| command.join(" "))
        .collect();
    for line in RUN_FOR_REAL {
        assert!(all.contains(*line), "no document has `{line}`");
        let words = shlex::split(line).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(program(words.first().unwrap()).unwrap());
        let output =
            command.args(words.iter().skip(1)).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{line} printed nothing");
    }
}

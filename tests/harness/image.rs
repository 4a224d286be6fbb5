//! Images of programs and the libraries that they are linked with, made from cargo's build output:
//! no registry and no base image is needed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use bollard::Docker;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt;

/// The path of the program of this name from the same build. A test runs in a folder below it.
pub fn program(name: &str) -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe()?;
    let mut folders = this.ancestors().skip(1);
    let target = folders.find(|folder| !folder.ends_with("deps"));
    let program = target.context("this runs from cargo's target folder")?.join(name);
    anyhow::ensure!(program.exists(), "first: cargo build --bin {name}");
    Ok(program)
}

/// Makes the image `name` (`repository:tag`) that holds `programs`, each below `/` by its own name.
/// The first one is the entry point.
pub async fn image_of(docker: &Docker, name: &str, programs: &[&Path]) -> anyhow::Result<()> {
    let first = programs.first().context("an image has a program")?;
    let (repository, tag) = name.split_once(':').context("a name is repository:tag")?;
    let options = CreateImageOptionsBuilder::default()
        .from_src("-")
        .repo(repository)
        .tag(tag)
        .changes(vec![format!(r#"ENTRYPOINT ["/{}"]"#, name_of(first)?)])
        .build();
    let body = bollard::body_full(archive(programs)?.into());
    let mut made = std::pin::pin!(docker.create_image(Some(options), Some(body), None));
    while let Some(step) = made.next().await {
        step.context("the engine does not import the image")?;
    }
    Ok(())
}

/// A file system with the programs and their libraries, as a tar.
fn archive(programs: &[&Path]) -> anyhow::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    // Not every engine reads the entries that a sparse file would become.
    archive.sparse(false);
    let mut needed = BTreeSet::new();
    for program in programs {
        archive.append_path_with_name(program, name_of(program)?)?;
        needed.extend(libraries(program)?);
    }
    for library in needed {
        let inside = library.trim_start_matches('/');
        archive.append_path_with_name(&library, inside)?;
    }
    Ok(archive.into_inner()?)
}

fn name_of(program: &Path) -> anyhow::Result<&str> {
    program.file_name().and_then(|name| name.to_str()).context("a program has a name")
}

/// The absolute paths in what `ldd` prints: the libraries, and the loader by its own path.
fn libraries(program: &Path) -> anyhow::Result<Vec<String>> {
    let printed = Command::new("ldd").arg(program).output().context("ldd is missing")?;
    let printed = String::from_utf8(printed.stdout)?;
    let words = printed.split_whitespace();
    Ok(words.filter(|word| word.starts_with('/')).map(str::to_owned).collect())
}

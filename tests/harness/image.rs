//! Images of one program and the libraries that it is linked with, made from what cargo has built:
//! no registry and no base image is needed.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use bollard::Docker;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt;

/// Makes the image `name` (`repository:tag`) whose entry point is `program`.
pub async fn image_of(docker: &Docker, name: &str, program: &Path) -> anyhow::Result<()> {
    let (repository, tag) = name.split_once(':').context("a name is repository:tag")?;
    let options = CreateImageOptionsBuilder::default()
        .from_src("-")
        .repo(repository)
        .tag(tag)
        .changes(vec![r#"ENTRYPOINT ["/program"]"#.to_owned()])
        .build();
    let body = bollard::body_full(archive(program)?.into());
    let mut made = std::pin::pin!(docker.create_image(Some(options), Some(body), None));
    while let Some(step) = made.next().await {
        step.context("the engine does not import the image")?;
    }
    Ok(())
}

/// A file system with the program and its libraries, as a tar.
fn archive(program: &Path) -> anyhow::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    // Not every engine reads the entries that a sparse file would become.
    archive.sparse(false);
    archive.append_path_with_name(program, "program")?;
    for library in libraries(program)? {
        let inside = library.trim_start_matches('/');
        archive.append_path_with_name(&library, inside)?;
    }
    Ok(archive.into_inner()?)
}

/// The absolute paths in what `ldd` prints: the libraries, and the loader by its own path.
fn libraries(program: &Path) -> anyhow::Result<Vec<String>> {
    let printed = Command::new("ldd").arg(program).output().context("ldd is missing")?;
    let printed = String::from_utf8(printed.stdout)?;
    let words = printed.split_whitespace();
    Ok(words.filter(|word| word.starts_with('/')).map(str::to_owned).collect())
}

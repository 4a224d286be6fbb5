//! The wrapped form: the job's command runs under the sidecar, which sees what it prints.
//!
//! An init container puts the program on a volume, so the job's image needs nothing.

use crate::Options;
use crate::cursor::Cursor;
use crate::edit::Edit;
use crate::keys::{FOLDER, PROGRAM, SIDECAR};
use crate::mark::Insertion;
use crate::pod::{Pod, name};
use crate::problem::Problem;
use crate::settings::Settings;
use crate::sidecar;
use crate::value::{Value, map, text, texts};

/// The most that the program needs on its volume.
const PROGRAM_SIZE: &str = "32Mi";

/// The edits that wrap the job of a pod.
pub(crate) fn edits(
    pod: &Pod<'_>,
    job: &Cursor<'_>,
    settings: &Settings,
    options: &Options,
) -> Result<Vec<Edit>, Problem> {
    let mut insertion = Insertion::default();
    let what = format!("container {:?}", name(job));
    insertion.edits.push(command(job, &what, settings)?);
    insertion.item(job, "volumeMounts", sidecar::mount(true))?;
    let mut container = vec![
        ("name".to_owned(), text(SIDECAR)),
        ("image".to_owned(), text(&options.image)),
        ("imagePullPolicy".to_owned(), text(options.pull_policy.as_str())),
        ("args".to_owned(), texts(&["install", FOLDER])),
    ];
    let resources = sidecar::resources(pod, false)?;
    container.extend(resources.map(|resources| ("resources".to_owned(), resources)));
    container.push(("securityContext".to_owned(), sidecar::security_context(pod, None)?));
    container.push(("volumeMounts".to_owned(), Value::List(vec![sidecar::mount(false)])));
    insertion.item(&pod.spec, "initContainers", Value::Map(container))?;
    insertion.item(&pod.spec, "volumes", sidecar::volume(PROGRAM_SIZE))?;
    insertion.mark("wrapped", &pod.metadata)
}

/// The edit that puts the sidecar before a command.
pub(crate) fn command(job: &Cursor<'_>, what: &str, settings: &Settings) -> Result<Edit, Problem> {
    let field = job.field_of("command");
    let Some(command) =
        job.get("command")?.filter(|_| !job.list("command").is_ok_and(|all| all.is_empty()))
    else {
        let cause = format!("{what} has no command, and its image's is not known here");
        let advice = "add the command that its image has as ENTRYPOINT (docker image inspect shows it), \
                      for example command: [python, train.py]";
        return Err(Problem::new(field, cause, advice));
    };
    job.list("command")?;
    let mut words = vec![PROGRAM.to_owned(), "exec".to_owned()];
    if job.scalar("tty")? == Some("true") {
        words.push("--tty".to_owned());
    }
    words.extend(settings.options.iter().cloned());
    words.push("--".to_owned());
    let items = words.into_iter().map(Value::Text).collect();
    Ok(Edit::First { list: command.own()?, items })
}

/// The mount of the program's volume where it comes from an image.
pub(crate) fn image_volume(options: &Options) -> Value {
    let image =
        [("reference", text(&options.image)), ("pullPolicy", text(options.pull_policy.as_str()))];
    map([("name", text(SIDECAR)), ("image", map(image))])
}

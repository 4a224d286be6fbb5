use super::super::outcome::example::{Simulated, disturb};
use super::super::report::files;
use super::*;

/// A bench's folder as `paceline bench` leaves it.
fn results(at: &Path) -> PathBuf {
    results_of(at, &Simulated::bench(2))
}

fn results_of(at: &Path, simulated: &Simulated) -> PathBuf {
    let folder = at.join("R-FC3");
    for (name, text) in files(&simulated.analyse(), &simulated.observed()).unwrap() {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn page_has_tables_claims_and_existing_pictures() {
    let at = tempfile::tempdir().unwrap();
    let output = at.path().join("EXPERIMENTS.md");
    write(&[results(at.path())], &output, Some("abc123")).unwrap();
    let text = fs::read_to_string(&output).unwrap();
    for part in [
        "# The papers' experiments",
        "commit abc123",
        "## R-FC3",
        "| R-FC3      | flowcon-published |",
        "The paper's claims",
        "FlowCon, Table 2",
        "Prediction, fitted to the solo runs and those of none only",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let pictures = text.lines().filter_map(|line| line.split_once("](")?.1.strip_suffix(')'));
    let pictures: Vec<&str> = pictures.collect();
    assert!(pictures.len() >= 5, "{pictures:?}");
    for picture in pictures {
        let svg = fs::read_to_string(at.path().join(picture)).unwrap();
        assert!(svg.starts_with("<svg xmlns"), "{picture}");
    }
}

#[test]
fn page_marks_figures_of_disturbed_runs() {
    let at = tempfile::tempdir().unwrap();
    let output = at.path().join("EXPERIMENTS.md");
    let mut simulated = Simulated::bench(2);
    disturb(&mut simulated.runs, "flowcon-published", None);
    write(&[results_of(at.path(), &simulated)], &output, None).unwrap();
    let text = fs::read_to_string(&output).unwrap();
    assert!(text.contains("\n\\* disturbed: other work took 51 % of the machine"), "{text}");
    let row = text.lines().find(|line| line.contains("| flowcon-published |")).unwrap();
    assert!(row.contains(" %*)") && row.contains("not judged"), "{row}");
}

#[test]
fn folder_without_a_result_is_named() {
    let at = tempfile::tempdir().unwrap();
    let error = write(&[at.path().to_owned()], &at.path().join("x.md"), None).unwrap_err();
    assert!(error.is::<BadUsage>() && error.to_string().contains("result.json"), "{error}");
    fs::write(at.path().join(RESULT), "{}").unwrap();
    let output = at.path().join("x.md");
    let both = [at.path().to_owned(), results(at.path())];
    let error = write(&both, &output, None).unwrap_err();
    assert!(error.to_string().contains("missing field"), "{error}");
    assert!(fs::read_to_string(&output).unwrap().contains("## R-FC3"), "the other is written");
}

#[test]
fn pictures_of_earlier_pages_are_not_shown_again() {
    let at = tempfile::tempdir().unwrap();
    let (folder, output) = (results(at.path()), at.path().join("EXPERIMENTS.md"));
    write(std::slice::from_ref(&folder), &output, None).unwrap();
    let others = at.path().join("experiments/R-FC3/drawing.svg");
    fs::write(&others, "<svg>another program's</svg>").unwrap();
    clear(&folder.join(PICTURES)).unwrap();
    write(&[folder], &output, None).unwrap();
    let text = fs::read_to_string(&output).unwrap();
    assert!(!text.contains(".svg"), "{text}");
    assert!(others.exists());
}

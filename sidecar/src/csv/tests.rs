use std::fs::{self, OpenOptions};
use std::io::Write;

use paceline_lines::observation::{Phase, Span};
use proptest::prelude::*;

use super::*;

/// A short text for a row: `step/epoch` and the losses.
fn brief(found: &Observation) -> String {
    let number = |number: Option<String>| number.unwrap_or("-".to_owned());
    let step = number(found.step.map(|step| step.to_string()));
    let epoch = number(found.epoch.map(|epoch| epoch.to_string()));
    let losses = found.losses.iter().map(|loss| format!(" {}={}", loss.name, loss.value));
    format!("{step}/{epoch}{}", losses.collect::<String>())
}

fn read(text: &str) -> Vec<Observation> {
    let mut found = Vec::new();
    Table::new(Seen::default()).feed(text.as_bytes(), &mut |row| found.push(row));
    found
}

fn briefs(text: &str) -> Vec<String> {
    read(text).iter().map(brief).collect()
}

/// The kinds of the losses in the first row.
fn kinds(text: &str) -> Vec<(Phase, Span)> {
    read(text)[0].losses.iter().map(|loss| (loss.phase, loss.span)).collect()
}

const LIGHTNING: &str = "epoch,step,train_loss,val_loss\r\n0,4,0.5,\r\n0,9,0.25,\r\n0,9,,0.75\r\n";

#[test]
fn lightning_leaves_cells_blank() {
    let expected = ["4/0 train_loss=0.5", "9/0 train_loss=0.25", "9/0 val_loss=0.75"];
    assert_eq!(briefs(LIGHTNING), expected);
    assert_eq!(kinds(LIGHTNING), [(Phase::Train, Span::Step)]);
}

#[test]
fn keras_writes_a_row_for_each_epoch() {
    let text = "epoch,accuracy,loss,val_loss\n0,0.5,2.5,NA\n1,0.75,nan,\"1.5\"\n";
    assert_eq!(briefs(text), ["-/0 loss=2.5", "-/1 loss=NaN val_loss=1.5"]);
    assert_eq!(kinds(text), [(Phase::Train, Span::Epoch)]);
}

#[test]
fn fastai_writes_a_moving_mean_and_may_append() {
    let text = "epoch,train_loss,valid_loss,accuracy,time\n0,0.7,0.5,0.81,00:12\n";
    assert_eq!(briefs(text), ["-/0 train_loss=0.7 valid_loss=0.5"]);
    assert_eq!(kinds(text), [(Phase::Train, Span::Interval), (Phase::Validation, Span::Epoch)]);
    let again = [text, "epoch,valid_loss,train_loss,time\n0,3,4,00:10\n"].concat();
    assert_eq!(briefs(&again)[1..], ["-/0 valid_loss=3 train_loss=4"]);
}

#[test]
fn other_delimiters_quotes_and_marks_are_read() {
    assert_eq!(briefs("\u{feff}step;loss\n1;0,5\n2;1.5\n"), ["1/- loss=0.5", "2/- loss=1.5"]);
    assert_eq!(briefs("step\tloss, total\n1\t0.5\n"), ["1/- loss, total=0.5"]);
    assert_eq!(
        briefs("\"a;b;c;d\",\"step\",\"loss\"\n\"x\ny\",1.0,.5\n"),
        ["1/- loss=.5".replace(".5", "0.5")]
    );
    assert!(briefs(&"\n".repeat(100_000)).is_empty());
    assert_eq!(briefs("\r\n\nloss\n0.5\n\n1\n"), ["-/- loss=0.5", "-/- loss=1"]);
}

#[test]
fn counters_and_times_are_read() {
    let row = &read("epoch,batch,batch_time,wall_time,loss\n1,7,0.25,1.7e9,2\n")[0];
    assert_eq!((row.step, row.step_in_epoch, row.epoch), (Some(7), true, Some(1.0)));
    assert_eq!((row.batch_seconds, row.at), (Some(0.25), Some(1.7e9)));
    let row = &read("global_step,batch,steps_per_second\n70,7,4\n")[0];
    assert_eq!((row.step, row.step_in_epoch, row.batch_seconds), (Some(70), false, Some(0.25)));
}

#[test]
fn cells_without_a_number_are_ignored() {
    assert_eq!(
        briefs("step,loss\n1,None\n2,\"[1, 2]\"\n,\n-3,1\nx,y\n"),
        ["1/-", "2/-", "-/- loss=1"]
    );
    assert_eq!(briefs("name,size\na,1\n"), [""; 0]);
    assert_eq!(briefs("1,2\n3,4\n"), [""; 0]);
}

#[test]
fn long_rows_and_endless_headers_cost_no_memory() {
    let mut table = Table::new(Seen::default());
    let mut count = 0;
    let mut feed = |table: &mut Table, text: &str| table.feed(text.as_bytes(), &mut |_| count += 1);
    feed(&mut table, "step,loss\n1,2\n");
    for _ in 0..100 {
        feed(&mut table, &"x".repeat(10_000));
    }
    feed(&mut table, "\n2,3\n");
    feed(&mut table, &"1,".repeat(5000));
    feed(&mut table, "\n3,4\n");
    assert_eq!(table.counts(), table::Counts { new: 3, malformed: 2, ..Default::default() });
    table.restart();
    for _ in 0..100 {
        feed(&mut table, &"x".repeat(10_000));
    }
    feed(&mut table, "\n2,3\n");
    assert_eq!((table.counts().malformed, count), (3, 3));
}

/// A file and its reader.
struct File {
    folder: tempfile::TempDir,
    reader: Reader,
}

impl File {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let reader = Reader::new(folder.path().join("metrics.csv"));
        Self { folder, reader }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("metrics.csv")
    }

    fn append(&self, text: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(self.path()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).unwrap();
    }

    fn read(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        while self.reader.poll(&mut |row| found.push(brief(&row))).unwrap().more {}
        found
    }

    fn restart(&mut self) {
        let seen = serde_json::to_string(self.reader.seen()).unwrap();
        self.reader = Reader::resume(self.path(), serde_json::from_str(&seen).unwrap());
    }
}

#[test]
fn row_is_read_once_it_is_complete() {
    let mut file = File::new();
    assert!(file.read().is_empty());
    for piece in ["step,lo", "ss\r\n1,0.", "5", "\r"] {
        file.append(piece);
        assert_eq!(file.read(), if piece == "\r" { vec!["1/- loss=0.5"] } else { vec![] });
    }
    file.append("\n2,1\r\n");
    assert_eq!(file.read(), ["2/- loss=1"]);
}

#[test]
fn rewritten_file_with_more_columns_is_reported_once() {
    let mut file = File::new();
    file.write("epoch,step,train_loss\r\n0,4,0.5\r\n0,9,0.25\r\n");
    assert_eq!(file.read().len(), 2);
    // In place, as Lightning does.
    file.write(LIGHTNING);
    assert_eq!(file.read(), ["9/0 val_loss=0.75"]);
    // Deleted and rewritten with another column order; read while only half of it exists.
    fs::remove_file(file.path()).unwrap();
    assert!(file.read().is_empty());
    file.write("a_loss,epoch,step,train_loss,val_loss\r\n,0,4,0.5,\r\n,0,9");
    assert!(file.read().is_empty());
    file.append(",0.25,\r\n,0,9,,0.75\r\n7,1,10,,\r\n");
    assert_eq!(file.read(), ["10/1 a_loss=7"]);
    let rows = file.reader.counts().rows;
    assert_eq!((rows.new, rows.repeated, rows.replacements), (4, 5, 0));
}

#[test]
fn another_run_in_the_same_file_is_read_from_the_first_change() {
    let mut file = File::new();
    file.write("epoch,loss\n0,3\n1,2\n2,1\n");
    assert_eq!(file.read().len(), 3);
    file.write("epoch,loss\n0,5\n");
    assert_eq!(file.read(), ["-/0 loss=5"]);
    file.append("1,2\n");
    assert_eq!(file.read(), ["-/1 loss=2"]);
    assert_eq!(file.reader.counts().rows.replacements, 1);
}

#[test]
fn new_sidecar_resumes_where_the_old_one_stopped() {
    let mut file = File::new();
    file.append("epoch,loss\n0,3\n1,");
    assert_eq!(file.read(), ["-/0 loss=3"]);
    file.restart();
    assert!(file.read().is_empty());
    file.append("2\n");
    file.restart();
    assert_eq!(file.read(), ["-/1 loss=2"]);
    file.write("epoch,loss\n0,4\n");
    file.restart();
    assert_eq!(file.read(), ["-/0 loss=4"]);
}

proptest! {
    #[test]
    fn any_split_gives_the_same(
        rows in prop::collection::vec((any::<u32>(), any::<f64>(), "[a-z\",;\n]{0,8}"), 0..8),
        pieces in prop::collection::vec(0_usize..20, 0..60),
        crlf in any::<bool>(),
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let mut text = format!("step,loss,note{end}");
        for (step, loss, note) in &rows {
            let note = note.replace('"', "\"\"");
            text = [text, format!("{step},{loss},\"{note}\"{end}")].concat();
        }
        let whole = read(&text);
        prop_assert_eq!(whole.len(), rows.len());
        for (found, (step, loss, _)) in whole.iter().zip(&rows) {
            prop_assert_eq!(found.step, Some(u64::from(*step)));
            prop_assert_eq!(found.losses[0].value.to_string(), loss.to_string());
        }
        let mut table = Table::new(Seen::default());
        let mut found = Vec::new();
        let mut rest = text.as_bytes();
        for size in pieces.into_iter().chain([usize::MAX]) {
            let (piece, left) = rest.split_at(size.min(rest.len()));
            table.feed(piece, &mut |row| found.push(brief(&row)));
            rest = left;
        }
        prop_assert_eq!(found, whole.iter().map(brief).collect::<Vec<_>>());
    }

    #[test]
    fn random_bytes_do_not_panic(
        noise in prop::collection::vec(prop_oneof![any::<u8>(), Just(b','), Just(b'\n'), Just(b'"')], 0..500),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut table = Table::new(Seen::default());
        let (a, b) = noise.split_at(cut.index(noise.len() + 1));
        table.feed(b"epoch,loss\n", &mut |_| ());
        table.feed(a, &mut |_| ());
        table.restart();
        table.feed(b, &mut |_| ());
        prop_assert!(table.counts().new <= 500);
    }
}

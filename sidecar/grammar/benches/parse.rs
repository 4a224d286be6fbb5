//! The parsing speed of one core, from bytes to observations.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use paceline_grammar::Reader;
use paceline_lines::terminal::LineSplitter;

fn main() {
    divan::main();
}

/// Bytes read of each kind.
const SIZE: usize = 16 << 20;
/// Maximum size of one read from a pipe or a file.
const READ: usize = 64 << 10;

#[divan::bench]
fn pytorch_lines(bencher: Bencher<'_, '_>) {
    read(bencher, |step| {
        let percent = step / 600;
        format!("Train Epoch: 1 [{step}/60000 ({percent}%)]\tLoss: {}\n", loss(step))
    });
}

#[divan::bench]
fn imagenet_lines(bencher: Bencher<'_, '_>) {
    read(bencher, |step| {
        let loss = loss(step);
        format!(
            "Epoch: [0][{step:5}/60000]\tTime  0.312 ( 2.218)\tData  0.001 ( 1.950)\tLoss {loss} ({loss})\tAcc@1   0.39 (  0.20)\n"
        )
    });
}

#[divan::bench]
fn json_lines(bencher: Bencher<'_, '_>) {
    read(bencher, |step| {
        format!(
            "{{\"step\": {step}, \"epoch\": 1, \"loss\": {}, \"lr\": 0.0003, \"grad_norm\": 1.25, \"tokens\": 8192}}\n",
            loss(step)
        )
    });
}

#[divan::bench]
fn hugging_face_lines(bencher: Bencher<'_, '_>) {
    read(bencher, |step| {
        format!(
            "{{'loss': '{}', 'grad_norm': '10.73', 'learning_rate': '4.063e-05', 'epoch': '{}.5'}}\n",
            loss(step),
            step % 100
        )
    });
}

#[divan::bench]
fn lines_of_keys_and_values(bencher: Bencher<'_, '_>) {
    read(bencher, |step| format!("step {step} | my loss {0} | loss: {0} | lr: 1e-4\n", loss(step)));
}

#[divan::bench]
fn lines_without_a_loss(bencher: Bencher<'_, '_>) {
    read(bencher, |step| {
        format!(
            "2026-01-01 10:00:00,123 - loader - INFO - shard {step} of the data is on disk now\n"
        )
    });
}

#[divan::bench]
fn tqdm_frames(bencher: Bencher<'_, '_>) {
    read(bencher, |step| {
        let (n, loss) = (step % 60_000, loss(step));
        format!(
            "\rEpoch 1/3:  33%|███▎      | {n}/60000 [00:00<00:01, 19.65it/s, loss={loss}, lr=0.001]"
        )
    });
}

#[divan::bench]
fn keras_frames(bencher: Bencher<'_, '_>) {
    read(bencher, |step| {
        let back = "\u{8}".repeat(73);
        let head = if step % 60_000 == 0 { "\nEpoch 1/2\n" } else { "" };
        let (n, loss) = (step % 60_000 + 1, loss(step));
        format!(
            "{head}\r\u{1b}[1m{n}/60000\u{1b}[0m \u{1b}[32m━━━━━━━━━━\u{1b}[0m\u{1b}[37m━━━━━━━━━━\u{1b}[0m \u{1b}[1m6s\u{1b}[0m 63ms/step - accuracy: 0.5000 - loss: {loss}{back}"
        )
    });
}

/// Only the line splitter.
#[divan::bench]
fn only_splitting_lines(bencher: Bencher<'_, '_>) {
    let text = text(|step| format!("Train Epoch: 1 [{step}/60000 (1%)]\tLoss: {}\n", loss(step)));
    bencher.counter(BytesCount::new(text.len())).bench_local(|| {
        let mut splitter = LineSplitter::new();
        let mut lines = 0_u64;
        for piece in text.chunks(READ) {
            splitter.feed(piece, &mut |line| lines += u64::from(!line.text.is_empty()));
        }
        lines
    });
}

fn read(bencher: Bencher<'_, '_>, line: impl Fn(usize) -> String) {
    let text = text(line);
    bencher.counter(BytesCount::new(text.len())).bench_local(|| {
        let mut reader = Reader::default();
        for piece in text.chunks(READ) {
            reader.feed(piece, &mut |found| {
                black_box(found);
            });
        }
    });
}

fn text(line: impl Fn(usize) -> String) -> Vec<u8> {
    let mut text = String::with_capacity(SIZE + READ);
    for step in 0.. {
        if text.len() >= SIZE {
            break;
        }
        text.push_str(&line(step));
    }
    text.into_bytes()
}

fn loss(step: usize) -> String {
    format!("{}.{:04}", step % 3, step * 7919 % 10_000)
}

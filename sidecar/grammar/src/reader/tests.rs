use super::*;
use crate::testing::words;

fn read_all(pieces: &[&[u8]]) -> Vec<String> {
    let mut texts = Vec::new();
    let mut reader = Reader::default();
    for piece in pieces {
        reader.feed(piece, &mut |found| texts.push(words(found)));
    }
    reader.finish(&mut |found| texts.push(words(found)));
    texts
}

const KERAS: &str = "Epoch 1/1\n\r\u{1b}[1m1/2\u{1b}[0m \u{1b}[32m━━\u{1b}[0m\u{1b}[37m━━\u{1b}[0m \u{1b}[1m0s\u{1b}[0m 5ms/step - loss: 0.8676\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\r\u{1b}[1m2/2\u{1b}[0m \u{1b}[32m━━━━\u{1b}[0m\u{1b}[37m\u{1b}[0m \u{1b}[1m0s\u{1b}[0m 5ms/step - loss: 0.7000\n";

const EXPECTED: [&str; 2] = [
    "epoch 1/1, batch 1/2, 0.005 s, loss=0.8676 EpochSoFar",
    "epoch 1/1, batch 2/2, 0.005 s, loss=0.7 EpochSoFar",
];

#[test]
fn bar_with_control_bytes_is_read() {
    assert_eq!(read_all(&[KERAS.as_bytes()]), EXPECTED);
    let single: Vec<&[u8]> = KERAS.as_bytes().chunks(1).collect();
    assert_eq!(read_all(&single), EXPECTED);
}

#[test]
fn bar_in_a_container_log_is_read() {
    let quoted: Vec<String> = KERAS
        .split_inclusive("ms/step")
        .map(|piece| {
            let piece = serde_json::to_string(piece).unwrap();
            format!("{{\"log\":{piece},\"stream\":\"stdout\",\"time\":\"2026-01-01T10:00:00Z\"}}\n")
        })
        .collect();
    let at = EXPECTED.map(|line| line.replace(", loss", ", at 1767261600, loss"));
    assert_eq!(read_all(&[quoted.concat().as_bytes()]), at);
    let time = "2026-01-01T10:00:00Z stdout";
    let cri = format!("{time} P Train Epoch: 1 [0/60 (0%)]\n{time} F \tLoss: 0.5\n");
    assert_eq!(read_all(&[cri.as_bytes()]), ["epoch 1, sample 0/60, at 1767261600, Loss=0.5 Step"]);
}

#[test]
fn last_frame_of_a_quiet_bar_is_read_once() {
    let mut texts = Vec::new();
    let mut reader = Reader::default();
    let last = KERAS.rfind('\n').unwrap();
    reader.feed(&KERAS.as_bytes()[..last], &mut |found| texts.push(words(found)));
    reader.flush(&mut |found| texts.push(words(found)));
    assert_eq!(texts, EXPECTED);
    reader.feed(b"\n", &mut |found| texts.push(words(found)));
    assert_eq!(texts, EXPECTED);
}

#[test]
fn two_outputs_are_read_together() {
    let mut texts = Vec::new();
    let mut reader = Reader::default();
    let mut feed = |stream, text: &str| {
        reader.feed_from(stream, text.as_bytes(), &mut |found| texts.push(words(found)));
    };
    feed(Stream::Stderr, "\r  0%|          | 0/20 [00:00<?, ?it/s]");
    feed(Stream::Stdout, "{'loss': '3', 'grad_norm': '1', ");
    feed(Stream::Stderr, "\r                              \r");
    feed(Stream::Stdout, "'epoch': '0.5'}\n");
    feed(Stream::Stderr, "\r 50%|█████     | 10/20 [00:01<00:01, 10.00it/s]\r");
    reader.flush(&mut |found| texts.push(words(found)));
    let expected = ["step 0/20", "epoch 0.5, step 10/20, 0.1 s, loss=3 Interval"];
    assert_eq!(texts, expected);
}

#[test]
fn cut_line_is_not_read() {
    let mut line = b"loss: 0.5 ".to_vec();
    line.resize(paceline_lines::terminal::MAX_LINE_LEN + 1, b' ');
    line.push(b'\n');
    let mut reader = Reader::default();
    reader.feed(&line, &mut |_| panic!("it was cut"));
    assert_eq!(reader.cut(), 1);
}

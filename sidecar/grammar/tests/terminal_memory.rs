//! Memory stays bounded, and common lines are read without allocating.

use allocation_counter::measure;
use paceline_grammar::Reader;

/// Upper bound of a reader's memory in bytes.
const BOUND: u64 = 2 << 20;

fn feed(reader: &mut Reader, piece: &[u8], times: usize) -> u64 {
    let mut observations = 0;
    for _ in 0..times {
        reader.feed(piece, &mut |_| observations += 1);
    }
    observations
}

#[test]
fn endless_line_needs_bounded_memory() {
    for piece in [vec![b'x'; 1 << 20], b"\x1b[1m\x08".repeat(1 << 16), b"{\"a\":".repeat(1 << 16)] {
        let mut reader = Reader::default();
        let used = measure(|| {
            feed(&mut reader, &piece, 4);
        });
        assert!(used.bytes_max < BOUND, "{used:?}");
    }
}

#[test]
fn many_names_need_bounded_memory() {
    let mut reader = Reader::default();
    let used = measure(|| {
        for index in 0..20_000 {
            let lines = format!(
                "{{\"step\": 1, \"loss\": 1, \"loss_{index}x\": 1}}\n\
                 {{'loss': 1, 'loss_{index}x': 1, 'epoch': 1}}\n\
                 bar{index}x: 50%|##| 1/2 [00:01<00:01, 1.0it/s, loss_{index}x=1]\n\
                 loss_{index}x: 5, step: 1\n\
                 epoch train_loss c{index}\n",
            );
            reader.feed(lines.as_bytes(), &mut |_| {});
        }
    });
    assert!(used.bytes_max < BOUND && used.bytes_current < 1 << 20, "{used:?}");
}

#[test]
fn lines_of_a_known_shape_are_read_without_allocating() {
    for line in [
        "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.282550\n",
        "Epoch: [0][   1/5005]\tTime  4.123 ( 4.123)\tData  3.900 ( 3.900)\tLoss 7.01e+00 (7.01e+00)\n",
        "{\"step\": 5, \"epoch\": 1, \"loss\": 0.5, \"lr\": 1e-4}\n",
        "{'loss': '0.5', 'grad_norm': '10.73', 'learning_rate': '4e-05', 'epoch': '0.5', 'step': 5}\n",
        "\rEpoch 1/3:   5%|▌         | 2/40 [00:00<00:01, 19.65it/s, loss=1.15, lr=0.001]\r",
        "2026-01-01 10:00:00,123 - loader - INFO - shard 5 of the data is on disk now\n",
    ] {
        let mut reader = Reader::default();
        let lines = line.repeat(100);
        feed(&mut reader, lines.as_bytes(), 1);
        let used = measure(|| {
            feed(&mut reader, lines.as_bytes(), 10);
        });
        assert_eq!(used.count_total, 0, "{line}");
    }
}

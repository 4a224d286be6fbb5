//! Any bytes are read without a panic, and splitting them makes no difference.

use paceline_grammar::Reader;
use paceline_lines::observation::Observation;
use proptest::prelude::*;

/// Pieces of all grammars, whole and broken.
const TOKENS: [&str; 89] = [
    "\n",
    "\r",
    "\r\n",
    "\t",
    " ",
    "\u{8}\u{8}\u{8}",
    "\u{1b}[1m",
    "\u{1b}[A",
    "\0",
    "1",
    "0",
    "5/10",
    "0.5",
    "1e-5",
    "nan",
    "inf",
    "2,345",
    "-",
    ".",
    "%",
    "|",
    "━━━━",
    "█▌",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "{'",
    "{\"",
    "'",
    "\"",
    ": ",
    "=",
    ", ",
    " - ",
    "loss",
    "Loss: ",
    "val_loss: ",
    "'loss': ",
    "\"loss\": ",
    "'epoch': ",
    "\"step\": ",
    "Epoch 1/3\n",
    "Epoch: [0][",
    "Train Epoch: 1 [64/600 (10%)]\tLoss: ",
    "Test: [1/2]\tTime 1 (1)\tLoss 1 (1)\n",
    "| epoch   1 |",
    "ms/batch 5 |",
    "[0/5][1/9] Loss_D: 1 Loss_G: 2\n",
    "===> Epoch[1](1/5): Loss: ",
    "STEP: 3\n",
    "loss: 0.5\n",
    "iter 5: loss 1, time 5ms\n",
    "1/5 (epoch 0.1), train_loss = 2, ",
    "time/batch = 1s\n",
    " iteration 5/ 10 | elapsed time per iteration (ms): 5 | lm loss: 1 |\n",
    "step: 5 loss: 1 grad_norm: 1\n",
    "1/8 ━━━━ 6s 5ms/step - loss: 0.5000",
    "8/8 - 2s - 5ms/step - loss: 1 - val_loss: 2\n",
    "7/Unknown 1s 5ms/step - loss: 1",
    "Epoch 1:  5%|▌ | 2/40 [00:00<00:01, 19.65it/s, loss=1.15]",
    "12it [00:05, 2.0it/s, loss=1]",
    "100%|██| 5/5 [00:01<00:00,  1.0s/it]",
    "  0%|          | 0/3 [00:00<?, ?it/s]",
    "Epochs:  50%|##  | 1/2 [00:01<00:01,  1.00s/it]",
    "Epoch 0/1 ━━╸━━ 1/4 0:00:01 • -:--:-- 4.00it/s train_loss: 2.5",
    "Num Epochs = 3\n",
    "max_steps: 100, ",
    "epoch     train_loss  valid_loss  time\n",
    "0   0.5   0.4   00:12\n",
    "Epoch 1/2 : |██--| 40.00% [2/5 00:00<00:00 0.5123]",
    "[100] loss=2.3, x=1\n",
    "[0]\ttrain-logloss:0.6\teval-auc:1\n",
    "[10]\tvalid_0's l2: 0.2\n",
    "Epoch[1] Batch [70]\tSpeed: 1 samples/sec\tce=1\n",
    "ep 5 train, step 3, ce 1, 0.8 sec/step\n",
    "{'loss': 1, 'grad_norm': 2, 'epoch': 1}\n",
    "{\"step\": 1, \"a\": {\"loss\": 2}}\n",
    "2026-01-01T10:00:00Z stdout P ",
    "2026-01-01T10:00:00Z stderr F ",
    "{\"log\":\"1/8 \\r\",\"stream\":\"stdout\",\"time\":\"x\"}\n",
    "2026-01-01 10:00:00,123 - INFO - ",
    "[rank3]: ",
    "[default0]:",
    "(w pid=5) ",
    "I0519 16:28:41.4 12 a.go:1] ",
    "é\u{2212}",
];

fn soup() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(TOKENS.to_vec()).prop_map(|text| text.as_bytes().to_vec());
    let bytes = prop::collection::vec(any::<u8>(), 0..6);
    prop::collection::vec(prop_oneof![12 => token, 1 => bytes], 0..60).prop_map(|all| all.concat())
}

fn read(pieces: &[&[u8]], flush: bool) -> Vec<Observation> {
    let mut found = Vec::new();
    let mut reader = Reader::default();
    for piece in pieces {
        reader.feed(piece, &mut |observation| found.push(observation.clone()));
        if flush {
            reader.flush(&mut |observation| found.push(observation.clone()));
        }
    }
    reader.finish(&mut |observation| found.push(observation.clone()));
    if let Some(matched) = reader.detector().matched() {
        assert!((0.0..=1.0).contains(&matched.confidence), "{matched:?}");
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn splitting_the_stream_changes_no_observation(bytes in soup(), size in 1..40_usize) {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        // NaN never equals itself, so the debug texts are compared.
        let (whole, split) = (read(&[&bytes], false), read(&pieces, false));
        prop_assert_eq!(format!("{:?}", whole), format!("{:?}", split));
        for observation in &whole {
            prop_assert!(observation.losses.len() <= 16);
            prop_assert!(observation.batch_seconds.is_none_or(|seconds| seconds >= 0.0 && seconds.is_finite()));
            prop_assert!(observation.epoch.is_none_or(f64::is_finite));
        }
    }

    #[test]
    fn flush_at_any_time_does_not_panic(bytes in soup(), size in 1..40_usize) {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        read(&pieces, true);
    }
}

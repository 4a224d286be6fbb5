use paceline_lines::terminal::End::{self, Flush, Newline, Return};

use crate::testing::{check, read_all};

fn frames(lines: &[(&'static str, End)]) -> Vec<String> {
    read_all(lines)
}

#[test]
fn bars_of_version_3_are_read() {
    let lines = [
        ("Epoch 1/2", Newline),
        ("1/3 ━━━━━━━━━━━━━━━━━━━━ 6s 906ms/step - accuracy: 0.5000 - loss: 0.8676", Return),
        ("2/3 ━━━━━━━━━━━━━━━━━━━━ 0s 63ms/step - accuracy: 0.4453 - loss: 8.8360e-04", Return),
        ("3/3 ━━━━━━━━━━━━━━━━━━━━ 0s 63ms/step - accuracy: 0.4785 - loss: 0.8494", Return),
        (
            "3/3 ━━━━━━━━━━━━━━━━━━━━ 2s 132ms/step - accuracy: 0.4785 - loss: 0.8494 - val_accuracy: 0.3750 - val_loss: 0.8917",
            Newline,
        ),
        ("Epoch 2/2", Newline),
        ("1/3 ━━━━━━━━━━━━━━━━━━━━ 0s 500us/step - accuracy: 0.5000 - loss: nan", Return),
        ("3/3 ━━━━━━━━━━━━━━━━━━━━ 0s 2s/step - accuracy: 0.5000 - loss: 0.7000", Newline),
    ];
    let expected = [
        "epoch 1/2, batch 1/3, 0.906 s, loss=0.8676 EpochSoFar",
        "epoch 1/2, batch 2/3, 0.063 s, loss=0.0008836 EpochSoFar",
        "epoch 1/2, batch 3/3, 0.063 s, loss=0.8494 EpochSoFar",
        "epoch 1/2, batch 3/3, val_loss=0.8917 Validation Epoch",
        "epoch 2/2, batch 1/3, 0.0005 s, loss=NaN EpochSoFar",
        "epoch 2/2, batch 3/3, 2 s, loss=0.7 EpochSoFar",
    ];
    assert_eq!(frames(&lines), expected);
}

#[test]
fn line_of_a_callback_before_the_last_frame_ends_no_epoch() {
    let lines = [
        ("Epoch 1/2", Newline),
        ("1/Unknown - 23s 23s/step - loss: 9.5000 - mae: 1.5000WARNING:root:slow", Newline),
        ("2/Unknown - 24s 12s/step - loss: 8.5000", Return),
        ("90/Unknown - 310s 537ms/step - loss: 7.5000", Newline),
        ("Epoch 00001: saving model to a.tf", Newline),
        (
            "90/90 [==============================] - 343s 596ms/step - loss: 7.5000 - val_loss: 6.5000",
            Newline,
        ),
        ("Epoch 2/2", Newline),
        ("89/90 [============================>.] - ETA: 0s - loss: 5.5000", Return),
        ("90/90 [==============================] - ETA: 0s - loss: 5.2500", Newline),
        ("Epoch 00002: saving model to b.tf", Newline),
        (
            "90/90 [==============================] - 335s 581ms/step - loss: 5.2500 - val_loss: 5.1250",
            Newline,
        ),
    ];
    let expected = [
        "epoch 1/2, batch 1, 23 s, loss=9.5 EpochSoFar",
        "epoch 1/2, batch 2, 12 s, loss=8.5 EpochSoFar",
        "epoch 1/2, batch 90, 0.537 s, loss=7.5 EpochSoFar",
        "epoch 1/2, batch 90/90, val_loss=6.5 Validation Epoch",
        "epoch 2/2, batch 89/90, loss=5.5 EpochSoFar",
        "epoch 2/2, batch 90/90, loss=5.25 EpochSoFar",
        "epoch 2/2, batch 90/90, val_loss=5.125 Validation Epoch",
    ];
    assert_eq!(frames(&lines), expected);
}

#[test]
fn evaluate_is_a_test_loss_and_predict_is_ignored() {
    let lines = [
        ("1/20 ━━━━━━━━━━━━━━━━━━━━ 6s 328ms/step - accuracy: 0.4062 - loss: 0.8260", Return),
        ("20/20 ━━━━━━━━━━━━━━━━━━━━ 0s 670us/step - accuracy: 0.5312 - loss: 0.7651", Newline),
        ("1/9 ━━━━━━━━━━━━━━━━━━━━ 6s 328ms/step", Return),
        ("9/9 ━━━━━━━━━━━━━━━━━━━━ 0s 328ms/step", Newline),
        ("Epoch 1/1", Newline),
        ("2/2 - 1s - 5ms/step - accuracy: 0.5312 - loss: 0.5000", Newline),
        ("20/20 - 0s - 20ms/step - accuracy: 0.5312 - loss: 0.6000", Newline),
    ];
    let expected = [
        "loss=0.7651 Test Epoch",
        "epoch 1/1, batch 2/2, 0.005 s, loss=0.5 Epoch",
        "epoch 1/1, loss=0.6 Test Epoch",
    ];
    assert_eq!(frames(&lines), expected);
}

#[test]
fn fit_of_one_epoch_is_read_without_a_header() {
    let lines = [
        ("1/2 ━━━━━━━━━━━━━━━━━━━━ 6s 328ms/step - loss: 0.9000", Return),
        ("2/2 ━━━━━━━━━━━━━━━━━━━━ 0s 670us/step - loss: 0.8000 - val_loss: 0.8500", Newline),
        ("5/5 ━━━━━━━━━━━━━━━━━━━━ 0s 670us/step - loss: 0.7900", Newline),
        ("1/2 ━━━━━━━━━━━━━━━━━━━━ 6s 328ms/step - loss: 0.7000", Return),
        ("2/2 ━━━━━━━━━━━━━━━━━━━━ 0s 670us/step - loss: 0.6000 - val_loss: 0.6500", Newline),
    ];
    let expected = [
        "batch 2/2, loss=0.8 EpochSoFar, val_loss=0.85 Validation Epoch",
        "loss=0.79 Test Epoch",
        "batch 1/2, 0.328 s, loss=0.7 EpochSoFar",
        "batch 2/2, loss=0.6 EpochSoFar, val_loss=0.65 Validation Epoch",
    ];
    assert_eq!(frames(&lines), expected);
}

#[test]
fn repeated_bars_without_a_header_are_training() {
    let lines = [
        ("2/2 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step - loss: 0.8000", Newline),
        ("1/2 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step - loss: 0.7000", Return),
        ("2/2 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step - loss: 0.6000", Newline),
        ("Epoch 1/2", Newline),
        ("2/2 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step - loss: 0.5000", Newline),
        ("2/2 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step - loss: 0.4000", Newline),
    ];
    let expected = [
        "loss=0.8 Test Epoch",
        "batch 1/2, 0.005 s, loss=0.7 EpochSoFar",
        "batch 2/2, 0.005 s, loss=0.6 EpochSoFar",
        "epoch 1/2, batch 2/2, 0.005 s, loss=0.5 EpochSoFar",
        "epoch 1/2, loss=0.4 Test Epoch",
    ];
    assert_eq!(frames(&lines), expected);
}

#[test]
fn bars_and_lines_of_older_versions_are_read() {
    let lines = [
        ("Epoch 1/2", Newline),
        (
            " 768/60000 [>.............................] - ETA: 56s - loss: 2.1500 - acc: 0.28",
            Return,
        ),
        (
            "60000/60000 [==============================] - 3s 50us/sample - loss: 0.2000 - acc: 0.9000 - val_loss: 0.1000",
            Newline,
        ),
        ("Epoch 2/2", Newline),
        ("1875/1875 [==============================] - 2s 1ms/step - loss: 0.2900", Newline),
        ("Epoch 1/3", Newline),
        (" - 3s - loss: 0.2500 - acc: 0.9 - val_loss: 0.5000", Newline),
        ("Epoch 2/3", Newline),
        ("1875/1875 - 2s - loss: 0.2000 - accuracy: 0.9100 - 2s/epoch - 1ms/step", Newline),
        ("Epoch 3/3", Newline),
        ("      7/Unknown 1s 20ms/step - loss: 0.1500", Return),
        ("12/12 ━━━━━━━━━━━━━━━━━━━━ 1s 20ms/step - loss: 0.1000", Newline),
    ];
    let expected = [
        "epoch 1/2, batch 768/60000, loss=2.15 EpochSoFar",
        "epoch 1/2, sample 60000/60000, loss=0.2 EpochSoFar, val_loss=0.1 Validation Epoch",
        "epoch 2/2, batch 1875/1875, 0.001 s, loss=0.29 EpochSoFar",
        "epoch 1/3, loss=0.25 Epoch, val_loss=0.5 Validation Epoch",
        "epoch 2/3, batch 1875/1875, 0.001 s, loss=0.2 Epoch",
        "epoch 3/3, batch 7, 0.02 s, loss=0.15 EpochSoFar",
        "epoch 3/3, batch 12/12, 0.02 s, loss=0.1 EpochSoFar",
    ];
    assert_eq!(frames(&lines), expected);
}

#[test]
fn unended_frame_is_read_once_and_only_if_whole() {
    let bar = "1/3 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step - loss: 0.8";
    let whole = "1/3 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step - loss: 0.8676";
    let last = "3/3 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step - loss: 0.5000 - val_loss: 0.6000";
    let lines = [
        ("Epoch 1/1", Newline),
        (bar, Flush),
        (whole, Flush),
        (whole, Return),
        (last, Flush),
        (last, Newline),
    ];
    let expected = [
        "epoch 1/1, batch 1/3, 0.005 s, loss=0.8676 EpochSoFar",
        "epoch 1/1, batch 3/3, loss=0.5 EpochSoFar, val_loss=0.6 Validation Epoch",
    ];
    assert_eq!(frames(&lines), expected);
}

#[test]
fn name_distinguishes_bars_from_lines() {
    let bar = "3/3 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step - loss: 0.5000";
    check("keras bar", true, &[(bar, "loss=0.5 Test Epoch")]);
    let line = "3/3 - 0s - 5ms/step - loss: 0.5000";
    check("keras", true, &[(line, "loss=0.5 Test Epoch"), ("3/3 of the files", "")]);
}

#[test]
fn log_that_begins_within_a_bar_is_one_of_training() {
    let lines = [
        ("803/1000 [=======================>......] - ETA: 3:57 - loss: 1.5000", Return),
        ("804/1000 [=======================>......] - ETA: 3:56 - loss: 1.2500", Return),
        ("1000/1000 [==============================] - 1179s 1s/step - loss: 1.1250", Newline),
    ];
    let expected = [
        "batch 803/1000, loss=1.5 EpochSoFar",
        "batch 804/1000, loss=1.25 EpochSoFar",
        "batch 1000/1000, 1 s, loss=1.125 EpochSoFar",
    ];
    assert_eq!(frames(&lines), expected);
    // One that is seen from its start may be that of an evaluation.
    let lines = [
        (
            "   1/1000 [..............................] - ETA: 9:57 - loss: 1.5000".trim_start(),
            Return,
        ),
        ("1000/1000 [==============================] - 1179s 1s/step - loss: 1.1250", Newline),
    ];
    assert_eq!(frames(&lines), ["loss=1.125 Test Epoch"]);
}

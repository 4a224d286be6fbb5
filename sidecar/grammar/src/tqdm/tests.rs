use paceline_lines::terminal::End::{Flush, Newline, Return};

use crate::testing::{check, read_all};

#[test]
fn each_loss_is_read_once_with_its_step() {
    let frames = [
        ("Epoch 1/3:   0%|          | 0/4 [00:00<?, ?it/s]", Return),
        ("Epoch 1/3:   0%|          | 0/4 [00:00<?, ?it/s, loss=2.3, lr=0.001]", Return),
        ("Epoch 1/3:   0%|          | 0/4 [00:00<?, ?it/s, loss=1.15, lr=0.001]", Return),
        ("Epoch 1/3:  50%|█████     | 2/4 [00:00<00:01, 20.00it/s, loss=1.15, lr=0.001]", Return),
        ("Epoch 1/3:  50%|█████     | 2/4 [00:00<00:01, 20.00it/s, loss=nan, lr=0.001]", Flush),
        ("Epoch 1/3:  50%|█████     | 2/4 [00:00<00:01, 20.00it/s, loss=nan, lr=0.001]", Return),
        ("Epoch 1/3: 100%|██████████| 4/4 [00:00<00:00,  2.00s/it, loss=0.5, lr=0.001]", Return),
        ("Epoch 1/3: 100%|██████████| 4/4 [00:00<00:00,  2.00s/it, loss=0.5, lr=0.001]", Newline),
        ("Epoch 2/3:   0%|          | 0/4 [00:00<?, ?it/s]", Return),
        ("Epoch 2/3:   0%|          | 0/4 [00:00<?, ?it/s, loss=0.4, lr=0.001]", Return),
    ];
    let expected = [
        "epoch 1/3, batch 0/4",
        "epoch 1/3, batch 1/4, loss=2.3 Step",
        "epoch 1/3, batch 2/4, loss=1.15 Step",
        "epoch 1/3, batch 3/4, 0.05 s, loss=NaN Step",
        "epoch 1/3, batch 4/4, 2 s, loss=0.5 Step",
        "epoch 2/3, batch 1/4, loss=0.4 Step",
    ];
    assert_eq!(read_all(&frames), expected);
}

#[test]
fn zero_before_the_first_step_is_not_a_loss() {
    for zero in ["0", "0.0", "0.0000"] {
        let first = format!("Epoch 1:   0%|          | 0/4 [00:00<?, ?it/s, loss={zero}]");
        let frames = [
            (first.as_str(), Return),
            ("Epoch 1:  25%|██▌       | 1/4 [00:01<00:03,  1.00s/it, loss=2.5]", Return),
            ("Epoch 1:  50%|█████     | 2/4 [00:02<00:02,  1.00s/it, loss=0.0]", Return),
        ];
        let expected = [
            "epoch 1, batch 0/4",
            "epoch 1, batch 1/4, 1 s, loss=2.5 Step",
            "epoch 1, batch 2/4, 1 s, loss=0 Step",
        ];
        assert_eq!(read_all(&frames), expected, "{zero}");
    }
}

#[test]
fn epoch_may_stand_beside_the_losses() {
    let frames = [
        ("  0%|          | 0/4 [00:00<?, ?it/s]", Return),
        (" 50%|#####     | 2/4 [00:02<00:02,  1.00s/it, epoch=1/3, avg_epoch_loss=2.5]", Return),
        ("100%|##########| 4/4 [00:04<00:00,  1.00s/it, epoch=1/3, avg_epoch_loss=2]", Newline),
        ("  0%|          | 0/4 [00:00<?, ?it/s]", Return),
        (" 50%|#####     | 2/4 [00:02<00:02,  1.00s/it, epoch=2/3, avg_epoch_loss=1.5]", Return),
    ];
    let expected = [
        "step 0/4",
        "epoch 1/3, batch 2/4, 1 s, avg_epoch_loss=2.5 Epoch",
        "epoch 1/3, batch 4/4, avg_epoch_loss=2 Epoch",
        "epoch 2/3, batch 2/4, 1 s, avg_epoch_loss=1.5 Epoch",
    ];
    assert_eq!(read_all(&frames), expected);
}

#[test]
fn lightning_bars_move_the_counter_first() {
    let frames = [
        (
            "Sanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00, 99.00it/s, loss=9]",
            Return,
        ),
        ("Epoch 0:   0%|          | 0/2 [00:00<?, ?it/s]", Return),
        ("Epoch 0:  50%|█████     | 1/2 [00:00<00:00, 20.00it/s, v_num=0]", Return),
        (
            "Epoch 0:  50%|█████     | 1/2 [00:00<00:00, 20.00it/s, v_num=0, train_loss=3.310]",
            Return,
        ),
        (
            "Epoch 0: 100%|██████████| 2/2 [00:00<00:00, 20.00it/s, v_num=0, train_loss=3.310]",
            Return,
        ),
        (
            "Epoch 0: 100%|██████████| 2/2 [00:00<00:00, 20.00it/s, v_num=0, train_loss=2.090]",
            Newline,
        ),
        ("Validation DataLoader 0:  50%|█████     | 1/2 [00:00<00:00, 99.00it/s]", Newline),
        (
            "Epoch 0: 100%|██████████| 2/2 [00:00<00:00, 20.00it/s, v_num=0, train_loss=2.090, val_loss=0.949]",
            Return,
        ),
        (
            "Epoch 0: 100%|██████████| 2/2 [00:00<00:00, 20.00it/s, v_num=0, train_loss_step=2.090, val_loss=0.949, train_loss_epoch=2.700]",
            Return,
        ),
        (
            "Epoch 1:   0%|          | 0/2 [00:00<?, ?it/s, v_num=0, train_loss_step=2.090, val_loss=0.949, train_loss_epoch=2.700]",
            Return,
        ),
        (
            "Epoch 1:  50%|█████     | 1/2 [00:00<?, 20.00it/s, v_num=0, train_loss_step=1.500, val_loss=0.949, train_loss_epoch=2.700]",
            Return,
        ),
    ];
    let expected = [
        "epoch 0, batch 0/2",
        "epoch 0, batch 1/2, 0.05 s",
        "epoch 0, batch 1/2, 0.05 s, train_loss=3.31 Step",
        "epoch 0, batch 2/2, 0.05 s, train_loss=2.09 Step",
        "epoch 0, batch 2/2, val_loss=0.949 Validation Epoch",
        "epoch 0, batch 2/2, train_loss_epoch=2.7 Epoch",
        "epoch 1, batch 1/2, 0.05 s, train_loss_step=1.5 Step",
    ];
    assert_eq!(read_all(&frames), expected);
    check("lightning", false, &[(frames[3].0, expected[2])]);
}

#[test]
fn bars_of_other_things_are_ignored() {
    let frames = [
        ("Map: 100%|██████████| 100/100 [00:00<00:00, 999.00 examples/s]", Newline),
        ("Downloading: 45%|████▌     | 4.5M/10M [00:01<00:01, 2.30MB/s]", Return),
        ("Epochs:  50%|█████     | 1/2 [00:01<00:01,  1.00s/it]", Return),
        ("Validating:  50%|█████     | 1/2 [00:01<00:01,  1.00s/it, loss=5]", Return),
        ("Validating: 100%|██████████| 2/2 [00:01<00:01,  1.00s/it, loss=4]", Return),
        ("Validating: 100%|██████████| 2/2 [00:01<00:01,  1.00s/it, loss=4]", Newline),
        ("  5%|▌         | 1/20 [00:01<00:01,  1.00s/it]", Return),
        (" 50%|█████     | 5/10 [00:01<00:01,  1.00s/it]", Return),
        (" 10%|█         | 2/20 [00:01<00:01,  1.00s/it]", Return),
    ];
    let expected = [
        "2 epochs",
        "epoch 2, loss=4 Validation Epoch",
        "epoch 2/2, batch 1/20, 1 s",
        "epoch 2/2, batch 2/20, 1 s",
    ];
    assert_eq!(read_all(&frames), expected);
}

#[test]
fn restarted_bar_is_of_the_next_epoch() {
    let frames = [
        ("  0%|          | 0/1 [00:00<?, ?it/s]", Return),
        ("  0%|          | 0/1 [00:00<?, ?it/s, loss=2]", Return),
        ("100%|██████████| 1/1 [00:00<00:00, 4.00it/s, loss=2]", Newline),
        ("  0%|          | 0/1 [00:00<?, ?it/s]", Return),
        ("  0%|          | 0/1 [00:00<?, ?it/s, loss=1]", Return),
        ("100%|██████████| 1/1 [00:00<00:00, 4.00it/s, loss=1]", Newline),
        ("Epoch 7/9", Newline),
        ("  0%|          | 0/1 [00:00<?, ?it/s]", Return),
        ("  0%|          | 0/1 [00:00<?, ?it/s, loss=0.5]", Return),
    ];
    let lines = [
        ("  0%|          | 0/9 [00:00<?, ?it/s]", Return),
        ("100%|██████████| 9/9 [00:00<00:00, 4.00it/s]", Newline),
        ("Epoch 1: train loss 0.5", Newline),
        ("  0%|          | 0/9 [00:00<?, ?it/s]", Return),
    ];
    let expected =
        ["step 0/9", "step 9/9, 0.25 s", "epoch 1, train loss=0.5 Epoch", "epoch 2, batch 0/9"];
    assert_eq!(read_all(&lines), expected);
    let expected = [
        "step 0/1",
        "batch 1/1, loss=2 Step",
        "epoch 2, batch 1/1, loss=1 Step",
        "epoch 7/9, batch 1/1, loss=0.5 Step",
    ];
    assert_eq!(read_all(&frames), expected);
}

#[test]
fn last_frames_of_other_bars_and_redraws_are_no_epochs() {
    let train = "100%|##########| 10/10 [00:10<00:00,  1.00s/it, loss=0.50]";
    let frames = [
        (train, Newline),
        (train, Newline),
        ("100%|##########| 10/10 [00:02<00:00,  5.00it/s]", Newline),
        ("100%|##########| 10/10 [00:10<00:00,  1.00s/it, loss=0.45]", Newline),
    ];
    let expected = ["batch 10/10, 1 s, loss=0.5 Step", "epoch 2, batch 10/10, 1 s, loss=0.45 Step"];
    assert_eq!(read_all(&frames), expected);
}

#[test]
fn other_forms_of_bars_are_read() {
    let table = [
        (
            "Epochs:  30%|███       | 3/10 [00:01<00:01,  1.00s/it, loss=0.5]",
            "epoch 3/10, loss=0.5 Epoch",
        ),
        ("12it [00:05, 4.00it/s, loss=0.5]", "batch 12, 0.25 s, loss=0.5 Step"),
        (
            "Epoch 3, loss 0.25:  30%|███       | 3/10 [00:01<00:01, 4.00it/s]",
            "epoch 3, batch 3/10, 0.25 s, loss=0.25 Step",
        ),
        (
            "Epoch 3: 100%|██████████| 400/400 [00:01<00:00, 50.00img/s, loss (batch)=0.5]",
            "epoch 3, sample 400/400, loss (batch)=0.5 Step",
        ),
        (
            "  30%|███       | 3/10 [00:01<00:01, 4.00it/s, Loss: 0.75]",
            "batch 3/10, 0.25 s, Loss=0.75 Step",
        ),
    ];
    for row in table {
        check("tqdm", true, &[row]);
    }
}

#[test]
fn bar_of_epochs_gives_the_epoch_of_the_inner_bar() {
    let frames = [
        ("Epochs:   0%|          | 0/2 [00:00<?, ?it/s]", Newline),
        ("  0%|          | 0/4 [00:00<?, ?it/s]", Return),
        ("100%|██████████| 4/4 [00:01<00:00, 4.00it/s, loss=2]", Return),
        ("Epochs:  50%|█████     | 1/2 [00:01<00:01,  1.00s/it]", Newline),
        ("  0%|          | 0/4 [00:00<?, ?it/s]", Return),
        ("100%|██████████| 4/4 [00:01<00:00, 4.00it/s, loss=1]", Return),
        ("Epochs: 100%|██████████| 2/2 [00:02<00:00,  1.00s/it]", Newline),
    ];
    let expected = [
        "2 epochs",
        "epoch 1/2, batch 0/4",
        "epoch 1/2, batch 4/4, 0.25 s, loss=2 Step",
        "epoch 2/2, batch 4/4, 0.25 s, loss=1 Step",
    ];
    assert_eq!(read_all(&frames), expected);
}

#[test]
fn bar_inside_one_at_its_start_is_of_an_epoch() {
    let frames = [
        ("  0%|          | 0/3 [00:00<?, ?it/s]", Newline),
        ("  0%|          | 0/8 [00:00<?, ?it/s]", Return),
        (" 50%|█████     | 4/8 [00:01<00:01, 4.00it/s]", Return),
        ("100%|██████████| 8/8 [00:02<00:00, 4.00it/s]", Return),
        (" 33%|███▎      | 1/3 [00:02<00:04,  2.00s/it]", Newline),
        ("  0%|          | 0/8 [00:00<?, ?it/s]", Return),
        (" 50%|█████     | 4/8 [00:01<00:01, 4.00it/s]", Return),
    ];
    let expected = [
        "step 0/3",
        "epoch 1/3, batch 0/8",
        "epoch 1/3, batch 4/8, 0.25 s",
        "epoch 1/3, batch 8/8, 0.25 s",
        "3 epochs",
        "epoch 2/3, batch 0/8",
        "epoch 2/3, batch 4/8, 0.25 s",
    ];
    assert_eq!(read_all(&frames), expected);
}

#[test]
fn bar_that_moves_by_itself_counts_steps() {
    let frames = [
        ("  0%|          | 0/20 [00:00<?, ?it/s]", Newline),
        // An evaluation before the first step.
        ("  0%|          | 0/4 [00:00<?, ?it/s]", Return),
        ("100%|██████████| 4/4 [00:01<00:00, 4.00it/s]", Return),
        ("  5%|▌         | 1/20 [00:01<00:19,  1.00s/it]", Return),
        (" 10%|█         | 2/20 [00:02<00:18,  1.00s/it]", Return),
        (" 15%|█▌        | 3/20 [00:03<00:17,  1.00s/it]", Return),
        ("100%|██████████| 4/4 [00:01<00:00, 4.00it/s]", Return),
        (" 20%|██        | 4/20 [00:04<00:16,  1.00s/it]", Return),
    ];
    let all = read_all(&frames);
    assert_eq!(all[all.len() - 3..], ["step 2/20, 1 s", "step 3/20, 1 s", "step 4/20, 1 s"]);
}

#[test]
fn erased_bar_is_not_an_outer_bar() {
    let frames = [
        ("  0%|          | 0/3 [00:00<?, ?it/s]", Return),
        ("            ", Return),
        ("  0%|          | 0/8 [00:00<?, ?it/s]", Return),
        (" 50%|█████     | 4/8 [00:01<00:01, 4.00it/s, loss=1]", Return),
    ];
    assert_eq!(read_all(&frames), ["step 0/3", "batch 4/8, 0.25 s, loss=1 Step"]);
}

#[test]
fn bar_that_advances_with_a_larger_total_is_the_same() {
    let frames = [
        ("  0%|          | 0/20 [00:00<?, ?it/s]", Return),
        (" 50%|█████     | 10/20 [00:01<00:01, 10.00it/s]", Return),
        ("  0%|          | 0/4 [00:00<?, ?it/s]", Return),
        ("100%|██████████| 4/4 [00:00<00:00, 99.00it/s]", Return),
        (" 33%|███▎      | 10/30 [00:01<00:02, 10.00it/s]", Return),
        (" 50%|█████     | 15/30 [00:02<00:02, 10.00it/s]", Return),
    ];
    let expected = ["step 0/20", "step 10/20, 0.1 s", "step 15/30, 0.1 s"];
    assert_eq!(read_all(&frames), expected);
}

#[test]
fn bars_of_rich_count_from_epoch_0_up_to_the_last() {
    let frames = [
        ("Sanity Checking ━━━━━━━━━━━━ 2/2 0:00:00 • 0:00:00 9.85it/s", Return),
        ("Epoch 0/1  ━━━━━━━━━━━━━━━━━ 0/4 0:00:00 • -:--:-- 0.00it/s", Return),
        ("Epoch 0/1  ━━━━╸━━━━━━━━━━━━ 1/4 0:00:01 • -:--:-- 4.00it/s", Return),
        (
            "Epoch 0/1  ━━━━╸━━━━━━━━━━━━ 1/4 0:00:01 • -:--:-- 4.00it/s v_num: 0.000 train_loss: 2.500",
            Return,
        ),
        (
            "Epoch 0/1  ━━━━╸━━━━━━━━━━━━ 1/4 0:00:01 • -:--:-- 4.00it/s v_num: 0.000 train_loss: 2.500",
            Return,
        ),
        (
            "Epoch 0/1  ━━━━━━━━━━━━━━━━━ 4/4 0:00:02 • 0:00:00 4.00it/s v_num: 0.000 train_loss: 2.200",
            Newline,
        ),
        ("Validation ━━━━━━━━╸━━━━━━━━ 1/2 0:00:00 • -:--:-- 9.85it/s", Return),
        (
            "Epoch 0/1  ━━━━━━━━━━━━━━━━━ 4/4 0:00:02 • 0:00:00 4.00it/s v_num: 0.000 train_loss: 2.200 val_loss: 1.900",
            Return,
        ),
        (
            "Epoch 1/1  ━━━━━━━━━━━━━━━━━ 0/4 0:00:00 • -:--:-- 0.00it/s v_num: 0.000 train_loss: 2.200 val_loss: 1.900",
            Return,
        ),
        (
            "Epoch 1/1  ━━━━╸━━━━━━━━━━━━ 1/4 0:00:01 • -:--:-- 4.00it/s v_num: 0.000 train_loss: 1.500 val_loss: 1.900",
            Return,
        ),
    ];
    let expected = [
        "epoch 0/2, batch 0/4",
        "epoch 0/2, batch 1/4, 0.25 s",
        "epoch 0/2, batch 1/4, 0.25 s, train_loss=2.5 Step",
        "epoch 0/2, batch 4/4, 0.25 s, train_loss=2.2 Step",
        "epoch 0/2, batch 4/4, val_loss=1.9 Validation Epoch",
        "epoch 1/2, batch 1/4, 0.25 s, train_loss=1.5 Step",
    ];
    assert_eq!(read_all(&frames), expected);
    check("lightning", false, &[(frames[3].0, expected[2])]);
    let plain = "Training ━━━━━━━━━━━━━━━━━ 1/4 0:00:01 loss: 0.5";
    check("rich", true, &[(plain, "batch 1/4, loss=0.5 Step")]);
}

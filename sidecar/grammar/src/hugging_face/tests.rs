use paceline_lines::terminal::End::{Newline, Return};

use crate::testing::{check, read_all};

#[test]
fn dicts_of_all_releases_are_read() {
    let table = [
        (
            "{'loss': '7.428', 'grad_norm': '10.73', 'learning_rate': '4.063e-05', 'epoch': '0.5'}",
            "epoch 0.5, loss=7.428 Interval",
        ),
        (
            "{'loss': 0.6931, 'learning_rate': 4.9e-05, 'epoch': 0.06}",
            "epoch 0.06, loss=0.6931 Interval",
        ),
        (
            "{'loss': nan, 'grad_norm': inf, 'learning_rate': 0.0, 'epoch': 1.0}",
            "epoch 1, loss=NaN Interval",
        ),
        (
            "{'eval_loss': '1.051e+04', 'eval_runtime': '0.0107', 'eval_samples_per_second': '5969', 'eval_steps_per_second': '746.1', 'epoch': '1'}",
            "epoch 1, eval_loss=10510 Validation Epoch",
        ),
        (
            "{'train_runtime': '0.0752', 'train_samples_per_second': '1702', 'train_steps_per_second': '200', 'train_loss': '9.434', 'epoch': '2'}",
            "epoch 2, 0.005 s, train_loss=9.434 Run",
        ),
    ];
    for (line, expected) in table {
        check("hugging face", true, &[(line, expected)]);
    }
    let other = [
        ("{'step': 5, 'loss': tensor(0.5, device='cuda:0'), 'acc': 0.9}", "step 5, loss=0.5 Step"),
        ("{'learned': 5}", ""),
    ];
    check("python dict", false, &other);
}

#[test]
fn mean_time_of_a_run_with_evaluations_is_ignored() {
    let table = [
        (
            "{'eval_loss': 1, 'eval_runtime': 1, 'epoch': 1}",
            "epoch 1, eval_loss=1 Validation Epoch",
        ),
        (
            "{'train_runtime': 1, 'train_steps_per_second': 200, 'train_loss': 9, 'epoch': 2}",
            "epoch 2, train_loss=9 Run",
        ),
    ];
    check("hugging face", false, &table);
}

#[test]
fn step_is_taken_from_the_next_bar() {
    let blank = ("            ", Return);
    let dict = |line| (line, Newline);
    let first = "{'loss': '3', 'grad_norm': '1', 'learning_rate': '1', 'epoch': '0.5'}";
    let eval = "{'eval_loss': '2', 'eval_runtime': '1', 'epoch': '1'}";
    let end = "{'train_runtime': '1', 'train_loss': '2.5', 'epoch': '1'}";
    let frames = [
        ("  0%|          | 0/20 [00:00<?, ?it/s]", Return),
        blank,
        dict(first),
        (" 50%|█████     | 10/20 [00:01<00:01, 10.00it/s]", Return),
        ("  0%|          | 0/4 [00:00<?, ?it/s]", Return),
        ("100%|██████████| 4/4 [00:00<00:00, 99.00it/s]", Newline),
        blank,
        dict(eval),
        ("100%|██████████| 20/20 [00:02<00:00, 10.00it/s]", Return),
        dict(end),
        ("100%|██████████| 20/20 [00:02<00:00, 10.00it/s]", Newline),
        // Both on one line.
        (
            " 50%|█████     | 10/20 [00:01<00:01, 10.00it/s]{'loss': 3, 'grad_norm': 1, 'epoch': 1.5}",
            Newline,
        ),
    ];
    let expected = [
        "step 0/20",
        "epoch 0.5, step 10/20, 0.1 s, loss=3 Interval",
        "epoch 1, step 20/20, 0.1 s, eval_loss=2 Validation Epoch",
        "epoch 1, train_loss=2.5 Run",
        "epoch 1.5, loss=3 Interval",
    ];
    assert_eq!(read_all(&frames), expected);
}

#[test]
fn step_is_that_of_the_bar_before_if_it_is_not_drawn_again() {
    let lines = [
        " 25%|██▌       | 5/20 [00:50<02:30, 10.00s/it]",
        "{'loss': 1.5, 'grad_norm': 0.5, 'learning_rate': 4e-05, 'epoch': 0.5}",
        " 30%|███       | 6/20 [01:00<02:20, 10.00s/it]",
        "{'loss': 1.25, 'grad_norm': 0.5, 'learning_rate': 4e-05, 'epoch': 0.6}",
        " 35%|███▌      | 7/20 [01:10<02:10, 10.00s/it]",
        "{'loss': 1.125, 'grad_norm': 0.5, 'learning_rate': 4e-05, 'epoch': 0.7}",
    ];
    let expected = [
        "step 5/20, 10 s",
        "epoch 0.5, step 5/20, 10 s, loss=1.5 Interval",
        "step 6/20, 10 s",
        "epoch 0.6, step 6/20, 10 s, loss=1.25 Interval",
        "step 7/20, 10 s",
        "epoch 0.7, loss=1.125 Interval",
    ];
    assert_eq!(read_all(&lines.map(|line| (line, Newline))), expected);
}

use paceline_lines::terminal::End::{Newline, Return};

use crate::testing::read_all;

#[test]
fn table_below_its_bars_is_read() {
    let lines = [
        ("epoch     train_loss  valid_loss  accuracy  time    ", Newline),
        ("Epoch 1/2 : |----------------------------------------| 0.00% [0/5 00:00<?]", Return),
        (
            "Epoch 1/2 : |████████--------------------------------| 40.00% [2/5 00:00<00:00 0.5123]",
            Return,
        ),
        (
            "Epoch 1/2 : |████████--------------------------------| 40.00% [2/5 00:00<00:00 0.5123]",
            Return,
        ),
        (
            "Epoch 1/2 : |████████████████████████████████████████| 100.00% [5/5 00:00<00:00 0.5000]",
            Return,
        ),
        (
            "Epoch 1/2 : |████████████████████--------------------| 50.00% [1/2 00:00<00:00 0.5000]",
            Return,
        ),
        (
            "Epoch 1/2 : |████████████████████████████████████████| 100.00% [2/2 00:00<00:00 0.5000]",
            Return,
        ),
        ("0         0.512345    0.490000    0.810000  00:12     ", Newline),
        (
            "Epoch 2/2 : |████████--------------------------------| 40.00% [2/5 00:00<00:00 0.4000]",
            Return,
        ),
        ("1         nan         0.480000    0.820000  00:12     ", Newline),
        ("1         0.5", Newline),
    ];
    let expected = [
        "epoch 1/2, batch 2/5, loss=0.5123 Interval",
        "epoch 1/2, batch 5/5, loss=0.5 Interval",
        "epoch 1, train_loss=0.512345 Epoch, valid_loss=0.49 Validation Epoch",
        "epoch 2/2, batch 2/5, loss=0.4 Interval",
        "epoch 2, train_loss=NaN Epoch, valid_loss=0.48 Validation Epoch",
    ];
    assert_eq!(read_all(&lines), expected);
}

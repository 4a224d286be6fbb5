use crate::testing::check;

#[test]
fn nanogpt() {
    let table = [
        (
            "step 0: train loss 4.2365, val loss 4.2317",
            "step 0, train loss=4.2365 Epoch, val loss=4.2317 Validation Epoch",
        ),
        (
            "iter 10: loss 2.7512, time 14101.50ms, mfu 3.21%",
            "step 10, 14.1015 s, loss=2.7512 Step",
        ),
    ];
    check("nanogpt", true, &table);
}

#[test]
fn mingpt() {
    let table = [
        (
            "[RANK0] Epoch 1 | Iter 100 | Train Loss 3.12345",
            "epoch 1, batch 100, rank 0, Train Loss=3.12345 Step",
        ),
        (
            "[RANK3] Epoch 1 | Iter 100 | Eval Loss 3.5",
            "epoch 1, rank 3, Eval Loss=3.5 Validation Step",
        ),
        (
            "epoch 1 iter 99: train loss 3.12345. lr 6.000000e-04",
            "epoch 1, batch 99, train loss=3.12345 Step",
        ),
        ("iter_dt 12.50ms; iter 100: train loss 4.1", "step 100, 0.0125 s, train loss=4.1 Step"),
    ];
    check("mingpt", true, &table);
}

#[test]
fn char_rnn() {
    let table = [
        (
            "1/21150 (epoch 0.002), train_loss = 4.19803671, grad/param norm = 5.1721e-01, time/batch = 2.5201s",
            "epoch 0.002, step 1/21150, 2.5201 s, train_loss=4.19803671 Step",
        ),
        (
            "2/21150 (epoch 0), train_loss = 4.197, time/batch = 0.25",
            "epoch 0, step 2/21150, 0.25 s, train_loss=4.197 Step",
        ),
    ];
    check("char-rnn", true, &table);
}

#[test]
fn xlm() {
    let table = [
        (
            "   1135 -   56.12 sent/s -  2143.80 words/s - MLM-en:  7.5000 -  - model LR: 3.8795e-06",
            "step 1135, loss=7.5 Step",
        ),
        (
            "INFO - 10/04/19 14:41:28 - 0:11:14 -    1140 -   56.10 sent/s -  2092.52 words/s - CLM-en:  7.2500 -  - model LR: 3.8962e-06",
            "step 1140, loss=7.25 Step",
        ),
        ("valid_en_mlm_ppl -> 1413.372916", ""),
    ];
    check("xlm", true, &table);
}

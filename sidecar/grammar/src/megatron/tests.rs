use crate::testing::check;

#[test]
fn megatron() {
    let table = [
        (
            " [2026-01-01 10:00:00] iteration      100/  500000 | consumed samples:        25600 | elapsed time per iteration (ms): 345.6 | learning rate: 1.500000E-04 | global batch size:   256 | lm loss: 1.003123E+01 | loss scale: 1.0 | grad norm: 1.234 |",
            "step 100/500000, 0.3456 s, lm loss=10.03123 Interval",
        ),
        (
            "[default3]: iteration 5/ 10 | elapsed time per iteration (ms): 250.0 | lm loss: NaN | loss scale: 65536.0 |",
            "step 5/10, 0.25 s, rank 3, lm loss=NaN Interval",
        ),
        (
            "validation loss at iteration 1000 on validation set | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 |",
            "step 1000, lm loss=2.5 Validation Epoch",
        ),
        (" iteration 100/ 500000 | elapsed time per iteration (ms): 345.6 | loss scale: 1.0 |", ""),
    ];
    check("megatron", true, &table);
}

#[test]
fn torchtitan() {
    let table = [
        (
            "step:  1  loss: 12.2721  grad_norm:  3.1234  memory: 42.10GiB(53.20%)  tps: 2,345  tflops: 123.45  mfu: 12.34%",
            "step 1, loss=12.2721 Step",
        ),
        (
            "[rank0]:[titan] 2026-01-01 10:00:00,123 - root - INFO - step: 1,200  loss:  2.5  memory: 4GiB(5%)",
            "step 1200, rank 0, loss=2.5 Step",
        ),
        (
            "validate step: 100  loss:  2.75  memory: 42.10GiB(53.20%)  tps: 2,345",
            "step 100, loss=2.75 Validation Epoch",
        ),
    ];
    check("torchtitan", true, &table);
}

#[test]
fn prime_rl() {
    let table = [(
        "12:34:56 SUCCESS Step 3 | Time: 60.98s | Loss: 0.0125 | Entropy: 0.5",
        "step 3, 60.98 s, Loss=0.0125 Step",
    )];
    check("prime-rl", true, &table);
}

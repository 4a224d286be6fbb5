use crate::testing::check;

#[test]
fn json_lines() {
    let table = [
        (
            r#"{"step": 100, "epoch": 1, "loss": 0.5234, "lr": 0.001, "note": "a \"b\""}"#,
            "epoch 1, step 100, loss=0.5234 Step",
        ),
        (
            r#"{"train_loss":"1.2e-05","val_loss":0.5,"epoch":"3","max_epochs":10}"#,
            "epoch 3/10, train_loss=0.000012 Epoch, val_loss=0.5 Validation Epoch",
        ),
        (
            r#"{"global_step": 7, "total_steps": 9, "train": {"loss": NaN, "lr": 1}, "eval": {"loss": 1.5}}"#,
            "step 7/9, train/loss=NaN Interval, eval/loss=1.5 Validation Epoch",
        ),
        (
            r#"{"timestamp": "2026-01-01T10:00:00.5Z", "step": 1, "loss": 2, "step_time_ms": 250}"#,
            "step 1, 0.25 s, at 1767261600.5, loss=2 Step",
        ),
        (
            r#"{"ts": 1767261600, "rank": 3, "step": 1, "loss": Infinity}"#,
            "step 1, rank 3, at 1767261600, loss=inf Step",
        ),
        (
            r#"DLL 2026-01-01 - {"step": 5, "loss_scale": 65536, "loss": 0.5}"#,
            "step 5, loss=0.5 Step",
        ),
        (r#"{"step": 5, "loss": 0.5, "val_loss": null}"#, "step 5, loss=0.5 Step"),
        (
            r#"{"cls_loss": 1, "loss": 3, "box_loss": 2, "step": 1}"#,
            "step 1, loss=3 Step, cls_loss=1 Step, box_loss=2 Step",
        ),
        (
            r#"{"name": "train", "epoch": 3, "average loss": 0.5}"#,
            "epoch 3, average loss=0.5 Epoch",
        ),
        (
            r#"{"name": "validation", "epoch": 3, "average loss": 0.75}"#,
            "epoch 3, average loss=0.75 Validation Epoch",
        ),
        (
            r#"{"epoch": 3, "loss": 0.75, "train_loss": 0.5, "name": "Val"}"#,
            "epoch 3, train_loss=0.5 Epoch, loss=0.75 Validation Epoch",
        ),
        // The name of a run.
        (r#"{"name": "test", "step": 3, "loss": 0.5}"#, "step 3, loss=0.5 Step"),
        (r#"{"name": "eval-7", "step": 3, "loss": 0.5}"#, "step 3, loss=0.5 Step"),
        (r#"{"name": "loss", "step": 3, "value": 0.5}"#, "step 3, loss=0.5 Step"),
        (r#"{"step": 5, "total_steps": 10}"#, "step 5/10"),
        (r#"{"lossless": 1, "loss_scale": 2, "best_loss": 0.1}"#, ""),
        (r#"{"event": "started"}"#, ""),
        ("{}", ""),
    ];
    check("json lines", true, &table);
}

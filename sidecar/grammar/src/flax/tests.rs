use crate::testing::check;

#[test]
fn flax() {
    let table = [
        (
            "I1009 17:56:42.674334 3280981 train.py:175] epoch: 10, train_loss: 0.0073, train_accuracy: 99.75, test_loss: 0.0294, test_accuracy: 99.25",
            "epoch 10, train_loss=0.0073 Epoch, test_loss=0.0294 Validation Epoch",
        ),
        (
            "I1009 17:56:42.674334 3280981 train.py:99] train epoch: 3, loss: 0.5, accuracy: 99.75",
            "epoch 3, loss=0.5 Epoch",
        ),
        (
            "eval epoch: 1, loss: 121.3, BCE: 96.1, KLD: 25.2",
            "epoch 1, loss=121.3 Validation Epoch",
        ),
        (
            "Finished training step 3. Batch size: 32, Loss: 2.34567, LR: 0.00010",
            "step 3, Loss=2.34567 Step",
        ),
    ];
    check("flax", true, &table);
}

#[test]
fn clu() {
    let table = [
        (
            "I1009 17:56:42.674334 3280981 logging_writer.py:48] [100] accuracy=0.5, loss=2.3",
            "step 100, loss=2.3 Step",
        ),
        (
            "[200] eval_loss=2.1, train_loss=2.2",
            "step 200, train_loss=2.2 Step, eval_loss=2.1 Validation Epoch",
        ),
        ("[200] steps_per_sec=4.0, loss=nan", "step 200, 0.25 s, loss=NaN Step"),
        ("[200] accuracy=0.5", ""),
        ("[300] collection=train accuracy=0.5, loss=1.5", "step 300, loss=1.5 Step"),
        ("[300] collection=eval accuracy=0.5, loss=1.75", "step 300, loss=1.75 Validation Epoch"),
    ];
    check("clu", true, &table);
}

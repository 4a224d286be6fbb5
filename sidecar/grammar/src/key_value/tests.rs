use crate::testing::check;

#[test]
fn lines_of_keys_and_values_are_read() {
    let table = [
        ("loss: 0.5", "loss=0.5 Step"),
        ("loss=0.5", "loss=0.5 Step"),
        ("loss = .5", "loss=0.5 Step"),
        ("Loss 1.", "Loss=1 Step"),
        ("accuracy=0.98 loss=0.3", "loss=0.3 Step"),
        ("loss: tensor(0.5123, device='cuda:0', grad_fn=<NllLossBackward0>)", "loss=0.5123 Step"),
        ("Step 1,000: loss = nan", "step 1000, loss=NaN Step"),
        ("step: 5 | train loss: 0.5 | lr: 1e-3", "step 5, train loss=0.5 Step"),
        ("Iteration 10, Loss: 0.5, Accuracy: 42%", "step 10, Loss=0.5 Step"),
        ("Epoch [3/10], Step [100/600], Loss: 0.5", "epoch 3/10, batch 100/600, Loss=0.5 Step"),
        (
            "Epoch 3: train_loss=0.4 val_loss=0.5",
            "epoch 3, train_loss=0.4 Epoch, val_loss=0.5 Validation Epoch",
        ),
        ("epoch 3 avg loss \u{2212}0.5", "epoch 3, avg loss=-0.5 Epoch"),
        ("epoch: 1, batch: 5, loss: 0.5 (0.6)", "epoch 1, batch 5, loss=0.5 Step"),
        (
            "step   10 | loss: 6.5 | lr 6.0000e-04 | norm: 1.2 | 250ms/step | tok/sec: 1550",
            "step 10, 0.25 s, loss=6.5 Step",
        ),
        ("step 10 loss 6.5 (4.0 it/s)", "step 10, 0.25 s, loss=6.5 Step"),
        ("step 10 loss 6.5, 0.25 sec/step", "step 10, 0.25 s, loss=6.5 Step"),
        ("[Valid] loss: 0.5", "Valid loss=0.5 Validation Epoch"),
        (
            "Validation Results - Epoch: 1  Avg accuracy: 0.9 Avg loss: 0.3",
            "epoch 1, Avg loss=0.3 Validation Epoch",
        ),
        (
            "Training Results - Epoch: 1  Avg accuracy: 0.9 Avg loss: 0.3",
            "epoch 1, Avg loss=0.3 Epoch",
        ),
        ("eval loss 0.25 at step 7", "step 7, eval loss=0.25 Validation Epoch"),
        ("total_loss: 5 cls_loss: 2 step: 3", "step 3, total_loss=5 Step, cls_loss=2 Step"),
        ("loss: 0,5", "loss=0.5 Step"),
        ("batch i: 5, loss: 0.5", "batch 5, loss=0.5 Step"),
        ("Batch I: 5 files, loss: 0.5", "loss=0.5 Step"),
        ("layer i: 5, loss: 0.5", "loss=0.5 Step"),
        ("time i: 5, data: 2, step: 3, loss: 0.5", "step 3, loss=0.5 Step"),
        ("step/total: 5/90 loss: 2.4", "step 5/90, loss=2.4 Step"),
        ("loss 2.5 batch/gpu: 4/8", "loss=2.5 Step"),
        ("batch/size: 16/32 loss: 2.4", "loss=2.4 Step"),
        ("step 1 ts_loss 0.5", "step 1, ts_loss=0.5 Step"),
        ("step 2 te_loss 0.5 unet_loss 0.3", "step 2, te_loss=0.5 Step, unet_loss=0.3 Step"),
        ("step 2 te_loss 0.5 tr_loss 0.3", "step 2, tr_loss=0.3 Step, te_loss=0.5 Test Epoch"),
        ("step 10 loss - 0.5", "step 10, loss=0.5 Step"),
        ("step 10 policy loss - -0.0125", "step 10, policy loss=-0.0125 Step"),
        ("step 10   loss  - 0.5", "step 10, loss=0.5 Step"),
        ("step 10 loss 0.5 it/s 4.0 lr 0.1", "step 10, 0.25 s, loss=0.5 Step"),
        ("step 10 loss 0.5 acc 0.75 it/s 4.0", "step 10, 0.25 s, loss=0.5 Step"),
        ("step 10 loss 0.5 avg 2.0 s/it 45 TFLOPs", "step 10, 2 s, loss=0.5 Step"),
        ("loss 0.5 avg_step 2.0 s/it 12 GB", "2 s, loss=0.5 Step"),
        ("loss 0.5 fps: 2.0 it/s 12 GB", "0.5 s, loss=0.5 Step"),
        ("loss 0.5 iter 2.0 s/it 45 TFLOPs", "2 s, loss=0.5 Step"),
        ("Pretraining: 25% (10/40) loss: 0.5", "step 10/40, loss=0.5 Step"),
        ("Corpus: 25% (10/40) loss: 0.5", "step 10/40, loss=0.5 Step"),
        ("loss: 0.5 val-acc@5: 25% (10/40)", "loss=0.5 Step"),
        ("loss: 0.5 Top-1: 25% (10/40)", "loss=0.5 Step"),
        ("step 1 loss-1 0.5 loss-2 0.4", "step 1, loss-1=0.5 Step, loss-2=0.4 Step"),
        ("step 1 loss0.625, lr0.1", "step 1, loss=0.625 Step"),
        ("step 1 loss1.25: 0.5", "step 1, loss1.25=0.5 Step"),
        ("step 1 batch_loss 0.5 box_loss 0.25", "step 1, batch_loss=0.5 Step, box_loss=0.25 Step"),
        ("step 1 time 12.5s (50 iters), loss 0.5", "step 1, 0.25 s, loss=0.5 Step"),
        ("step 1 eta 12.5s (50 iters), loss 0.5", "step 1, loss=0.5 Step"),
        ("step 1 iter time 0.25s (50 iters), loss 0.5", "step 1, 0.25 s, loss=0.5 Step"),
        ("step 1 eval time 12.5s (50 iters), loss 0.5", "step 1, loss=0.5 Step"),
        ("Epoch 2/5 complete. Loss: 0.5", "epoch 2/5, Loss=0.5 Epoch"),
        ("loss: train 2 val 3", "loss train=2 Step, loss=3 Validation Epoch"),
        (
            "step 1 loss: train 0.5, val 0.25",
            "step 1, loss train=0.5 Step, loss=0.25 Validation Epoch",
        ),
    ];
    check("key value", true, &table);
}

#[test]
fn counters_and_sentences_before_a_value_are_read() {
    let table = [
        ("Training mean loss at step 50: 1.25", "step 50, Training mean loss=1.25 Step"),
        ("Train stats. Loss: 0.5. Recall: 0.25", "train Loss=0.5 Step"),
        ("Evaluation finished. Loss: 0.5. Recall: 0.25", "Loss=0.5 Validation Epoch"),
        ("[train] Step 50 out of 800 | Loss --> 7.5 | Norm --> 1.5", "step 50/800, Loss=7.5 Step"),
        ("loss in epoch 3 iteration 40: 1.25", "epoch 3, step 40, loss=1.25 Step"),
        ("loss epoch 3 iteration 40: 1.25", "epoch 3, step 40, loss=1.25 Step"),
        ("loss in epoch 3: 1.25", "epoch 3, loss=1.25 Epoch"),
        ("Epoch: [3][50]\tTime 0.5 (0.6)\tLoss 7.5 (7.6)", "epoch 3, batch 50, Loss=7.5 Step"),
        ("Iter: 40 Time(20 iters): 5.0s Loss: 0.5", "step 40, 0.25 s, Loss=0.5 Step"),
        ("iter: 40 loss: 0.5 btime(ms): 250", "step 40, 0.25 s, loss=0.5 Step"),
        ("P3_test, mean_loss= 7.5 recall= 52.5", "mean_loss=7.5 Test Epoch"),
        ("do_test: True, loss 0.5", "loss=0.5 Step"),
        ("P3_train, mean_loss= 7.5 recall= 52.5", "mean_loss=7.5 Step"),
        ("> Peer Testing: [=====>] 100% (80/80) Loss 2.5", "step 80/80, Loss=2.5 Test Epoch"),
        ("step 5 val 95% loss 0.5", "step 5, loss=0.5 Step"),
        ("loss step 5: 0.5", "step 5, loss=0.5 Step"),
        ("Test acc 90% (5/10) train loss 0.5", "train loss=0.5 Step"),
        (
            "ROUND 03: TRAIN AVG.LOSS 2.5, (rate0.25), CROSSVAL AVG.LOSS 2.75",
            "step 3, TRAIN AVG.LOSS=2.5 Step, CROSSVAL AVG.LOSS=2.75 Validation Epoch",
        ),
    ];
    // Alone, because the first of two epochs tells how steps are counted.
    for row in table {
        check("key value", true, &[row]);
    }
}

#[test]
fn lines_without_a_current_loss_are_ignored() {
    for line in [
        "Using lossless compression level 9",
        "packet loss: 0%",
        "loss scale: 65536.0",
        "loss_scale=65536",
        "Current loss scale 1024",
        "criterion: CrossEntropyLoss() 5",
        "Criterion: CrossEntropyLoss - 1000 classes",
        "step 10 loss - 5 samples skipped",
        "best val loss: 0.3 at epoch 5",
        "New best! loss: 0.3",
        "Saved checkpoint with loss 0.5",
        "val_loss improved from inf to 0.89170, saving model to m.keras",
        "Epoch 1: val_loss did not improve from 0.89170",
        "loss: 0:03:45",
        "loss: 2026-01-01",
        "loss: 12ms",
        "loss: 1.2.3",
        "loss: high",
        "Loss: Train 12 samples, lr 0.1",
        "Loss: Train 12 images, lr 0.1",
        "Using FocalLoss2.0 with 5 classes",
        "using loss1.x with 5 classes",
        "using loss1. with 5 classes",
        "Training finished. Loss: 0.25",
        "Load best stats. Loss: 0.25",
        "Reload the stats. Loss: 0.25",
        "loss [12]   : (0.25, 0.75)",
        "val_loss [2] = (0.25, 0.75)",
        "Fold 1 done. Loss: 0.5",
        "Client 3 finished. Loss: 0.5",
        "Seed 7 completed. Loss: 0.5",
        "tiny-loss0.525",
        "loss0.525",
        "run tiny-loss0.525, lr 0.1",
        "Model saved, done. Loss: 0.5",
        "glossary: 5",
        "weight_loss: 5",
        "loss",
    ] {
        let mut detector = crate::Detector::default();
        assert_eq!(detector.read(line, paceline_lines::terminal::End::Newline), None, "{line}");
    }
}

#[test]
fn restart_of_steps_with_an_epoch_is_detected() {
    let restarting = [
        ("epoch 1 step 10 loss 5", "epoch 1, step 10, loss=5 Step"),
        ("epoch 1 step 20 loss 5", "epoch 1, step 20, loss=5 Step"),
        ("epoch 2 step 10 loss 5", "epoch 2, batch 10, loss=5 Step"),
    ];
    check("key value", false, &restarting);
    let continuing = [
        ("epoch [1/3] step [10/90] loss 5", "epoch 1/3, batch 10/90, loss=5 Step"),
        ("epoch [2/3] step [40/90] loss 5", "epoch 2/3, step 40/90, loss=5 Step"),
    ];
    check("key value", false, &continuing);
}

#[test]
fn lists_of_names_and_values_are_read() {
    let table = [
        ("train, epoch, loss, f1 ===> 002, 0.5, 0.25,", "epoch 2, loss=0.5 Epoch"),
        ("Epoch 1 dev, loss, acc: 0.5, 0.75", "epoch 1, loss=0.5 Validation Epoch"),
        ("step, acc, loss: 10 0.75 0.5", "step 10, loss=0.5 Step"),
        ("(train loss, train acc) = (0.5, 0.75)", "train loss=0.5 Step"),
        ("train.py - run :: val, step, loss -> 7, 0.5", "step 7, loss=0.5 Validation Epoch"),
        (
            "Epoch 3, train loss, val loss: 0.5, 0.75",
            "epoch 3, train loss=0.5 Epoch, val loss=0.75 Validation Epoch",
        ),
        ("[Step 5] loss, acc = 0.5, 0.75", "step 5, loss=0.5 Step"),
        ("Epoch: 4, loss, acc: 0.5, 0.75", "epoch 4, loss=0.5 Epoch"),
        ("test loss, test acc: [0.5, 0.75]", "test loss=0.5 Test Epoch"),
        ("5 0.25 s run, 0.5 loss, 0.75 acc", "step 5, 0.25 s, loss=0.5 Step"),
        ("6   250.0ms run, 2.5 ms GPU * 4, 0.5 loss, 75.0% acc", "step 6, 0.25 s, loss=0.5 Step"),
        (
            "12 250.0 ms step, 1.5 ms data, 0.5 val loss",
            "step 12, 0.25 s, val loss=0.5 Validation Epoch",
        ),
    ];
    check("key value", true, &table);
}

#[test]
fn other_lists_have_no_loss() {
    for line in [
        // A result of an evaluation.
        "loss, acc: 0.5, 0.75",
        "step, best loss: 10, 0.5",
        "step, loss, acc: 10, 0.5",
        "acc, loss: 0.75, 0.5",
        "best epoch 3, loss, acc: 0.5, 0.75",
        "5 0.25 s run, 3 loss, 0.75 acc",
        "5 0.25 s run, 0.5 loss",
        "5 0.25 s run, 0.5 best loss, 0.75 acc",
        "5 0.25 s run, 0.5 loss, acc 0.75",
        "0.25 s run, 0.5 loss, 0.75 acc",
        "5 0.25 dropout, 1.5 decay, 0.5 aux loss",
        "5 1.5 old loss, 0.5 new loss, 1.0 gap",
        "loss history [(0, 0.5), (1, 0.25)]",
        "loss(box) = 0.5",
        "loss(xTest, yTest) = 0.5",
        "loss(xdev, ydev) = 0.5",
        "loss(X_te, y_te) = 0.5",
        "loss(holdout_x, holdout_y) = 0.5",
        "loss(x, y) = 0.5 0.25",
        "then loss(x, y) = 0.5",
    ] {
        let mut detector = crate::Detector::default();
        assert_eq!(detector.read(line, paceline_lines::terminal::End::Newline), None, "{line}");
    }
}

#[test]
fn counters_are_read_in_any_brackets() {
    let table = [
        ("epoch: [1,3], step: [20,400] loss:0.5", "epoch 1/3, batch 20/400, loss=0.5 Step"),
        ("Epoch [2, 3] Iter [10,400] loss 0.5", "epoch 2/3, batch 10/400, loss=0.5 Step"),
        ("step [1,200] loss 0.5", "step 1200, loss=0.5 Step"),
        ("step 7 batch [32,512] target [32,512] loss 0.5", "step 7, loss=0.5 Step"),
        (
            "epoch [1,3], crop [2,64], step [20,400] loss 0.5",
            "epoch 1/3, batch 20/400, loss=0.5 Step",
        ),
    ];
    check("key value", true, &table);
}

#[test]
fn time_of_as_many_steps_as_the_step_is_not_divided() {
    let table = [
        ("step 40 loss 0.5 time: 0.5s (40 iters)", "step 40, 0.0125 s, loss=0.5 Step"),
        ("step 80 loss 0.5 time: 0.5s (80 iters)", "step 80, loss=0.5 Step"),
        ("step 120 loss 0.5 time: 0.5s (40 iters)", "step 120, 0.0125 s, loss=0.5 Step"),
        ("step 40 loss 0.5 time: 0.5s (40 iters)", "step 40, 0.0125 s, loss=0.5 Step"),
    ];
    check("key value", false, &table);
}

#[test]
fn lone_brackets_have_the_epoch_only_after_that_epoch() {
    let table = [
        ("[1/8][40/80] loss 0.75", "epoch 1/8, batch 40/80, loss=0.75 Step"),
        ("[1/8] loss 0.625", "epoch 1/8, loss=0.625 Epoch"),
        ("[3/8] loss 0.875", "step 3/8, loss=0.875 Step"),
    ];
    check("key value", false, &table);
}

#[test]
fn short_names_of_counters_are_read() {
    let table = [
        (
            "step:50 ep:7 epch:0.02 loss:0.5 updt_s:0.25",
            "epoch 0.02, step 50, 0.25 s, loss=0.5 Step",
        ),
        ("ep:7 step:80 loss:0.5", "epoch 7, step 80, loss=0.5 Step"),
    ];
    check("key value", true, &table);
}

#[test]
fn test_in_the_name_of_a_part_of_training_is_not_data() {
    let table = [
        (
            "[train: 3, 20 / 80] loss/total: 2.5, loss/test_iter_cls: 0.5, ClsTrain/test_loss: 0.25",
            1,
        ),
        ("train: 3, loss: 2.5, test_loss: 0.5", 2),
        ("epoch: 3, loss: 2.5, test_iter_loss: 0.5", 2),
    ];
    for (line, count) in table {
        let mut detector = crate::Detector::default();
        let found = detector.read(line, paceline_lines::terminal::End::Newline);
        assert_eq!(found.map(|found| found.losses.len()), Some(count), "{line}");
    }
}

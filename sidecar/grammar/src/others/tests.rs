use crate::testing::check;

#[test]
fn mxnet() {
    let table = [
        (
            "INFO:root:Epoch[1] Batch [70]\tSpeed: 1.08 samples/sec\taccuracy=0.1\tcross-entropy=2.3",
            "epoch 1, batch 70, cross-entropy=2.3 Interval",
        ),
        (
            "Epoch[1] Batch [0-140]\tSpeed: 1.08 samples/sec\tce=2.25",
            "epoch 1, batch 140, ce=2.25 Interval",
        ),
        ("Epoch[1] Train-cross-entropy=2.1", "epoch 1, Train-cross-entropy=2.1 Epoch"),
        ("Epoch[1] Validation-nll=2.2", "epoch 1, Validation-nll=2.2 Validation Epoch"),
        ("Epoch[1] Validation-accuracy=0.5", ""),
        ("Epoch[3] Evaluation metric 'epoch_loss'=2.5", "epoch 3, epoch_loss=2.5 Epoch"),
        (
            "Epoch[3] Evaluation metric 'validation_epoch_loss'=2.75",
            "epoch 3, validation_epoch_loss=2.75 Validation Epoch",
        ),
        ("Epoch[3] Evaluation metric 'epoch_accuracy'=2.5", ""),
        ("Epoch[1] Time cost=12.3", ""),
        ("Epoch[1] Batch [210]\tSpeed: 1.08 samples/sec\taccuracy=0.1", "epoch 1, batch 210"),
    ];
    check("mxnet", true, &table);
}

#[test]
fn brain() {
    let table = [
        ("iterations: 10, training error: 0.25", "step 10, training error=0.25 Step"),
        ("training error: 0.25", ""),
    ];
    check("brain.js", true, &table);
}

#[test]
fn mace() {
    let table = [
        (
            "Epoch 25: head: Default, loss=0.25, RMSE_E_per_atom=  100.76 meV, RMSE_F=  174.39 meV / A",
            "epoch 25, loss=0.25 Validation Epoch",
        ),
        (
            "Epoch 2: loss=0.5, RMSE_E_per_atom=40.5 meV, RMSE_F=20.5 meV / A",
            "epoch 2, loss=0.5 Validation Epoch",
        ),
        (
            "Initial: head: Default, loss=3.5, RMSE_E_per_atom= 1393.24 meV",
            "loss=3.5 Validation Epoch",
        ),
    ];
    check("mace", true, &table);
}

#[test]
fn returnn() {
    let table = [
        (
            "ep 55 train, step 1347, ce 0.324, fer 0.1, num_seqs 10, mem_usage:cuda:0 3.2GB, 0.855 sec/step, elapsed 0:20:00, exp. remaining 0:03:45, complete 81.92%",
            "epoch 55, batch 1347, 0.855 s, ce=0.324 Step",
        ),
        ("ep 55 dev eval, step 3, ce 0.5, 0.1 sec/step", "epoch 55, ce=0.5 Validation Step"),
        ("ep 55 train, finished", ""),
        (
            "train epoch 1, batch 20, cost:output 19.25, elapsed 0:00:01, exp. remaining 0:00:06, complete 20.05%",
            "epoch 1, batch 20, cost:output=19.25 Step",
        ),
        (
            "pretrain epoch 9, step 59, cost:ctc 6.5, cost:output/output_prob 6.25, error:ctc 0.99, 0.5 sec/step",
            "epoch 9, batch 59, 0.5 s, cost:ctc=6.5 Step, cost:output/output_prob=6.25 Step",
        ),
        ("dev epoch 1, batch 2, cost:output 14.5", "epoch 1, cost:output=14.5 Validation Step"),
        ("train epoch 1, batch 20, error:output 0.5", ""),
    ];
    check("returnn", true, &table);
}

#[test]
fn spacy() {
    let table = [
        ("Losses {'ner': 12.5}", "ner=12.5 Step"),
        ("Losses {'tagger': 1.5, 'ner': 2.5}", "tagger=1.5 Step, ner=2.5 Step"),
    ];
    check("spacy", true, &table);
}

#[test]
fn burn() {
    let table = [
        ("  - Train Loss: epoch 2.25 - batch 2.125", "Loss=2.125 Step"),
        ("  - Valid Loss: epoch 1.375 - batch 1.25", "Loss=1.375 Validation Epoch"),
    ];
    check("burn", true, &table);
}

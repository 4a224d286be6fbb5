use crate::testing::check;

#[test]
fn mnist() {
    let table = [
        (
            "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.282550",
            "epoch 1, sample 0/60000, Loss=2.28255 Step",
        ),
        (
            "Train Epoch: 14 [59520/60000 (99%)]\tLoss: nan",
            "epoch 14, sample 59520/60000, Loss=NaN Step",
        ),
        (
            "4242\tTrain Epoch: 2 [640/60000 (1%)]\tLoss: 0.310000",
            "epoch 2, sample 640/60000, Loss=0.31 Step",
        ),
        (
            "Test set: Average loss: 0.0484, Accuracy: 9840/10000 (98%)",
            "Average loss=0.0484 Validation Epoch",
        ),
        ("====> Epoch: 1 Average loss: 166.1289", "epoch 1, Average loss=166.1289 Epoch"),
        ("====> Test set loss: 127.5011", "Test set loss=127.5011 Validation Epoch"),
        ("Loss: 0.000123 after 100 batches", "step 100, Loss=0.000123 Step"),
        ("Train Epoch: 1 [640/60000 (1%)]", ""),
    ];
    check("pytorch mnist", true, &table);
}

#[test]
fn word_language_model() {
    let table = [
        (
            "| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 12.50 | loss  7.63 | ppl  2055.12",
            "epoch 1, batch 200/2983, 0.0125 s, loss=7.63 Interval",
        ),
        (
            "| end of epoch   1 | time: 42.10s | valid loss  5.12 | valid ppl   167.33",
            "epoch 1, valid loss=5.12 Validation Epoch",
        ),
        ("| End of training | test loss  4.87 | test ppl   130.45", "test loss=4.87 Test Epoch"),
        ("-----------------------------------------------------------------", ""),
    ];
    check("pytorch word language model", true, &table);
}

#[test]
fn dcgan_and_super_resolution() {
    let table = [(
        "[0/25][7/1583] Loss_D: 1.9845 Loss_G: 3.4000 D(x): 0.5000 D(G(z)): 0.6000 / 0.0100",
        "epoch 0/25, batch 7/1583, Loss_D=1.9845 Step, Loss_G=3.4 Step",
    )];
    check("pytorch dcgan", true, &table);
    let table = [
        ("===> Epoch[1](7/50): Loss: 0.1234", "epoch 1, batch 7/50, Loss=0.1234 Step"),
        ("===> Epoch 1 Complete: Avg. Loss: 0.0567", "epoch 1, Avg. Loss=0.0567 Epoch"),
        ("===> Avg. PSNR: 21.0370 dB", ""),
    ];
    check("pytorch super resolution", true, &table);
}

#[test]
fn gcn() {
    let table = [
        (
            "Epoch: 0010 (0.0050s) loss_train: 1.9458 acc_train: 0.1429 loss_val: 1.9 acc_val: 0.1580",
            "epoch 10, 0.005 s, loss_train=1.9458 Epoch, loss_val=1.9 Validation Epoch",
        ),
        (
            "Epoch: 0200 loss_train: 0.4 acc_train: 0.9 loss_val: 0.7 acc_val: 0.8 time: 0.0060s",
            "epoch 200, 0.006 s, loss_train=0.4 Epoch, loss_val=0.7 Validation Epoch",
        ),
        ("Test set results: loss= 0.7325 accuracy= 0.8190", "loss=0.7325 Test Epoch"),
    ];
    check("pytorch gcn", true, &table);
}

#[test]
fn tutorials() {
    let table = [
        ("Epoch 1", ""),
        ("-------------------------------", ""),
        ("loss: 2.303494  [   64/60000]", "epoch 1, sample 64/60000, loss=2.303494 Step"),
        ("Test Error:", ""),
        ("Accuracy: 65.6%, Avg loss: 1.087374", "epoch 1, Avg loss=1.087374 Validation Epoch"),
        ("Epoch 2", ""),
        ("train Loss: 0.4742 Acc: 0.7951", "epoch 2, train Loss=0.4742 Epoch"),
        ("val Loss: 0.2351 Acc: 0.9085", "epoch 2, val Loss=0.2351 Validation Epoch"),
        ("[1,  2000] loss: 2.186", "epoch 1, batch 2000, loss=2.186 Interval"),
        (
            "[2,    40] loss: 0.362 masks: 43.0 18.0 [wd: 4.00e-02] [lr: 1.91e-04] (640.5 ms)",
            "epoch 2, batch 40, 0.6405 s, loss=0.362 Interval",
        ),
    ];
    check("pytorch tutorial", false, &table);
}

#[test]
fn step_and_losses_on_different_lines_are_read() {
    let table = [
        ("STEP:  0", ""),
        ("loss: 0.5023738122475573", "step 0, loss=0.5023738122475573 Step"),
        ("loss: 0.48", "loss=0.48 Step"),
        ("test loss: 0.31", "test loss=0.31 Validation Epoch"),
        ("STEP:  1", ""),
        ("loss: 1e-05", "step 1, loss=0.00001 Step"),
    ];
    check("pytorch time sequence", false, &table);
}

#[test]
fn catalyst() {
    let table = [
        (
            "2/9 * Epoch (train): accuracy: 0.75 | loss: 0.5 | lr: 0.001",
            "epoch 2/9, loss=0.5 Epoch",
        ),
        ("2/9 * Epoch (valid): loss: 0.25 | acc: 0.8", "epoch 2/9, loss=0.25 Validation Epoch"),
        ("2/9 * Epoch 3 (train): lr=0.1 | loss=0.5", "epoch 3/9, loss=0.5 Epoch"),
    ];
    check("catalyst", true, &table);
}

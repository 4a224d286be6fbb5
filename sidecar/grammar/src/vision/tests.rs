use crate::testing::check;

#[test]
fn imagenet() {
    let table = [
        (
            "Epoch: [0][   11/5005]\tTime  0.312 ( 2.218)\tData  0.001 ( 1.950)\tLoss 6.9531e+00 (6.9827e+00)\tAcc@1   0.39 (  0.20)",
            "epoch 0, batch 11/5005, 0.312 s, Loss=6.9531 Step",
        ),
        (
            "Epoch: [3][21/5005]\tTime 0.318 (1.584)\tData 0.000 (1.300)\tLoss nan (nan)\tAcc@1 0.39 (0.26)",
            "epoch 3, batch 21/5005, 0.318 s, Loss=NaN Step",
        ),
        (
            "Test: [  1/196]\tTime  5.201 ( 5.201)\tLoss 6.7e+00 (6.8e+00)\tAcc@1   1.17 (  1.17)",
            "Loss=6.8 Validation EpochSoFar",
        ),
        ("*    Acc@1 0.260 Acc@5 0.910", ""),
    ];
    check("pytorch imagenet", true, &table);
}

#[test]
fn torchvision() {
    let table = [
        (
            "Epoch: [0]\t[  10/1251]\teta: 0:10:00\tloss: 6.9012 (6.9123)\ttime: 0.4321\tdata: 0.0012\tmax mem: 5000",
            "epoch 0, batch 10/1251, 0.4321 s, loss=6.9012 Interval",
        ),
        (
            "Epoch: [2]  [ 20/500]  eta: 0:01:00  lr: 0.005  img/s: 120.5  loss: 0.9 (1.1)  loss_mask: 0.4 (0.5)  time: 0.25  data: 0.01",
            "epoch 2, batch 20/500, 0.25 s, loss=0.9 Interval",
        ),
        (
            "Test:  [ 0/100]  eta: 0:00:50  loss: 0.7 (0.8)  acc1: 70.0 (70.0)  time: 0.5  data: 0.4",
            "loss=0.8 Validation EpochSoFar",
        ),
        ("Epoch: [0] Total time: 0:09:12", ""),
    ];
    check("torchvision", true, &table);
}

#[test]
fn depth() {
    let table = [
        (
            "[epoch][s/s_per_e/gs]: [1][4/50/54], lr: 0.000100, loss: 11.250",
            "epoch 1, step 54, loss=11.25 Step",
        ),
        ("[epoch][s/s_per_e/gs]: [1]", ""),
    ];
    check("monocular depth", true, &table);
}

use crate::testing::check;

#[test]
fn rows_of_tables_are_read() {
    let spacy = [
        ("E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  SCORE ", ""),
        ("---  ------  ------------  --------  ------  ------", ""),
        (
            "  0       0          0.50     12.50   45.32    0.45",
            "epoch 0, step 0, LOSS TOK2VEC=0.5 Step, LOSS NER=12.5 Step",
        ),
        (
            "  1     150          0.25      2.50   45.32    0.45",
            "epoch 1, step 150, LOSS TOK2VEC=0.25 Step, LOSS NER=2.5 Step",
        ),
    ];
    check("table", false, &spacy);
    let boosting = [
        ("      Iter       Train Loss   Remaining Time ", ""),
        ("         1           1.2500            0.52s", "step 1, Train Loss=1.25 Step"),
        ("        10           0.5000            1.05m", "step 10, Train Loss=0.5 Step"),
    ];
    check("table", false, &boosting);
    let between_bars = [
        ("|  Epoch  |  Iteration  |  Time Elapsed  |  Mini-batch  |", ""),
        ("|         |             |   (hh:mm:ss)   |     Loss     |", ""),
        ("|=======================================================|", ""),
        (
            "|       2 |          50 |       00:00:09 |       1.5000 |",
            "epoch 2, step 50, Mini-batch Loss=1.5 Step",
        ),
    ];
    check("table", false, &between_bars);
    let by_epoch = [
        ("| epoch | train loss | val loss |", ""),
        ("|-------|------------|----------|", ""),
        (
            "|     1 |       0.75 |      0.5 |",
            "epoch 1, train loss=0.75 Epoch, val loss=0.5 Validation Epoch",
        ),
    ];
    check("table", false, &by_epoch);
    let other_bars = [
        ("┃ Epoch ┃ Train Loss ┃", ""),
        ("│ 1     │ 0.75       │", "epoch 1, Train Loss=0.75 Epoch"),
    ];
    check("table", false, &other_bars);
    let without_outer_bars = [
        ("Epoch | Train Loss | Time", ""),
        ("1     | 0.75       | 12.5", "epoch 1, Train Loss=0.75 Epoch"),
    ];
    check("table", false, &without_outer_bars);
    let commas = [("step,loss,lr", ""), ("5,0.75,0.1", "step 5, loss=0.75 Step")];
    check("table", false, &commas);
}

#[test]
fn rows_with_empty_cells_and_words_are_read() {
    let narrow = [
        ("  step loss        gnorm    ms/it", ""),
        ("     4 1.5000e+00   0.75    250.0", "step 4, 0.25 s, loss=1.5 Step"),
    ];
    check("table", false, &narrow);
    let empty_cells = [
        ("epoch       iteration   main/loss   validation/main/loss  elapsed", ""),
        (
            "0           50          1.5                               2.5    ",
            "epoch 0, step 50, main/loss=1.5 Step",
        ),
        (
            "1           90          1.25        0.75                  4.5    ",
            "epoch 1, step 90, main/loss=1.25 Step, validation/main/loss=0.75 Validation Epoch",
        ),
    ];
    check("table", false, &empty_cells);
    let right_aligned = [
        ("  epoch  train loss  val loss  time", ""),
        ("      1        1.50             9.5", "epoch 1, train loss=1.5 Epoch"),
        (
            "     10        0.50      0.75   9.5",
            "epoch 10, train loss=0.5 Epoch, val loss=0.75 Validation Epoch",
        ),
    ];
    check("table", false, &right_aligned);
    let words_in_cells = [
        ("Epoch\tTraining Loss\tValidation Loss", ""),
        ("1\tNo log\t0.75", "epoch 1, Validation Loss=0.75 Validation Epoch"),
        ("2\t0.5\t0.25", "epoch 2, Training Loss=0.5 Epoch, Validation Loss=0.25 Validation Epoch"),
    ];
    check("table", false, &words_in_cells);
    let data_in_cells = [
        ("| epoch | split | loss |", ""),
        ("| 1     | train | 0.75 |", "epoch 1, loss=0.75 Epoch"),
        ("| 1     | valid | 0.5  |", "epoch 1, loss=0.5 Validation Epoch"),
        ("| 1     | test  | 0.25 |", "epoch 1, loss=0.25 Test Epoch"),
    ];
    check("table", false, &data_in_cells);
    let data_first = [
        ("split,epoch,loss", ""),
        ("train,1,0.75", "epoch 1, loss=0.75 Epoch"),
        ("val,1,0.5", "epoch 1, loss=0.5 Validation Epoch"),
    ];
    check("table", false, &data_first);
}

#[test]
fn other_lines_are_not_rows() {
    let mut detector = crate::Detector::default();
    for line in ["the    loss", "1  0.5", "loss  scale", "5  6  7"] {
        assert_eq!(detector.read(line, paceline_lines::terminal::End::Newline), None, "{line}");
    }
}

#[test]
fn sentence_that_begins_with_a_counter_is_no_header() {
    use paceline_lines::terminal::End::Newline;

    use crate::testing::read_all;
    for (sentence, row) in [
        ("Epoch loss improved saving model", "1 0.5 2 3 4"),
        ("Step loss plot written", "1 2 3 4"),
        ("Step loss and lr are logged below", "1 2 3 4 5 6 7"),
        ("Epoch loss saved to disk", "0.1 0.2 0.3 0.4 0.5"),
        ("Batch loss is high", "1 2 3 4"),
    ] {
        assert_eq!(read_all(&[(sentence, Newline), (row, Newline)]), [""; 0], "{sentence}");
        let header = ("step  loss  lr", Newline);
        let rows =
            [header, ("1  0.5  0.1", Newline), (sentence, Newline), ("2  0.25  0.1", Newline)];
        assert_eq!(
            read_all(&rows),
            ["step 1, loss=0.5 Step", "step 2, loss=0.25 Step"],
            "{sentence}"
        );
    }
    let header = [("epoch loss lr", Newline), ("1 0.5 0.1", Newline)];
    assert_eq!(read_all(&header), ["epoch 1, loss=0.5 Epoch"]);
    let above = [("epoch  train_loss  lr", Newline), ("epoch loss lr", Newline)];
    let rows = [above[0], above[1], ("1  0.5  0.1", Newline)];
    assert_eq!(read_all(&rows), ["epoch 1, train_loss=0.5 Epoch"]);
}

#[test]
fn total_of_other_things_than_a_loss_is_ignored() {
    use paceline_lines::terminal::End::Newline;

    use crate::testing::read_all;
    let read = |header, row| read_all(&[(header, Newline), (row, Newline)]);
    let sum = read("Epoch   box   cls   lr   total", "1   0.5   0.25   0.1   0.75");
    assert_eq!(sum, ["epoch 1, total=0.75 Epoch"]);
    for (header, row) in [
        ("Epoch   obj   cls   lr   total", "1   110   70   0.1   190"),
        ("Epoch  recall  box  cls  total", "1  0.5  11  20  31"),
        ("Epoch   time   box   cls   total", "1   9.5   3.0   2.0   14.5"),
        ("epoch  step   box   cls  total", "1   100   0.5   0.25   80000"),
    ] {
        assert_eq!(read(header, row), [""; 0], "{header}");
    }
}

#[test]
fn rows_between_tabs_may_count_nothing() {
    let table = [
        ("Scale\tTrain Loss\tMask Loss", ""),
        ("0.5\t-0.25\t0.125", "Train Loss=-0.25 Step, Mask Loss=0.125 Step"),
        ("0.5 0.25 0.125", ""),
        ("0.5\t0.25", ""),
        ("0.5\t0.25\tlow", ""),
        ("0.5\tnan\t0.25", "Train Loss=NaN Step, Mask Loss=0.25 Step"),
    ];
    check("table", false, &table);
    for header in
        ["Train Loss\tMask Loss", "Scale  Train Loss  Mask Loss", "Scale\tLoss\tMask Loss"]
    {
        let mut detector = crate::Detector::default();
        for line in [header, "0.5\t0.25\t0.125", "0.5\t0.25"] {
            assert!(
                detector.read(line, paceline_lines::terminal::End::Newline).is_none(),
                "{header}"
            );
        }
    }
}

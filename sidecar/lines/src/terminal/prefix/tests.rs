use super::*;

fn stripped(line: &str) -> (&str, Option<u32>, Option<f64>) {
    let Stripped { text, rank, at, .. } = strip(line);
    (text, rank, at)
}

#[test]
fn rank_is_read_from_launcher_prefixes() {
    for (line, rank) in [
        ("[default0]:loss: 0.5", 0),
        ("[trainer12]: loss: 0.5", 12),
        ("[rank0]:loss: 0.5", 0),
        ("[rank1]: loss: 0.5", 1),
        ("[RANK3] loss: 0.5", 3),
        ("[Rank 3] loss: 0.5", 3),
        ("rank0: loss: 0.5", 0),
        ("Rank 2: loss: 0.5", 2),
        ("[1,4]<stdout>:loss: 0.5", 4),
        ("[2]<stderr>:loss: 0.5", 2),
        ("[1,mpirank:3,algo-1]<stdout>:loss: 0.5", 3),
        ("[GPU 1] loss: 0.5", 1),
        ("[node1:rank9] loss: 0.5", 9),
        ("[host7:1/4] 2026-01-01 10:00:00,123 (trainer:9) INFO: loss: 0.5", 1),
        ("6: [2026-01-01 10:00:00] loss: 0.5", 6),
        ("GPU 2: loss: 0.5", 2),
        ("trainer/5 loss: 0.5", 5),
        ("worker-4: loss: 0.5", 4),
        ("(rank 1) loss: 0.5", 1),
        ("(RayTrainWorker(rank=3) pid=77) loss: 0.5", 3),
        ("[rank0]:[titan] 2026-01-01 10:00:00,123 - root - INFO - loss: 0.5", 0),
    ] {
        assert_eq!(stripped(line), ("loss: 0.5", Some(rank), None), "{line}");
    }
}

/// Lines with the prefixes of loggers.
const OF_LOGGERS: [&str; 49] = [
    "loss: 0.5",
    "  loss: 0.5 ",
    "(RayTrainWorker pid=1234, ip=10.0.0.1) loss: 0.5",
    "(train_fn pid=1234) loss: 0.5 [repeated 3x across cluster]",
    "2026-01-01 10:00:00,123 - INFO - loss: 0.5",
    "26-01-31 10:00:00.123 - INFO: loss: 0.5",
    "INFO - 01/31/26 10:00:00 - 0:01:23 - loss: 0.5",
    "INFO - 01/31/26 10:00:00 - 2 days, 1:02:03 - loss: 0.5",
    "2026-01-01 10:00:00,123 - __main__ - INFO - loss: 0.5",
    "2026-01-01 10:00:00,123 - trainer - INFO - loss: 0.5",
    "2026-01-01 10:00:00 (INFO): loss: 0.5",
    "[01/15/23 18:11:55] INFO     fold - fold - INFO: loss: 0.5",
    "2026-01-01 10:00:00,123\t44k\tINFO\tloss: 0.5",
    "26/01/31 10:00:00 INFO TrainTracker: loss: 0.5",
    "2026-01-01 10:00:00,123 INFO [pkg/MainProcess] fit._write : loss: 0.5",
    "May 01, 2026, 10:00:00: loss: 0.5",
    "2026-01-01 10:00:00,123 [MainThread] INFO GraphTrainer - loss: 0.5",
    "[INFO boosted_trees.cc:77]   loss: 0.5",
    "2026-01-01 10:00:00 INFO     loss: 0.5",
    "2026-01-01 10:00:00.123 | INFO     | pkg.mod:fit:12 - loss: 0.5",
    "[2026-01-01 10:00:00,123][root][INFO] - loss: 0.5",
    "[2026-01-01 10:00:00] loss: 0.5",
    "01/31/2026 10:00:00 - INFO - __main__ - loss: 0.5",
    "12:34:56 SUCCESS loss: 0.5",
    "INFO:root:loss: 0.5",
    "INFO:__main__:loss: 0.5",
    "[INFO] loss: 0.5",
    "[INFO|2026-01-01 10:00:00] pkg.callbacks:14 >> loss: 0.5",
    "[INFO|trainer.py:14] 2026-01-01 10:00:00,123 >> loss: 0.5",
    "[2026-01-01 10:00:00,123 INFO] loss: 0.5",
    "[2026-01-01 10:00:00 name] (main.py 23): INFO loss: 0.5",
    "[2026-01-01 10:00:00,123] [INFO] [logging.py:9:log] loss: 0.5",
    "[01/31 10:00:00 pkg.events]: loss: 0.5",
    "[01/31 10:00:00] pkg.engine INFO: loss: 0.5",
    "01/31 10:00:00 - name - INFO - loss: 0.5",
    "2026-01-01 10:00:00,123-INFO: loss: 0.5",
    "2026-01-01 10:00:00,123 pkg.trainer INFO: loss: 0.5",
    "2026-01-01 10:00:00 | INFO | root | loss: 0.5",
    "2026-01-01 10:00:00.123\thost:0\tpkg.train:77\tINFO\tloss: 0.5",
    "05 Aug 02:16    INFO  loss: 0.5",
    "May 01 10:00:00 host9 python3[77]: loss: 0.5",
    "Fri May  1 10:00:00 2026 loss: 0.5",
    "trainer-1  | loss: 0.5",
    "node-0: [INFO] loss: 0.5",
    "INFO - loss: 0.5",
    "26/01/31 10:00:00 ERROR Outer$Inner: 2026-01-31 10:00:00,123 INFO loss: 0.5",
    "2026-01-31 9:00:00.123\thost:0\tpkg.train:77\tINFO\tloss: 0.5",
    "I0519 16:28:41.434724      12 main.go:136] loss: 0.5",
    "I1009 17:56:42.674334 3280981 train.py:175] loss: 0.5",
];

#[test]
fn timestamps_and_loggers_are_stripped() {
    for line in OF_LOGGERS {
        assert_eq!(stripped(line), ("loss: 0.5", None, None), "{line}");
    }
    let at = Some(1_767_261_600.5);
    assert_eq!(stripped("2026-01-01T10:00:00.5Z loss: 0.5"), ("loss: 0.5", None, at));
    assert_eq!(stripped("[2026-01-01T10:00:00.5Z] loss: 0.5"), ("loss: 0.5", None, at));
}

#[test]
fn text_that_resembles_a_prefix_stays() {
    for line in [
        "[100] accuracy=0.5, loss=2.3",
        "[0]\ttrain-logloss:0.6",
        "[0/25][0/1583] Loss_D: 1.9845 Loss_G: 3.4000",
        "[1,  2000] loss: 2.186",
        "(epoch 1) loss: 0.5",
        "| epoch   1 |   200/ 2983 batches |",
        "Iter 10 - loss - 5",
        "ranking loss: 0.5",
        "12/40 [00:00<00:01]",
        "20260101 steps",
        "Epoch: 1",
        "ERRORS: 5",
        "INFOBOX: 1",
        "{'loss': 1}",
        "3: 0.5, 0.6 avg",
        "3: loss 0.5",
        "epoch 1 | loss 0.5",
        "l1-loss: 0.5",
        "step-1 loss 0.5",
        "train | loss 0.5",
        "May loss 0.5",
        "GPU memory: 5",
        "Rank 3 of 8",
        "[Process 1/100] loss: 0.5",
        "[GPU 10/24] loss: 0.5",
    ] {
        assert_eq!(stripped(line), (line, None, None), "{line}");
    }
    assert_eq!(stripped("2026-01-01 10:00:00 - INFO - | epoch 1 |").0, "| epoch 1 |");
    for text in ["TrainLoss: a", "ValTracker: loss 1", "BatchTime: 0.5", "train: loss 0.5"] {
        assert_eq!(stripped(&format!("2026-01-01 10:00:00 INFO {text}")).0, text);
    }
    for text in ["box.loss : 0.5", "epoch.1 : 0.5", "val.score : 0.5", "running: [1/3] loss: 1"] {
        assert_eq!(stripped(&format!("2026-01-01 10:00:00 INFO {text}")).0, text);
    }
    assert_eq!(stripped("[2026-01-01 10:00:00] [Valid] loss: 1").0, "[Valid] loss: 1");
    assert_eq!(stripped("(run pid=7) step:1 - loss:5").0, "step:1 - loss:5");
}

#[test]
fn process_is_read_from_prefixes_without_a_rank() {
    for (line, process) in [
        ("(train_fn pid=1234) loss: 0.5", "1234"),
        ("trainer-1  | loss: 0.5", "trainer-1"),
        ("node-0: loss: 0.5", "node-0"),
        ("[pod/train-0/main] loss: 0.5", "train-0/main"),
        ("May 01 10:00:00 host9 python3[77]: loss: 0.5", "77"),
    ] {
        let found = strip(line);
        assert_eq!(
            (found.text, found.process, found.rank),
            ("loss: 0.5", Some(process), None),
            "{line}"
        );
    }
}

#[test]
fn remembered_prefix_is_that_of_the_line_alone() {
    let prefixes = OF_LOGGERS.iter().filter_map(|line| line.strip_suffix("loss: 0.5"));
    let more = ["", "INFO:", "INFO", "2026-01-01 10:00:00 ", "[main] ", "(rank 1) ", "3: "];
    let prefixes: Vec<_> = prefixes.chain(more).collect();
    let texts = [
        "loss: 0.5",
        "loss - INFO - a",
        "train: loss 0.5",
        "pkg.mod: loss 0.5",
        "Fitter - loss 0.5",
        "node python3[77]: loss 0.5",
        "| epoch 1 | 5 |",
        "[1/50] loss 0.5",
        "(1/4) loss 0.5",
        "{'loss': 0.5}",
        "12/40 loss 0.5",
        "- 0.5",
    ];
    let lines = |from: &str, to: &str| {
        let all = prefixes.iter().flat_map(|prefix| texts.map(|text| format!("{prefix}{text}")));
        all.map(|line| line.replace(from, to)).collect::<Vec<_>>()
    };
    let (earlier, later) = (lines("", ""), lines("10:00:00", "11:22:33"));
    for first in &earlier {
        let mut stripper = Stripper::default();
        stripper.strip(first);
        for second in &later {
            assert_eq!(stripper.strip(second), strip(second), "after {first}");
        }
    }
}

//! Detection and segmentation: Darknet, Caffe, `PaddleSeg`.

use paceline_lines::observation::Span::{Interval, Step};

use super::Grammar;
use super::shape::Shape;
use super::table::Table;

/// The grammars of this family.
pub(super) fn grammars() -> Vec<Box<dyn Grammar>> {
    vec![
        Box::new(darknet()),
        Box::new(caffe()),
        Box::new(paddleseg()),
        Box::new(faster_rcnn()),
        Box::new(yolo()),
    ]
}

/// The lines of single layers print parts of the loss of a batch.
fn darknet() -> Table {
    let shapes = [
        Shape::new("{step}: {loss}, {loss} avg{..}, {_} rate, {s} seconds, {_} images")
            .train("loss", Step)
            .train("avg loss", Interval),
        Shape::new("v3 ({..}loss").known(),
        Shape::new("Region {_} Avg").known(),
    ];
    Table::new("darknet", shapes)
}

/// The parts of the loss before their sum, without marks.
fn yolo() -> Table {
    let shape =
        Shape::new("[Epoch {epoch}/{epochs}, Batch {batch}/{total}] [Losses: {..}total {loss},");
    Table::new("yolo", [shape.train("total loss", Step)])
}

fn caffe() -> Table {
    let shapes = [
        Shape::new("Iteration {step} ({rate} iter/s, {..} iters), loss = {loss}")
            .train("loss", Step),
        Shape::new("Iteration {step}, loss = {loss}").train("loss", Step),
        // Only outputs that are losses have a weight.
        Shape::new("Test net output #{_}: {..} = {loss} (* ").validation("loss"),
        Shape::new("Train net output #").known(),
    ];
    Table::new("caffe", shapes)
}

/// Its `iter` counts those of the run, although the epoch is printed beside it.
fn paddleseg() -> Table {
    let shape = Shape::new(
        "[TRAIN] epoch: {epoch}, iter: {step}/{total}, loss: {loss}, lr: {_}, batch_cost: {s}",
    );
    Table::new("paddleseg", [shape.train("loss", Step)])
}

/// The time of a step, below the losses.
fn faster_rcnn() -> Table {
    Table::new("faster r-cnn", [Shape::new("speed: {s}s / iter")])
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn darknet() {
        let table = [
            (
                "501: 2.5, 2.75 avg, 0.001 rate, 1.25 seconds, 32064 images",
                "step 501, 1.25 s, loss=2.5 Step, avg loss=2.75 Interval",
            ),
            (
                " 47: 812.5, 900.25 avg loss, 0.000000 rate, 3.5 seconds, 3008 images, 7.5 hours left",
                "step 47, 3.5 s, loss=812.5 Step, avg loss=900.25 Interval",
            ),
            (
                "v3 (iou loss, Normalizer: (iou: 0.07) Region 139 Avg (IOU: 0.1), count: 2, class_loss = 4.5, total_loss = 6.5",
                "",
            ),
            ("Region Avg IOU: 0.5, Class: 0.8, Obj: 0.7, count: 8", ""),
        ];
        check("darknet", false, &table);
    }

    #[test]
    fn caffe() {
        let table = [
            (
                "I1109 10:34:34.280992  77 solver.cpp:219] Iteration 50 (0.25 iter/s, 40s/10 iters), loss = 0.75",
                "step 50, 4 s, loss=0.75 Step",
            ),
            ("Iteration 20, loss = nan", "step 20, loss=NaN Step"),
            ("Test net output #1: loss_x = 0.5 (* 1 = 0.5 loss)", "loss=0.5 Validation Epoch"),
            ("Test net output #0: accuracy = 0.9", ""),
            ("    Train net output #0: loss_x16 = 0.25 (* 1 = 0.25 loss)", ""),
        ];
        check("caffe", true, &table);
    }

    #[test]
    fn paddleseg() {
        let table = [(
            "2026-01-01 10:00:00 [INFO]\t[TRAIN] epoch: 2, iter: 40/900, loss: 1.5, lr: 0.01, batch_cost: 0.25, reader_cost: 0.01, ips: 8.0 samples/sec | ETA 00:03:35",
            "epoch 2, step 40/900, 0.25 s, loss=1.5 Step",
        )];
        check("paddleseg", true, &table);
    }
}

"""What other programs' readers see, as JSON on standard output.

`readers.py tensorboard FOLDER` reads the event files of a folder with TensorBoard's own reader.
`readers.py otlp FILE` decodes the body of a request with the messages of OpenTelemetry.
"""

import json
import math
import sys


def tensorboard(folder):
    from tensorboard.backend.event_processing import event_accumulator

    # Every scalar is kept.
    reader = event_accumulator.EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    scalars = {
        tag: [[event.step, event.wall_time, event.value] for event in reader.Scalars(tag)]
        for tag in reader.Tags()["scalars"]
    }
    return {
        "version": reader.file_version,
        "scalars": scalars,
    }


def attributes(pairs):
    return {pair.key: pair.value.string_value for pair in pairs}


def points(data):
    for point in data.data_points:
        yield {"labels": attributes(point.attributes), "value": point.as_double}


def otlp(file):
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

    request = metrics_service_pb2.ExportMetricsServiceRequest()
    with open(file, "rb") as body:
        data = body.read()
    read = request.ParseFromString(data)
    # A field that the messages do not know would be lost when they are written again.
    assert read == len(data) and request.SerializeToString(deterministic=True), "it is read as a whole"
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    metrics = {}
    for metric in scope.metrics:
        kind = metric.WhichOneof("data")
        data = getattr(metric, kind)
        one = {"kind": kind, "unit": metric.unit, "help": metric.description}
        if kind == "histogram":
            (point,) = data.data_points
            bounds = list(point.explicit_bounds)
            assert len(point.bucket_counts) == len(bounds) + 1
            assert sum(point.bucket_counts) == point.count and bounds == sorted(bounds)
            one |= {"count": point.count, "sum": point.sum, "temporality": data.aggregation_temporality}
        else:
            one["points"] = list(points(data))
            assert all(math.isfinite(point["value"]) for point in one["points"])
        if kind == "sum":
            one |= {"monotonic": data.is_monotonic, "temporality": data.aggregation_temporality}
        metrics[metric.name] = one
    return {"resource": attributes(resource.resource.attributes), "metrics": metrics}


if __name__ == "__main__":
    command, path = sys.argv[1:]
    json.dump({"tensorboard": tensorboard, "otlp": otlp}[command](path), sys.stdout)

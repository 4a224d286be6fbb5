use prost::Message;
use serde_json::json;

use super::*;

const TEXT: &str = "\
# HELP paceline_loss Mean of the last reported losses.
# TYPE paceline_loss gauge
paceline_loss 118.5
# HELP paceline_steps_total Steps that were made.
# TYPE paceline_steps_total counter
paceline_steps_total 3
# HELP paceline_target_loss The loss.
# TYPE paceline_target_loss gauge
paceline_target_loss{tier=\"acceptable\"} 120
paceline_target_loss{tier=\"objective\"} NaN
# HELP paceline_batch_duration_seconds How long a batch took.
# TYPE paceline_batch_duration_seconds histogram
paceline_batch_duration_seconds_bucket{le=\"0.05\"} 2
paceline_batch_duration_seconds_bucket{le=\"1\"} 2
paceline_batch_duration_seconds_bucket{le=\"600\"} 5
paceline_batch_duration_seconds_bucket{le=\"+Inf\"} 6
paceline_batch_duration_seconds_sum 700.042
paceline_batch_duration_seconds_count 6
";
const TIMES: Times = Times { start: 1_700_000_000.5, now: 1_700_000_060.0 };

fn example() -> ExportMetricsServiceRequest {
    message(TEXT, TIMES, &[("service.name".to_owned(), "vae".to_owned())])
}

fn metrics(message: &ExportMetricsServiceRequest) -> &[Metric] {
    &message.resource_metrics[0].scope_metrics[0].metrics
}

#[test]
fn metrics_keep_their_names_and_get_units() {
    let message = example();
    let all: Vec<_> = metrics(&message)
        .iter()
        .map(|metric| (metric.name.as_str(), metric.unit.as_str()))
        .collect();
    let expected = [
        ("paceline_loss", ""),
        ("paceline_steps_total", "{step}"),
        ("paceline_target_loss", ""),
        ("paceline_batch_duration_seconds", "s"),
    ];
    assert_eq!(all, expected);
    for (name, expected) in [
        ("paceline_allocator_memory_bytes", "By"),
        ("paceline_cpu_throttled_seconds_total", "s"),
        ("paceline_last_checkpoint_timestamp_seconds", "s"),
        ("paceline_cpu_quota_cores", "{cpu}"),
        ("paceline_progress_ratio", "1"),
    ] {
        assert_eq!(unit(name), expected, "{name}");
    }
}

#[test]
fn counters_are_cumulative_and_grow_from_the_start() {
    let message = example();
    let Some(Data::Sum(sum)) = &metrics(&message)[1].data else { panic!("a counter is a sum") };
    assert!(sum.is_monotonic && sum.aggregation_temporality == CUMULATIVE);
    let [point] = &sum.data_points[..] else { panic!("it has one value") };
    assert_eq!(point.value, Some(Number::AsDouble(3.0)));
    assert_eq!(point.start_time_unix_nano, 1_700_000_000_500_000_000);
    assert_eq!(point.time_unix_nano, 1_700_000_060_000_000_000);
}

#[test]
fn value_that_is_not_finite_is_left_out() {
    let message = example();
    let Some(Data::Gauge(gauge)) = &metrics(&message)[2].data else { panic!("it is a gauge") };
    let [point] = &gauge.data_points[..] else { panic!("it has one finite value") };
    assert_eq!(point.attributes, attributes([("tier", "acceptable")].into_iter()));
}

#[test]
fn histogram_has_the_counts_between_its_bounds() {
    let message = example();
    let Some(Data::Histogram(histogram)) = &metrics(&message)[3].data else {
        panic!("a histogram")
    };
    let [point] = &histogram.data_points[..] else { panic!("it has one set of labels") };
    assert_eq!(point.explicit_bounds, [0.05, 1.0, 600.0]);
    assert_eq!(point.bucket_counts, [2, 0, 3, 1]);
    assert_eq!((point.count, point.sum), (6, Some(700.042)));
    assert!(point.attributes.is_empty());
}

#[test]
fn message_is_read_back_from_its_bytes() {
    let message = example();
    let read = ExportMetricsServiceRequest::decode(&message.encode_to_vec()[..]).unwrap();
    assert_eq!(read, message);
}

#[test]
fn json_has_the_names_and_numbers_of_otlp() {
    let json = serde_json::to_value(example()).unwrap();
    let of = &json["resourceMetrics"][0];
    let expected = json!([{"key": "service.name", "value": {"stringValue": "vae"}}]);
    assert_eq!(of["resource"]["attributes"], expected);
    let metrics = &of["scopeMetrics"][0]["metrics"];
    assert_eq!(
        metrics[1],
        json!({
            "name": "paceline_steps_total",
            "description": "Steps that were made.",
            "unit": "{step}",
            "sum": {
                "dataPoints": [{
                    "attributes": [],
                    "startTimeUnixNano": "1700000000500000000",
                    "timeUnixNano": "1700000060000000000",
                    "asDouble": 3.0,
                }],
                "aggregationTemporality": 2,
                "isMonotonic": true,
            },
        })
    );
    let point = &metrics[3]["histogram"]["dataPoints"][0];
    assert_eq!(point["bucketCounts"], json!(["2", "0", "3", "1"]));
    assert_eq!((&point["count"], &point["sum"]), (&json!("6"), &json!(700.042)));
}

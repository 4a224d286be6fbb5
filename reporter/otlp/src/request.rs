//! Makes OTLP's message of a Prometheus text.

use crate::exposition::{Family, Kind, Sample, families};
use crate::proto::{
    AnyValue, CUMULATIVE, Data, ExportMetricsServiceRequest, Gauge, Histogram, HistogramDataPoint,
    InstrumentationScope, KeyValue, Metric, Number, NumberDataPoint, Resource, ResourceMetrics,
    ScopeMetrics, Sum,
};

/// When values were counted and read, in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Since when.
    pub start: f64,
    /// When they were read.
    pub now: f64,
}

/// The message for the metrics in `text`. `resource` says who sends.
pub fn message(
    text: &str,
    times: Times,
    resource: &[(String, String)],
) -> ExportMetricsServiceRequest {
    let pairs = resource.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let metrics = families(text).iter().filter_map(|family| metric(family, times)).collect();
    let scope = InstrumentationScope {
        name: "paceline".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource { attributes: attributes(pairs) }),
            scope_metrics: vec![ScopeMetrics { scope: Some(scope), metrics }],
        }],
    }
}

fn metric(family: &Family<'_>, times: Times) -> Option<Metric> {
    let points = || -> Vec<_> {
        family.samples.iter().filter_map(|sample| point(sample, family.kind, times)).collect()
    };
    let is_empty;
    let data = match family.kind {
        Kind::Gauge => {
            let data_points = points();
            is_empty = data_points.is_empty();
            Data::Gauge(Gauge { data_points })
        }
        Kind::Counter => {
            let data_points = points();
            is_empty = data_points.is_empty();
            let aggregation_temporality = CUMULATIVE;
            Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic: true })
        }
        Kind::Histogram => {
            let data_points = histograms(family, times);
            is_empty = data_points.is_empty();
            Data::Histogram(Histogram { data_points, aggregation_temporality: CUMULATIVE })
        }
    };
    (!is_empty).then(|| Metric {
        name: family.name.to_owned(),
        description: family.help.clone(),
        unit: unit(family.name).to_owned(),
        data: Some(data),
    })
}

/// The unit in UCUM, by the end of a metric's name.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    let units = [
        ("_seconds", "s"),
        ("_bytes", "By"),
        ("_ratio", "1"),
        ("_cores", "{cpu}"),
        ("_cpus", "{cpu}"),
        ("_steps", "{step}"),
    ];
    units.into_iter().find(|(end, _)| name.ends_with(end)).map_or("", |(_, unit)| unit)
}

/// A value; `None` if it is not finite.
fn point(sample: &Sample<'_>, kind: Kind, times: Times) -> Option<NumberDataPoint> {
    let value = sample.value.parse().ok().filter(|value: &f64| value.is_finite())?;
    Some(NumberDataPoint {
        attributes: attributes(sample.labels.iter().map(|(key, text)| (*key, text.as_str()))),
        start_time_unix_nano: if kind == Kind::Gauge { 0 } else { nanos(times.start) },
        time_unix_nano: nanos(times.now),
        value: Some(Number::AsDouble(value)),
    })
}

/// The histograms of a family: one for each set of labels.
fn histograms(family: &Family<'_>, times: Times) -> Vec<HistogramDataPoint> {
    let mut all: Vec<(Vec<KeyValue>, Parts)> = Vec::new();
    for sample in &family.samples {
        let labels = sample.labels.iter().filter(|(key, _)| *key != "le");
        let labels = attributes(labels.map(|(key, text)| (*key, text.as_str())));
        let at = all.iter().position(|(known, _)| *known == labels).unwrap_or(all.len());
        if at == all.len() {
            all.push((labels, Parts::default()));
        }
        if let Some((_, parts)) = all.get_mut(at) {
            parts.add(sample);
        }
    }
    all.into_iter().filter_map(|(attributes, parts)| parts.point(attributes, times)).collect()
}

/// What is read of a histogram.
#[derive(Debug, Default)]
struct Parts {
    /// Bounds, and how many values are at most so large.
    below: Vec<(f64, u64)>,
    sum: Option<f64>,
    count: Option<u64>,
}

impl Parts {
    fn add(&mut self, sample: &Sample<'_>) {
        let bound = sample.labels.iter().find(|(key, _)| *key == "le");
        if let Some((_, bound)) = bound {
            self.below.extend(bound.parse().ok().zip(sample.value.parse().ok()));
        } else if sample.name.ends_with("_sum") {
            self.sum = sample.value.parse().ok().filter(|sum: &f64| sum.is_finite());
        } else {
            self.count = sample.value.parse().ok();
        }
    }

    fn point(self, attributes: Vec<KeyValue>, times: Times) -> Option<HistogramDataPoint> {
        let count = self.count?;
        let mut before = 0;
        let mut explicit_bounds = Vec::new();
        let mut bucket_counts = Vec::new();
        for (bound, below) in self.below.iter().filter(|(bound, _)| bound.is_finite()) {
            explicit_bounds.push(*bound);
            bucket_counts.push(below.saturating_sub(before));
            before = *below;
        }
        bucket_counts.push(count.saturating_sub(before));
        Some(HistogramDataPoint {
            attributes,
            start_time_unix_nano: nanos(times.start),
            time_unix_nano: nanos(times.now),
            count,
            sum: self.sum,
            bucket_counts,
            explicit_bounds,
        })
    }
}

fn attributes<'t>(pairs: impl Iterator<Item = (&'t str, &'t str)>) -> Vec<KeyValue> {
    let value = |text: &str| Some(AnyValue { string_value: text.to_owned() });
    pairs.map(|(key, text)| KeyValue { key: key.to_owned(), value: value(text) }).collect()
}

/// Unix seconds as nanoseconds; 0 if they are none.
fn nanos(seconds: f64) -> u64 {
    let time = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(0)
}

#[cfg(test)]
mod tests;

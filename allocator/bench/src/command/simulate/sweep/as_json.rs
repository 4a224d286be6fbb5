//! A sweep for programs.

use paceline_sim::sweep::Measured;
use serde_json::{Map as Object, Value, json};

use super::super::as_json::lines;
use super::{Map, Swept};

pub(super) fn text(swept: &Swept<'_>) -> serde_json::Result<String> {
    let axes: Vec<Value> = swept
        .sweep
        .axes()
        .iter()
        .map(|axis| json!({"parameter": axis.name(), "values": axis.values}))
        .collect();
    let other = |(arm, figure): &(_, Option<Measured>)| of(arm, *figure);
    let others: Vec<Value> = swept.others.iter().map(other).collect();
    lines(&json!({
        "scenario": swept.scenario.name,
        "description": swept.scenario.description,
        "metric": swept.measure.to_string(),
        "unit": swept.measure.unit(),
        "seeds": swept.seeds,
        "axes": axes,
        "policies": swept.maps.iter().map(|map| policy(swept, map)).collect::<Vec<_>>(),
        "others": others,
    }))
}

fn policy(swept: &Swept<'_>, map: &Map) -> Value {
    let points = swept.sweep.points();
    let point = |(values, figure): (&Vec<f64>, &Option<Measured>)| {
        let axes = swept.sweep.axes().iter().zip(values);
        let params = axes.map(|(axis, value)| (axis.parameter.clone(), json!(value)));
        json!({
            "params": params.collect::<Object<String, Value>>(),
            "mean": figure.map(|figure| figure.interval.mean),
            "half": figure.and_then(|figure| figure.interval.half),
            "change": swept.change(*figure),
            "leaves_out_jobs": leaves_out_jobs(*figure),
        })
    };
    json!({
        "policy": map.arm.policy,
        "variant": map.arm.variant.to_string(),
        "points": points.iter().zip(&map.figures).map(point).collect::<Vec<_>>(),
    })
}

fn of(arm: &paceline_sim::scenario::Arm, figure: Option<Measured>) -> Value {
    json!({
        "policy": arm.policy,
        "variant": arm.variant.to_string(),
        "mean": figure.map(|figure| figure.interval.mean),
        "half": figure.and_then(|figure| figure.interval.half),
        "leaves_out_jobs": leaves_out_jobs(figure),
    })
}

fn leaves_out_jobs(figure: Option<Measured>) -> bool {
    figure.is_some_and(|figure| figure.leaves_out_jobs)
}

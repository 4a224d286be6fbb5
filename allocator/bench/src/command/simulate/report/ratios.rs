//! How far each policy is from the bounds.

use anyhow::Result;
use paceline_sim::compare::Comparison;

use super::{Section, alone};
use crate::figure::Axis;
use crate::figure::bars::{Bar, Group, draw};
use crate::figure::palette::colour;

pub(super) fn section(all: &Comparison) -> Result<Option<Section>> {
    let mut groups = Vec::new();
    for metric in all.metrics() {
        let ratios: Vec<Option<f64>> =
            all.results.iter().map(|results| all.ratio(results, metric)).collect();
        if ratios.iter().all(Option::is_none) {
            continue;
        }
        let bar = |(place, value): (usize, Option<f64>)| {
            let text = value.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
            Bar::new(value, colour(place), text)
        };
        let bars = ratios.into_iter().enumerate().map(bar).collect();
        groups.push(Group { name: metric.title.to_owned(), bars });
    }
    if groups.is_empty() {
        return Ok(None);
    }
    let ratios = groups.iter().flat_map(|group| &group.bars).filter_map(|bar| bar.value);
    let most = ratios.fold(1.0, f64::max);
    let x = Axis::even("times the bound", 0.0, 1.2 * most);
    let svg = draw(&x, &groups, Some(1.0), "Each policy's figures as multiples of their bounds")?;
    Ok(Some(Section {
        title: "Distance to the optimum",
        caption: "Each policy's figure divided by the bound that no policy can beat. The vertical line \
                  is the bound. Where less is better, bars end to its right, and nearer is better. \
                  Where more is better, as with targets met, they end to its left.",
        body: alone(&svg),
    }))
}

//! Compares the figures on the page with the API.

use anyhow::ensure;
use paceline_api::live::Snapshot;
use paceline_api::live::snapshot::JobView;
use serde_json::Value;

use super::webdriver::Browser;

/// Returns, for each job, the texts of its row: name, standing, class, loss, batch, use, limit.
pub(super) const ROWS: &str = "return [...document.querySelectorAll('#overview tbody tr')]
    .map((row) => [...row.cells].map((cell) => cell.textContent));";

/// Returns the figures on the card of each job, by name.
const CARDS: &str = "return [...document.querySelectorAll('.card')].map((card) => ({
    name: card.querySelector('h3 b').textContent,
    badge: card.querySelector('.badge').textContent,
    trouble: card.querySelector('.trouble').hidden ? null : card.querySelector('.trouble').textContent,
    why: card.querySelector('.why').textContent,
    figures: [...card.querySelectorAll('.figures dd')].map((dd) => dd.firstChild.textContent),
}));";

/// What the page shows of every job.
pub(super) struct Shown {
    rows: Value,
    cards: Value,
}

impl Shown {
    pub(super) fn read(browser: &Browser) -> anyhow::Result<Self> {
        Ok(Self { rows: browser.run(ROWS)?, cards: browser.run(CARDS)? })
    }

    /// Fails unless it agrees with `status` to the digits shown.
    pub(super) fn ensure_is(&self, status: &Snapshot) -> anyhow::Result<()> {
        let (rows, cards) = (list(&self.rows), list(&self.cards));
        ensure!(rows.len() == status.jobs.len() && cards.len() == rows.len(), "{rows:?} {cards:?}");
        let shown = rows.iter().zip(cards);
        status.jobs.iter().zip(shown).try_for_each(|(job, (row, card))| ensure_job(job, row, card))
    }
}

fn ensure_job(job: &JobView, row: &Value, card: &Value) -> anyhow::Result<()> {
    let figures = &card["figures"];
    ensure!(row[0] == job.job.as_str() && card["name"] == job.job.as_str(), "{row} {card}");
    let standing = format!("{:?}", job.standing).to_lowercase();
    ensure!(row[1] == standing.as_str() && card["badge"] == standing.as_str(), "{row} {card}");
    for shown in [&row[3], &figures[0]] {
        ensure!(close(shown, job.last_loss, 1.0), "loss {shown} is not {:?}", job.last_loss);
    }
    for shown in [&row[4], &figures[1]] {
        let unit = if text(shown).ends_with("ms") { 1000.0 } else { 1.0 };
        ensure!(close(shown, job.batch_latency, unit), "{shown}: {:?}", job.batch_latency);
    }
    for shown in [&row[5], &figures[3]] {
        ensure!(close(shown, job.cpu, 100.0), "use {shown} is not {:?}", job.cpu);
    }
    let limit = job.limit.filter(|limit| *limit < 1.0);
    for shown in [&row[6], &figures[2]] {
        let none = limit.is_none() && (text(shown) == "none") == job.limit.is_some();
        ensure!(none || close(shown, limit, 100.0), "limit {shown} is not {:?}", job.limit);
    }
    ensure!(card["trouble"].as_str() == job.trouble.as_deref(), "{card}");
    ensure!(text(&card["why"]).ends_with(job.why.as_deref().unwrap_or_default()), "{card}");
    Ok(())
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether the text is `known` times `unit`, to the digits shown. A dash means no value.
fn close(shown: &Value, known: Option<f64>, unit: f64) -> bool {
    let number = text(shown).split(' ').next().and_then(|word| word.parse::<f64>().ok());
    match (number, known) {
        (Some(number), Some(known)) => {
            let known = known * unit;
            let exact = if text(shown).ends_with('%') { 0.0501 } else { 1e-3 * known.abs() };
            (number - known).abs() <= exact
        }
        (None, None) => text(shown) == "–",
        _ => false,
    }
}

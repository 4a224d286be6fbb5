//! What the page shows.

use std::time::Duration;

use anyhow::ensure;
use paceline_api::live::snapshot::Standing;
use paceline_system_tests::sample_snapshot::{self, HOSTILE};

use super::figures::{ROWS, Shown, list, text};
use super::webdriver::Browser;
use super::{BEGAN, PAST, Stage, picture, status};

pub(super) fn figures_agree(stage: &Stage) -> anyhow::Result<()> {
    for t in [f64::from(PAST) + 1.0, f64::from(PAST) + 30.0] {
        stage.look(t);
        let running = format!(
            "return document.querySelector('#run dd').textContent.startsWith('{} min {} s')",
            (t / 60.0).floor(),
            t % 60.0
        );
        stage.browser.until("the snapshot is shown", &running)?;
        Shown::read(&stage.browser)?.ensure_is(&status(&stage.browser)?)?;
    }
    Ok(())
}

pub(super) fn charts_have_a_past(stage: &Stage) -> anyhow::Result<()> {
    stage.browser.run("document.querySelector('.card svg').scrollIntoView()")?;
    stage.browser.until("the first chart has a line of many points",
        "return document.querySelector('.card path.line').getAttribute('d').split('L').length > 100")?;
    let names = stage.browser.run("return [...document.querySelectorAll('.card:first-child .chart .tag')].map((tag) => tag.textContent)")?;
    ensure!(list(&names).iter().any(|name| name == "acceptable"), "{names}");
    stage.browser.run("document.querySelector('.card summary').click()")?;
    stage.browser.until(
        "decisions are listed with their reasons",
        "const rows = document.querySelectorAll('.card:first-child .past tbody tr');
         return rows.length >= 20 && rows[0].textContent.includes('growth 0.0041')",
    )
}

/// Whether the labels of both targets in the first chart are apart, and whole within the chart.
const LABELS_ARE_APART: &str = "
    const chart = document.querySelector('.card:first-child .chart');
    const boxes = [...chart.querySelectorAll('.tag')].map((tag) => tag.getBoundingClientRect());
    const around = chart.getBoundingClientRect();
    if (boxes.some((box) => box.top < around.top || box.bottom > around.bottom + 1)) return false;
    const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top + 3 || b.bottom <= a.top + 3;
    return boxes.length === 2 && apart(...boxes);";

pub(super) fn target_labels_are_apart(stage: &Stage) -> anyhow::Result<()> {
    stage.browser.run("document.querySelector('.card svg').scrollIntoView()")?;
    for (acceptable, objective) in
        [(120.0, 119.0), (120.0, 110.0), (110.0, 120.0), (520.0, 500.0), (540.0, 480.0)]
    {
        let mut snapshot = sample_snapshot::snapshot(BEGAN, f64::from(PAST) + 1.0);
        let targets = &mut snapshot.jobs[0].targets;
        (targets.acceptable, targets.objective) = (Some(acceptable), Some(objective));
        stage.show(snapshot);
        let shown = format!(
            "return document.querySelector('.card svg').getAttribute('aria-label')
             .endsWith('acceptable {acceptable}, objective {objective}')"
        );
        stage.browser.until("the targets are shown", &shown)?;
        let apart = stage.browser.run(LABELS_ARE_APART)?;
        ensure!(apart == true, "labels of {acceptable} and {objective} overlap or are cut");
    }
    Ok(())
}

pub(super) fn names_stay_text(stage: &Stage) -> anyhow::Result<()> {
    let seen = stage.browser.run(
        "return [...document.querySelectorAll('h3 b, #overview b')].map((b) => b.textContent)",
    )?;
    let times = list(&seen).iter().filter(|name| *name == HOSTILE).count();
    ensure!(times == 2, "in its row and on its card: {seen}");
    let images =
        stage.browser.run("return document.querySelectorAll('img:not([alt=\"\"])').length")?;
    ensure!(images == 0, "{images} images");
    // The page's content security policy forbids turning text into markup.
    let refused = stage.browser.run(
        "try { document.body.innerHTML = '<b>x</b>'; return false; } catch { return true; }",
    )?;
    ensure!(refused == true, "markup could be made of text");
    Ok(())
}

pub(super) fn card_links_to_the_job(stage: &Stage) -> anyhow::Result<()> {
    let links = stage.browser.run(
        "return [...document.querySelectorAll('.card .own-page')]
             .filter((link) => link.checkVisibility()).map((link) => link.href)",
    )?;
    ensure!(links == serde_json::json!(["http://127.0.0.1:7230/"]), "{links}");
    Ok(())
}

pub(super) fn all_is_own(stage: &Stage) -> anyhow::Result<()> {
    let elsewhere = stage.browser.run(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)
             .filter((name) => !name.startsWith(location.origin + '/'))",
    )?;
    ensure!(list(&elsewhere).is_empty(), "{elsewhere}");
    let complaints = stage.browser.complaints()?;
    ensure!(list(&complaints).is_empty(), "{complaints}");
    Ok(())
}

/// Finds texts with a contrast under 4.5 against their background, and content wider than the screen.
pub(super) const UNREADABLE: &str = "
    const light = (rgb) => {
      const [r, g, b] = rgb.map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const ground = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const found = parts(getComputedStyle(at).backgroundColor);
        if (found[3] !== 0) return found.slice(0, 3);
      }
      return [255, 255, 255];
    };
    const bad = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const element = walk.currentNode.parentElement;
      if (!walk.currentNode.textContent.trim() || !element.checkVisibility()) continue;
      if (element.closest('script, noscript, .skip')) continue;
      const style = getComputedStyle(element);
      const ink = parts(element.closest('svg') ? style.fill : style.color).slice(0, 3);
      const [dark, bright] = [light(ink), light(ground(element))].sort((a, b) => a - b);
      const contrast = (bright + 0.05) / (dark + 0.05);
      if (contrast < 4.5) bad.push(`${walk.currentNode.textContent}: ${contrast.toFixed(2)}`);
    }
    if (document.documentElement.scrollWidth > innerWidth) bad.push(`${document.documentElement.scrollWidth} px wide`);
    return bad;";

pub(super) fn cluster_is_shown(stage: &Stage) -> anyhow::Result<()> {
    let mut now = f64::from(PAST);
    in_every_light(&stage.browser, "cluster-", || {
        now += 1.0;
        stage.show(sample_snapshot::cluster(BEGAN, now));
        let rows = "document.querySelectorAll('#machines tbody tr, #gangs tbody tr').length";
        stage.browser.until("both tables are there", &format!("return {rows} === 4"))
    })?;
    let seen = stage.browser.run(
        "return [...document.querySelectorAll('#machines tbody tr, #gangs tbody tr')]
             .map((row) => [row.cells[0].textContent, row.cells[row.cells.length - 1].textContent])",
    )?;
    let rows = list(&seen);
    let remark = |at: usize| text(&rows[at][1]);
    ensure!(rows[0][0] == "w1" && remark(0).is_empty(), "{seen}");
    ensure!(remark(1).starts_with("cannot reach the agent"), "{seen}");
    ensure!(remark(2) == "1 server and 2 workers on w1, 1 worker on w2", "{seen}");
    ensure!(rows[3][0] == HOSTILE && remark(3).contains("no job gives capacity"), "{seen}");
    // A run on one machine has no such tables.
    stage.look(now + 1.0);
    stage.browser.until("both are gone", "return document.querySelector('#gangs').hidden")
}

/// The running job ends in 20 s. Another waits for it and ends 40 s later.
pub(super) fn order_is_drawn(stage: &Stage) -> anyhow::Result<()> {
    let mut snapshot = sample_snapshot::snapshot(BEGAN, f64::from(PAST) + 1.0);
    let now = snapshot.now;
    let first = snapshot.jobs[1].job.clone();
    for (at, ends, fair, waits_for) in [(0, 60.0, 80.0, Some(&first)), (1, 20.0, 40.0, None)] {
        let job = &mut snapshot.jobs[at];
        job.work_left = Some(ends / 2.0);
        (job.ends_at, job.fair_ends_at) = (Some(now + ends), Some(now + fair));
        job.waits_for = waits_for.cloned();
    }
    let names = [first, snapshot.jobs[0].job.clone()];
    // The past is read from the API, and is drawn with the snapshot after that.
    let is_drawn = || {
        stage.show(snapshot.clone());
        std::thread::park_timeout(Duration::from_millis(100));
        stage.browser.run(
            "return document.querySelectorAll('#order rect.ahead').length === 2
                 && document.querySelectorAll('#order rect.used').length > 10",
        )
    };
    let mut tries = (0..600).map(|_| is_drawn());
    ensure!(tries.any(|drawn| drawn.is_ok_and(|drawn| drawn == true)), "the order is not drawn");
    let seen = stage.browser.run(
        "const all = (what) => [...document.querySelectorAll('#order svg ' + what)];
         const number = (one, name) => Number(one.getAttribute(name));
         return {
             names: all('text.job title').map((title) => title.textContent),
             bars: all('rect.ahead').map((bar) => [number(bar, 'x'), number(bar, 'width')]),
             fair: all('line.fair').map((line) => number(line, 'x1')),
             now: number(all('line.now')[0], 'x1'),
             used: all('rect.used').length,
             words: document.querySelector('#order svg').getAttribute('aria-label'),
         };",
    )?;
    ensure!(seen["names"] == serde_json::json!(names), "{seen}");
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
    let bar = |at: usize| (number(&seen["bars"][at][0]), number(&seen["bars"][at][1]));
    let ((begins, width), (later, longer), now) = (bar(0), bar(1), number(&seen["now"]));
    let near = |a: f64, b: f64| (a - b).abs() < 0.5;
    ensure!(
        near(begins, now) && near(later, begins + width) && near(longer, 2.0 * width),
        "{seen}"
    );
    let fair = |at: usize| number(&seen["fair"][at]) - now;
    ensure!(near(fair(0), 2.0 * width) && near(fair(1), 4.0 * width), "{seen}");
    ensure!(seen["used"].as_u64() > Some(10), "the past is drawn: {seen}");
    let words = format!("Expected order: {} ends in 20 s, under equal sharing in 40 s", names[0]);
    ensure!(text(&seen["words"]).starts_with(&words), "{seen}");
    stage.browser.run("document.querySelector('#order').scrollIntoView()")?;
    picture(&stage.browser, "order")
}

pub(super) fn is_readable(stage: &Stage) -> anyhow::Result<()> {
    let mut now = f64::from(PAST);
    in_every_light(&stage.browser, "", || {
        now += 1.0;
        stage.look(now);
        Ok(())
    })
}

/// Checks the page in light and dark, wide and narrow, and saves screenshots whose names begin
/// with `kind`. `prepare` is called before each check.
pub(super) fn in_every_light(
    browser: &Browser,
    kind: &str,
    mut prepare: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for scheme in ["light", "dark"] {
        for (size, width, height) in [("wide", 1280, 2000), ("narrow", 360, 3600)] {
            browser.look(scheme, width, height)?;
            browser.run("document.querySelector('details').open = true; scrollTo(0, 0)")?;
            prepare()?;
            browser.until(
                "charts are drawn",
                "return document.querySelectorAll('.card path.line').length >= 6",
            )?;
            let bad = browser.run(UNREADABLE)?;
            ensure!(list(&bad).is_empty(), "{scheme}, {width} px: {bad}");
            picture(browser, &format!("{kind}{scheme}-{size}"))?;
        }
    }
    Ok(())
}

/// Finds elements without a name for a screen reader, or out of the keyboard's reach.
const NAMELESS: &str = "
    const bad = [];
    for (const svg of document.querySelectorAll('svg:not([aria-hidden])')) if (!svg.getAttribute('aria-label')) bad.push('a chart has no words');
    for (const input of document.querySelectorAll('input')) if (!input.labels.length) bad.push('an input has no label');
    for (const image of document.querySelectorAll('img')) if (!image.hasAttribute('alt')) bad.push('an image has no alt');
    for (const head of document.querySelectorAll('th')) if (!head.scope) bad.push('a heading has no scope');
    for (const region of document.querySelectorAll('[role=region], .bar')) if (!region.getAttribute('aria-label')) bad.push('a region has no name');
    for (const region of document.querySelectorAll('.scroll')) if (region.tabIndex !== 0) bad.push('what scrolls cannot be reached');
    const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
    if (new Set(ids).size !== ids.length) bad.push('an id is there twice');
    for (const one of document.querySelectorAll('[aria-labelledby]')) if (!document.getElementById(one.getAttribute('aria-labelledby'))) bad.push('a label is missing');
    if (!document.documentElement.lang || !document.title) bad.push('no language or no title');
    if (document.querySelectorAll('h1').length !== 1) bad.push('not one h1');
    if (!document.querySelector('[role=status]') || !document.querySelector('main')) bad.push('no status or no main');
    return bad;";

pub(super) fn is_accessible(stage: &Stage) -> anyhow::Result<()> {
    stage.browser.until("charts are drawn", "return document.querySelector('.card path.line')")?;
    let bad = stage.browser.run(NAMELESS)?;
    ensure!(list(&bad).is_empty(), "{bad}");
    let alt = stage
        .browser
        .run("return document.querySelector('.card svg').getAttribute('aria-label')")?;
    ensure!(text(&alt).starts_with("Loss over ") && text(&alt).contains("acceptable 120"), "{alt}");
    // The focus must survive a new snapshot.
    stage.browser.run("document.querySelector('#overview a').focus()")?;
    stage.look(f64::from(PAST) + 1.0);
    stage.browser.until(
        "the snapshot is shown",
        "return document.querySelector('#run dd').textContent.startsWith('6 min 41 s')",
    )?;
    let focused = stage.browser.run("return document.activeElement.textContent")?;
    ensure!(focused == "vae", "{focused}");
    let moving = stage.browser.run("return document.getAnimations().length")?;
    ensure!(moving == 0, "something moves by itself");
    Ok(())
}

pub(super) fn connection_comes_back(stage: &Stage) -> anyhow::Result<()> {
    stage.end();
    stage.browser.until(
        "the lost connection is shown",
        "return document.querySelector('#notice').checkVisibility()
        && document.querySelector('#state').textContent.trim() === 'Not connected'",
    )?;
    picture(&stage.browser, "lost")?;
    let shown = stage.browser.run(ROWS)?;
    ensure!(!list(&shown).is_empty(), "what was known stays there");
    stage.begin()?;
    // The same snapshot as before would not count as news.
    stage.look(f64::from(PAST) + 1.0);
    stage.browser.until(
        "it is live again",
        "return document.querySelector('.state.on')
        && !document.querySelector('#notice').checkVisibility()",
    )?;
    let status = status(&stage.browser)?;
    let waiting = status.jobs.iter().filter(|job| job.standing == Standing::Waiting).count();
    let summary = stage.browser.run("return document.querySelector('#summary').textContent")?;
    ensure!(text(&summary).contains(&format!("{waiting} waiting")), "{summary}");
    Ok(())
}

/// Each part has a name, nothing comes from elsewhere, no text of a job became an image, and nothing is complained of.
pub(super) fn ensure_own(browser: &Browser) -> anyhow::Result<()> {
    let bad = browser.run(NAMELESS)?;
    ensure!(list(&bad).is_empty(), "{bad}");
    let images = browser.run("return document.querySelectorAll('img').length")?;
    ensure!(images == 0, "{images} images");
    let elsewhere = browser.run(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)
             .filter((name) => !name.startsWith(location.origin + '/') && !name.startsWith('data:'))",
    )?;
    ensure!(list(&elsewhere).is_empty(), "{elsewhere}");
    let complaints = browser.complaints()?;
    ensure!(list(&complaints).is_empty(), "{complaints}");
    Ok(())
}

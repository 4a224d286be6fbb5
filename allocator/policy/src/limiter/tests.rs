use super::*;
use crate::decision::Decision;
use crate::params::Params;
use crate::policies::Unlimited;
use crate::policy::Policy;

pub(super) fn id(job: &str) -> JobId {
    JobId::new(job).unwrap()
}

/// A job under a cap, with no other values.
pub(super) fn view(job: &str, cap: f64) -> View {
    View {
        job: id(job),
        in_force: Share::nearest(cap),
        measured_under: Share::nearest(cap),
        min: None,
        max: None,
        weight: 1.0,
        usage: None,
        pressed: false,
        batch_latency: None,
        budget: None,
        max_slowdown: None,
        switches: Switches::default(),
        silent: false,
    }
}

pub(super) fn using(job: &str, cap: f64, usage: f64) -> View {
    let pressed = is_pressed(Share::nearest(cap), Some(usage), None);
    View { usage: Some(usage), pressed, ..view(job, cap) }
}

pub(super) fn limiter(settings: LimiterSettings) -> Limiter {
    Limiter::with(2.0, settings).unwrap()
}

pub(super) fn quota() -> LimiterSettings {
    LimiterSettings { enforcement: Enforcement::Quota, ..LimiterSettings::default() }
}

pub(super) fn chosen(shares: &[(&str, f64)]) -> PerJob<Share> {
    shares.iter().map(|(job, share)| (id(job), Share::nearest(*share))).collect()
}

/// What is in force according to the views; every weight is the default.
pub(super) fn in_force(views: &[View]) -> impl Fn(&JobId) -> Option<InForce> {
    let caps: PerJob<_> = views.iter().map(|v| (v.job.clone(), v.in_force)).collect();
    move |job| {
        caps.get(job).map(|cap| InForce {
            cap: *cap,
            weight: DEFAULT_WEIGHT,
            own_weight: DEFAULT_WEIGHT,
        })
    }
}

/// The changes that a decision at `t` brings.
fn changes(limiter: &mut Limiter, t: f64, views: &[View], shares: &[(&str, f64)]) -> Vec<Change> {
    limiter.decided(t, views, &chosen(shares), &[]);
    let effective = limiter.tick(t, views);
    limiter.changes(&effective, in_force(views))
}

fn close(given: Share, expected: f64) -> bool {
    (given.get() - expected).abs() < 1e-9
}

#[test]
fn decreases_come_before_increases() {
    let views = [view("a", 0.2), view("b", 1.0), view("c", 0.9)];
    let shares = [("a", 1.0), ("b", 0.2), ("c", 0.1)];
    let changes = changes(&mut Limiter::new(2.0), 0.0, &views, &shares);
    let order: Vec<_> = changes.iter().map(|change| change.job.as_str()).collect();
    assert_eq!(order, ["b", "c", "a"]);
}

#[test]
fn a_change_below_one_percent_of_the_node_is_not_written() {
    let views = [view("a", 0.5)];
    let mut limiter = Limiter::new(2.0);
    assert!(changes(&mut limiter, 0.0, &views, &[("a", 0.509)]).is_empty());
    assert_eq!(changes(&mut limiter, 1.0, &views, &[("a", 0.511)]).len(), 1);
}

#[test]
fn silent_job_is_raised_and_never_cut() {
    for (wanted, expected) in [(0.2, 0.4), (0.4, 0.4), (0.7, 0.7)] {
        let mut limiter = limiter(quota());
        let views = [View { silent: true, ..view("a", 0.4) }];
        limiter.decided(0.0, &views, &chosen(&[("a", wanted)]), &[]);
        let given = limiter.tick(0.0, &views)[&id("a")].share;
        assert!(close(given, expected), "{wanted}: {given}");
    }
}

#[test]
fn job_that_waits_on_purpose_stands_at_its_small_share() {
    let mut limiter = limiter(quota());
    let views = [view("a", 1.0), view("b", 1.0)];
    let wanted = chosen(&[("a", 0.01), ("b", 0.01)]);
    limiter.decided(0.0, &views, &wanted, &[id("a")]);
    let given = limiter.tick(0.0, &views);
    assert!(close(given[&id("a")].share, 0.01) && close(given[&id("b")].share, DEFAULT_FLOOR));
}

#[test]
fn a_silent_job_keeps_what_it_has() {
    let views = [View { silent: true, ..view("a", 0.8) }];
    assert!(changes(&mut Limiter::new(2.0), 0.0, &views, &[("a", 0.1)]).is_empty());
}

#[test]
fn clamped_share_gives_its_reason() {
    let max = View { max: Some(Share::nearest(0.5)), ..view("b", 1.0) };
    let views = [view("a", 1.0), max, view("c", 1.0)];
    let mut limiter = limiter(quota());
    limiter.decided(0.0, &views, &chosen(&[("a", 0.01), ("b", 0.8), ("c", 0.3)]), &[]);
    let effective = limiter.tick(0.0, &views);
    assert_eq!(effective[&id("a")].why, Why::Least { chosen: 0.01, floor: DEFAULT_FLOOR });
    assert_eq!(effective[&id("b")].why, Why::Most { chosen: 0.8, ceiling: 0.5 });
    assert_eq!(effective[&id("b")].share, Share::nearest(0.5));
    assert_eq!(effective[&id("c")].why, Why::Chosen);
    assert_eq!(
        effective[&id("b")].why.to_string(),
        "the policy chose 0.800: lowered to the maximum of 0.500"
    );
}

#[test]
fn decision_moves_a_limit_one_step_even_if_repeated() {
    let slew = Slew { max_decrease: 0.5, max_increase: None };
    let mut limiter = limiter(LimiterSettings { slew: Some(slew), ..quota() });
    let views = [view("a", 1.0)];
    for (t, expected) in [(0.0, 0.5), (0.0, 0.5), (20.0, 0.25), (40.0, 0.2)] {
        limiter.decided(t, &views, &chosen(&[("a", 0.2)]), &[]);
        assert!(close(limiter.tick(t, &views)[&id("a")].share, expected), "{t}");
    }
    assert_eq!(limiter.counters().slewed, 2);
}

#[test]
fn starving_job_is_raised_to_an_equal_share() {
    let fairness = Some(Fairness::default());
    let mut limiter = limiter(LimiterSettings { fairness, ..quota() });
    let views = |cap| [using("a", cap, cap), using("b", 1.0, 0.9)];
    let mut cap = 0.1;
    for second in 0..20_u32 {
        let t = f64::from(second);
        if second == 0 {
            limiter.decided(t, &views(cap), &chosen(&[("a", 0.1), ("b", 1.0)]), &[]);
        }
        let given = limiter.tick(t, &views(cap))[&id("a")];
        assert!(close(given.share, 0.1) || close(given.share, 0.5));
        assert_eq!(given.share.get() > 0.1, matches!(given.why, Why::Fair { .. }), "{given:?}");
        cap = given.share.get();
    }
    let raised = limiter.counters().raised;
    assert!((2..=6).contains(&raised), "raised and let go again: {raised}");
}

#[test]
fn a_jobs_own_slowdown_turns_the_guard_on_for_that_job() {
    let mut limiter = limiter(quota());
    let own = |slowdown| View { max_slowdown: slowdown, ..using("a", 0.4, 0.4) };
    for (t, slowdown) in [(0.0, None), (1.0, None), (2.0, Some(1.1)), (3.0, Some(1.1))] {
        let views = [own(slowdown), using("b", 1.0, 0.6)];
        limiter.decided(t, &views, &chosen(&[("a", 0.4), ("b", 1.0)]), &[]);
        let share = limiter.tick(t, &views)[&id("a")].share;
        assert!(close(share, if t < 3.0 { 0.4 } else { 0.5 }), "{t}: {share}");
    }
}

#[test]
fn cut_that_breaks_a_target_is_undone_with_a_reason() {
    let canary = Some(Canary { reports: 3, quarantine: 100.0 });
    let mut limiter = limiter(LimiterSettings { canary, ..quota() });
    let at =
        |cap, latency| [View { batch_latency: Some(latency), budget: Some(0.2), ..view("a", cap) }];
    assert!(changes(&mut limiter, 0.0, &at(1.0, 0.1), &[("a", 1.0)]).is_empty());
    let cut = changes(&mut limiter, 20.0, &at(1.0, 0.1), &[("a", 0.25)]);
    assert_eq!(cut[0].to, Setting::Cap(Share::nearest(0.25)));
    let seen = at(0.25, 0.4);
    let effective = limiter.tick(21.0, &seen);
    let undone = limiter.changes(&effective, in_force(&seen));
    assert_eq!(undone[0].to, Setting::Cap(Share::ALL));
    assert_eq!(
        undone[0].why.to_string(),
        "batch latency 0.400 s > target 0.2 s after a cut: cut undone, no further cut before t = 121 s"
    );
    assert!(changes(&mut limiter, 40.0, &at(1.0, 0.1), &[("a", 0.25)]).is_empty(), "spared");
    assert_eq!(changes(&mut limiter, 121.0, &at(1.0, 0.1), &[("a", 0.25)]).len(), 1);
    assert_eq!(limiter.counters().rolled_back, 1);
}

#[test]
fn shares_are_written_as_weights_without_caps() {
    let settings =
        LimiterSettings { enforcement: Enforcement::Shares, ..LimiterSettings::default() };
    let views = [view("a", 1.0), view("b", 1.0), view("c", 1.0)];
    let shares = [("a", 0.25), ("b", 1.0), ("c", 0.25)];
    let changes = changes(&mut limiter(settings), 0.0, &views, &shares);
    let written: Vec<_> = changes.iter().map(|change| (change.job.as_str(), change.to)).collect();
    let weight = |weight| Setting::Weight(weight);
    assert_eq!(written, [("a", weight(512)), ("c", weight(512)), ("b", weight(2048))]);
}

#[test]
fn weights_keep_the_sum_of_the_owners_weights() {
    let settings =
        LimiterSettings { enforcement: Enforcement::Shares, ..LimiterSettings::default() };
    let views = [view("a", 1.0), view("b", 1.0), view("c", 1.0)];
    let owns = [("a", 512), ("b", 1024), ("c", 4096)];
    let mut limiter = limiter(settings);
    // A job outside of the limiter has 100 less than its owner gave it.
    limiter.balance(100);
    for (t, shares) in [[1.0, 1.0, 1.0], [0.05, 0.6, 0.35], [0.05, 0.605, 0.345]].iter().enumerate()
    {
        let t = count(t);
        let shares: Vec<_> = ["a", "b", "c"].into_iter().zip(shares.iter().copied()).collect();
        limiter.decided(t, &views, &chosen(&shares), &[]);
        let effective = limiter.tick(t, &views);
        let in_force = |job: &JobId| {
            let (_, own_weight) = owns.into_iter().find(|(name, _)| *name == job.as_str())?;
            Some(InForce { cap: Share::ALL, weight: own_weight, own_weight })
        };
        let changes = limiter.changes(&effective, in_force);
        let weight = |(job, own): (&str, u64)| {
            let written = changes.iter().find(|change| change.job.as_str() == job);
            match written.map(|change| change.to) {
                Some(Setting::Weight(weight)) => weight,
                _ => own,
            }
        };
        assert_eq!(
            owns.into_iter().map(weight).sum::<u64>(),
            512 + 1024 + 4096 + 100,
            "{changes:?}"
        );
    }
}

#[test]
fn a_job_that_comes_back_is_new() {
    let slew = Slew { max_decrease: 0.5, max_increase: None };
    let settings = LimiterSettings { slew: Some(slew), ..quota() };
    let back = |limiter: &mut Limiter| {
        limiter.decided(40.0, &[view("a", 1.0)], &chosen(&[("a", 0.1)]), &[]);
        limiter.tick(40.0, &[view("a", 1.0)])[&id("a")].share
    };
    let (mut gone, mut forgotten) = (limiter(settings), limiter(settings));
    for limiter in [&mut gone, &mut forgotten] {
        limiter.decided(0.0, &[view("a", 1.0)], &chosen(&[("a", 0.1)]), &[]);
    }
    gone.decided(20.0, &[], &chosen(&[]), &[]);
    assert!(close(back(&mut gone), 0.5));
    forgotten.forget(&id("a"));
    assert!(close(back(&mut forgotten), 0.5));
}

/// The decision of `none` for a frame, with other shares.
pub(super) fn decision(frame: &Frame, limits: PerJob<Share>) -> Decision {
    let mut none = Unlimited::new(&Params::default()).unwrap();
    Decision { limits, ..none.decide(frame) }
}

#[test]
fn a_recorded_frame_shows_what_the_limiter_makes_of_a_decision() {
    let line = r#"{"t": 40, "jobs": [
        {"id": "a", "usage": {"cpu": 0.25}, "limit": {"cpu": 0.25, "applied": 0.25}},
        {"id": "b", "usage": {"cpu": 0.0}, "limit": {"cpu": 0.75}},
        {"id": "c", "limit": {"applied": 0.3, "held": true}},
        {"id": "d", "limit": {"max": 0.1}}]}"#;
    let frame = Frame::parse(line).unwrap();
    let shares = chosen(&[("a", 0.25), ("b", 0.25), ("c", 0.1), ("d", 1.0)]);
    let decision = decision(&frame, shares);
    let effective = Limiter::new(2.0).effective(&frame, &decision);
    let of = |job| effective[&id(job)];
    // Kept: 0.25 for a, 0.04 × 0.25/0.9 for b, 0.3 for c and 0.1 for d, whose usage is unknown.
    let kept = 0.25 + 0.04 * 0.25 / 0.9 + 0.3 + 0.1;
    assert!(close(of("a").share, 1.25 - kept), "{}", of("a").why);
    assert!(matches!(of("a").why, Why::Lent { own: 0.25, .. }));
    assert_eq!(of("b"), Effective { share: Share::nearest(0.25), why: Why::Chosen });
    assert_eq!(of("c"), Effective { share: Share::nearest(0.3), why: Why::Silent });
    assert!(close(of("d").share, 0.1));
    assert_eq!(Limiter::new(2.0).effective(&frame, &decision), effective);
}

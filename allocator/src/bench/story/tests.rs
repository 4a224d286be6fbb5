use super::super::outcome::example::{Simulated, bare, example};
use super::super::outcome::{Observed, judge};

#[test]
fn an_arm_that_is_worse_has_a_decision_told_that_cut_the_job_that_lost_most() {
    let mut simulated = Simulated::bench(2);
    let worse = simulated.runs.iter_mut().filter(|run| run.run.arm != "none");
    worse.for_each(|run| run.run.jobs[0].ended += 60.0);
    let findings = simulated.judge().findings;
    let story = findings.arms[1].story.as_ref().expect("it is worse");
    assert!(story.occasion.starts_with("flowcon-published: mean completion is "), "{story:#?}");
    let text = story.sentences.join("\n");
    assert!(text.contains("The job that lost most is vae"), "{text}");
    assert!(text.contains(": vae is given ") && text.contains("vae was limited from"), "{text}");
    assert!(text.contains("That choice stood for "), "{text}");
    assert_eq!(findings.arms[0].story, None, "`none` decides nothing");
}

#[test]
fn an_arm_that_is_better_has_no_story() {
    let (about, facts, mut runs) = example(&["none", "flowcon"], &["a"]);
    let better = runs.iter_mut().filter(|run| run.run.arm != "none");
    better.for_each(|run| run.run.jobs[0].ended = 20.0);
    let observed: Vec<Observed<'_>> = runs.iter().map(bare).collect();
    assert_eq!(judge(about, &facts, &observed, &[]).findings.arms[1].story, None);
}

#[test]
fn where_jobs_do_not_end_a_story_is_about_their_batches() {
    let mut simulated = Simulated::inference(2);
    // There the paper prints more satisfied jobs than there are here.
    simulated.about.name = "R-DQ10".to_owned();
    let findings = simulated.judge().findings;
    let story = findings.arms[1].story.as_ref().expect("it is not as printed");
    assert!(story.occasion.starts_with("dqoes: not as printed (satisfied): 7"), "{story:#?}");
    let text = story.sentences.join("\n");
    assert!(text.contains("The job that lost most is slow: a batch is +0."), "{text}");
}

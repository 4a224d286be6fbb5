//! Recordings of several nodes.

use super::*;

/// Two nodes of which one has a quarter of the other's CPUs and twice its contention, and their jobs.
fn two_nodes(alpha: f64) -> Scenario {
    let node = |name: &str, cpus: u32, contention: f64, background: f64| {
        format!(
            "[[node]]\nname = \"{name}\"\ncpus = {cpus}\ncontention = {contention}\n\
             background = {background}\n"
        )
    };
    let job = |name: &str, node: &str, work: u32| {
        format!(
            "[[job]]\nname = \"{name}\"\nnode = \"{node}\"\nwork = {work}\nbatch_latency = 1.0\n\
             batch = {{ work = 0.05 }}\nloss = {EXPONENTIAL}\n"
        )
    };
    let text = [
        "name = \"x\"\ndescription = \"\"\npolicies = [\"none\", \"specon\"]\n".to_owned(),
        format!(
            "[params.none]\ninterval = 2.0\n[params.specon]\nalpha = {alpha}\ninterval = 2.0\n"
        ),
        node("big", 4, 0.1, 0.05),
        node("small", 1, 0.2, 0.1),
        job("a", "big", 40),
        job("b", "small", 30),
        job("c", "big", 60),
        job("d", "small", 20),
    ];
    Scenario::parse(&text.concat()).unwrap()
}

#[test]
fn each_of_several_nodes_is_fitted_with_its_jobs() {
    let truth = two_nodes(0.0);
    // A frame of one node at a time, and frames of both, which time no batches.
    for policy in ["none", "specon"] {
        let (outcome, recording) = record(&truth, policy);
        assert!(outcome.jobs.iter().all(|job| job.moves == 0), "{policy}");
        let fit = fit(&recording, &[]).unwrap();
        let [big, small] = fit.nodes.as_slice() else { panic!("{policy}: {:?}", fit.nodes) };
        assert_eq!((big.name.as_str(), small.name.as_str()), ("big", "small"));
        assert!(close(big.background.unwrap(), 0.05, 0.02), "{policy}: {big:?}");
        assert!(close(small.background.unwrap(), 0.1, 0.02), "{policy}: {small:?}");
        let there = |node: &str| {
            let jobs = fit.jobs.iter().filter(|job| job.node == node);
            jobs.map(|job| job.id.as_str()).collect::<Vec<_>>()
        };
        assert_eq!((there("big"), there("small")), (vec!["a", "c"], vec!["b", "d"]));
        if policy == "none" {
            assert!(close(big.contention.unwrap(), 0.1, 0.05), "{big:?}");
            assert!(close(small.contention.unwrap(), 0.2, 0.05), "{small:?}");
            let again = accuracy(&recording, &[record(&fitted(&fit), "none").0]);
            for job in &again.jobs {
                assert!(job.completion.error.unwrap().abs() < 0.02, "{job:#?}");
            }
        }
    }
}

#[test]
fn a_recording_in_which_a_job_was_moved_is_refused() {
    let truth = two_nodes(0.2);
    let stays = record(&truth, "none").1;
    let (outcome, moved) = record(&truth, "specon");
    let who = outcome.jobs.iter().find(|job| job.moves > 0).expect("alpha has them converge");
    let refused = fit(&stays, &[moved]).unwrap_err();
    let FitError::Moved { number: 2, .. } = &refused else { panic!("{refused:?}") };
    assert!(refused.to_string().contains("was moved from"), "{refused} ({})", who.id);
}

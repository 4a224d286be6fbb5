//! Tests on the real engine. Each makes containers of its own, under a label of its own, and
//! removes them again; the allocator under test is confined to that label, so that nothing else on
//! the engine is touched. Where a test cannot run, it is reported as ignored, never as passed.

mod bench;
mod dependability;
mod endpoints;
mod faults;
mod flowcon;
mod frameworks;
mod limits;
mod moves;
mod order;
mod orders;
mod policies;
mod sidecar;
mod swarm;
mod truth;
mod users;

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

use bollard::Docker;
use libtest_mimic::{Arguments, Failed, Trial};
use paceline_system_tests::{Bed, Fixtures, Needs};
use tokio::runtime::Runtime;

/// An engine, and the images that the tests use there.
struct Engine {
    docker: Docker,
    runtime: Runtime,
    fixtures: Fixtures,
    /// Whether the images were made by this process, which then removes them.
    own: bool,
}

fn main() -> ExitCode {
    let mut args = Arguments::from_args();
    // In one process they take turns; nextest, which has a process for each, knows which may meet.
    args.test_threads = args.test_threads.or(Some(1));
    let connected = connect();
    let missing = connected.as_ref().err().map(ToString::to_string);
    let is_there = connected.is_ok();
    // Without an engine tests are skipped; with one, nothing excuses them.
    let engine = match connected.ok().filter(|_| !args.list).map(Engine::prepare) {
        Some(Err(error)) => return fail(&error),
        Some(Ok(engine)) => Some(Arc::new(engine)),
        None => None,
    };
    let trials = trials(engine.as_ref(), is_there);
    let ignored = trials.iter().filter(|trial| trial.has_ignored_flag()).count();
    let conclusion = libtest_mimic::run(&args, trials);
    if let Some(engine) = engine {
        engine.clear();
    }
    if !args.list && !args.exact {
        report(conclusion.num_passed + conclusion.num_failed, ignored, missing.as_deref());
    }
    conclusion.exit_code()
}

/// Connects; an error says why the tests cannot run.
fn connect() -> anyhow::Result<(Runtime, Docker)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let docker = runtime.block_on(async {
        anyhow::Ok(Docker::connect_with_defaults()?.negotiate_version().await?)
    })?;
    Ok((runtime, docker))
}

#[expect(clippy::print_stderr, reason = "a test program speaks for itself")]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("the tests' images cannot be made: {error:#}");
    ExitCode::FAILURE
}

#[expect(clippy::print_stdout, reason = "what was skipped must be seen")]
fn report(ran: u64, skipped: usize, missing: Option<&str>) {
    println!("Docker tests: {ran} ran, {skipped} skipped");
    if let Some(missing) = missing {
        println!("skipped because no engine is reachable: {missing}");
    } else if skipped > 0 {
        println!(
            "skipped for want of root, of dockerd or ip, or of the frameworks (make test-frameworks)"
        );
    }
}

impl Engine {
    /// Finds the images of this run, or makes some.
    fn prepare((runtime, docker): (Runtime, Docker)) -> anyhow::Result<Self> {
        let of_this_run = Fixtures::of_this_run()?;
        let own = of_this_run.is_none();
        let fixtures = match of_this_run {
            Some(fixtures) => fixtures,
            None => runtime.block_on(Fixtures::images(&docker))?,
        };
        Ok(Self { docker, runtime, fixtures, own })
    }

    fn clear(&self) {
        if self.own {
            self.runtime.block_on(self.fixtures.remove_images(&self.docker));
        }
    }

    /// Runs one test in a bed of its own.
    fn test<F>(&self, name: &str, test: impl FnOnce(Arc<Bed>) -> F) -> Result<(), Failed>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        self.runtime.block_on(async {
            let bed = Arc::new(Bed::new(self.docker.clone(), &self.fixtures.toy, name)?);
            let outcome = test(Arc::clone(&bed)).await;
            bed.clear().await?;
            outcome.map_err(|error| Failed::from(format!("{error:#}")))
        })
    }
}

/// Lists the tests by their paths, and what each needs.
macro_rules! trials {
    ($engine:expr, $is_there:expr, $($first:ident $(:: $then:ident)+ $(needs $needs:ident)?;)+) => {
        vec![$(trial(
            ($engine, $is_there),
            concat!(stringify!($first) $(, "::", stringify!($then))+),
            [$(stringify!($then)),+].last().copied().unwrap_or_default(),
            [$(Needs::$needs,)? Needs::Nothing][0],
            $first$(::$then)+,
        )),+]
    };
}

/// All tests; `is_there` says whether there is an engine, even where the tests are only listed.
fn trials(engine: Option<&Arc<Engine>>, is_there: bool) -> Vec<Trial> {
    let mut trials = trials![engine, is_there,
        flowcon::cpu_moves_to_the_growing_job_and_every_limit_is_put_back;
        flowcon::a_job_that_ends_leaves_its_container_without_our_limit;
        flowcon::a_restarted_container_is_managed_anew;
        flowcon::a_dry_run_writes_nothing;
        limits::a_container_made_with_a_quota_gets_its_quota_back;
        limits::a_container_made_with_cpus_gets_its_cpus_back;
        limits::under_a_parent_group_with_a_quota_no_limit_is_put_back_too needs Root;
        limits::weights_take_the_place_of_caps_and_are_put_back;
        dependability::after_a_kill_restore_puts_every_limit_back;
        dependability::a_restore_goes_on_when_its_reader_has_left;
        dependability::the_next_run_puts_back_what_a_killed_one_left;
        dependability::ctrl_c_puts_every_limit_back_and_ends_with_130;
        dependability::a_second_allocator_is_turned_away;
        faults::kills::killed_at_any_step_the_allocator_leaves_a_way_back needs Root;
        faults::kills::twenty_kills_later_every_value_is_what_it_was needs Root;
        faults::kills::twenty_kills_of_the_cgroup_actuator_leave_no_trace needs Root;
        faults::others::a_container_that_changes_in_mid_update_gets_its_limits_back needs Root;
        faults::others::somebody_elses_update_is_overruled_and_comes_back_at_the_end;
        faults::others::somebody_elses_update_stays_where_the_allocator_yields;
        faults::others::a_limit_that_was_changed_past_the_engine_is_written_again needs Root;
        faults::room::without_room_for_the_originals_nothing_is_limited needs Root;
        faults::room::without_room_for_the_audit_log_limits_are_written_and_put_back needs Root;
        faults::engine::an_engine_that_restarts_in_mid_run_keeps_nothing_of_ours needs PrivateEngine;
        faults::answers::an_answer_without_end_is_not_held_in_memory_and_harms_nobody;
        faults::answers::jobs_that_fall_silent_or_report_no_number_or_get_worse_end_with_their_limits needs Root;
        faults::clock::a_clock_that_is_set_changes_no_decision;
        faults::lies::a_wrong_total_makes_no_honest_job_much_later;
        faults::crowd::two_hundred_containers_at_once_are_all_seen_and_all_put_back;
        orders::timing::orders_are_in_force_within_moments_and_stand_in_the_audit_log;
        orders::clients::two_clients_at_once_lose_nothing;
        limits::the_cgroup_actuator_limits_and_the_engine_learns_nothing needs Root;
        limits::memory_is_never_limited_under_its_peak_and_comes_back needs Root;
        limits::what_an_orchestrator_looks_after_is_left_alone_unless_asked_for;
        endpoints::what_does_not_report_is_named_and_left_alone;
        endpoints::a_unix_socket_is_read_through_the_containers_root needs Root;
        endpoints::a_container_that_did_not_opt_in_is_never_touched;
        endpoints::check_says_what_is_wrong;
        endpoints::on_the_machines_network_nobody_answers_for_another needs Root;
        policies::flowcon_replays_what_it_recorded;
        policies::tradl_caps_what_is_acceptable_and_ends_what_is_done;
        policies::dqoes_cuts_what_is_faster_than_asked;
        policies::what_a_job_leaves_unused_is_lent_and_taken_back;
        order::the_shorter_job_runs_first_and_both_ends_are_known;
        order::jobs_without_a_total_keep_equal_shares;
        moves::a_converged_job_moves_and_goes_on_from_its_checkpoint needs Root;
        moves::a_job_that_does_not_go_on_at_the_target_stays_where_it_was needs Root;
        moves::an_allocator_that_ends_leaves_a_job_where_it_was needs Root;
        moves::a_free_move_changes_the_cpus_of_a_job_that_runs_on needs Root;
        moves::what_cannot_be_moved_is_said_and_stays needs Root;
        faults::moves::killed_at_any_step_of_a_move_the_job_is_there_once needs Root;
        sidecar::jobs_that_exec_runs_are_managed_by_what_they_print;
        sidecar::a_bar_is_read_as_it_is_drawn_and_the_sidecar_ends_with_the_container;
        sidecar::a_full_disk_stops_neither_the_job_nor_its_endpoint;
        sidecar::a_first_process_waits_for_orphans_too;
        sidecar::an_engine_that_restarts_is_attached_to_again needs PrivateEngine;
        frameworks::keras_and_pytorch_are_managed_by_what_they_print needs Frameworks;
        frameworks::python_jobs_are_ordered_by_the_totals_they_print needs Frameworks;
        swarm::a_converged_job_moves_to_another_machine_and_goes_on needs PrivateSwarm;
        swarm::a_job_that_does_not_go_on_there_stays_where_it_was needs PrivateSwarm;
        swarm::an_agent_that_ends_is_told_of_and_heard_again needs PrivateSwarm;
        swarm::gangs::a_distributed_job_grows_gives_way_and_ends needs PrivateSwarm;
        swarm::gangs::a_distributed_job_that_starves_goes_before_all_others needs PrivateSwarm;
        swarm::stack::the_stack_of_the_examples_moves_a_job needs DockerStack;
        swarm::faults::after_a_manager_that_was_killed_the_job_is_there_once needs PrivateSwarm;
        swarm::faults::a_job_that_stays_frozen_goes_on_once_its_agent_is_there needs PrivateSwarm;
        swarm::faults::a_target_that_has_no_image_leaves_the_job_where_it_was needs PrivateSwarm;
        swarm::faults::a_checkpoint_that_finds_no_room_leaves_the_job_where_it_was needs PrivateSwarm;
        swarm::faults::lost::a_job_whose_machine_stops_goes_on_from_its_checkpoint needs PrivateSwarm;
        swarm::faults::lost::a_job_whose_machine_is_cut_off_runs_once_at_a_time needs PrivateSwarm;
        swarm::faults::lost::a_cut_in_the_middle_of_a_move_leaves_the_job_once needs PrivateSwarm;
        bench::an_interrupted_bench_goes_on_with_the_first_run_that_was_not_finished;
        bench::the_oracle_lets_the_shortest_job_run_first;
        bench::a_run_beside_other_work_is_marked_and_ends_when_its_time_is_up;
        truth::frames_agree_with_the_jobs_own_log_and_the_engines_statistics;
    ];
    trials.extend(of_users(engine, is_there));
    trials
}

/// Those of users who are not root, which need the allocator's image.
fn of_users(engine: Option<&Arc<Engine>>, is_there: bool) -> [Trial; 2] {
    let image = engine.map(|engine| engine.fixtures.allocator.clone()).unwrap_or_default();
    let served = image.clone();
    [
        trial(
            (engine, is_there),
            "users::who_is_not_root_is_served_by_the_allocators_own_container",
            "not_root",
            Needs::Root,
            move |bed| {
                users::who_is_not_root_is_served_by_the_allocators_own_container(bed, served)
            },
        ),
        trial(
            (engine, is_there),
            "users::the_allocators_own_container_does_not_outlive_who_started_it",
            "abandoned",
            Needs::Root,
            move |bed| {
                users::the_allocators_own_container_does_not_outlive_who_started_it(bed, image)
            },
        ),
    ]
}

fn trial<F>(
    (engine, is_there): (Option<&Arc<Engine>>, bool),
    name: &str,
    short: &'static str,
    needs: Needs,
    test: impl FnOnce(Arc<Bed>) -> F + Send + 'static,
) -> Trial
where
    F: Future<Output = anyhow::Result<()>>,
{
    let able = is_there && needs.are_met();
    let engine = engine.cloned();
    let run = move || match engine {
        Some(engine) => engine.test(short, test),
        None => Err(Failed::from("no engine")),
    };
    Trial::test(name, run).with_ignored_flag(!able)
}

//! Tests on the real engine. Each creates containers under a label of its own, and removes them
//! again. The allocator under test is confined to that label, so that nothing else on the engine
//! is touched. A test that cannot run is reported as ignored, never as passed.

mod bench;
mod dependability;
mod doctor;
mod endpoints;
mod exec;
mod faults;
mod flowcon;
mod frameworks;
mod limits;
mod moves;
mod order;
mod orders;
mod parent;
mod policies;
mod processes;
mod promise;
mod sidecar;
mod swarm;
mod systemd;
mod truth;
mod users;

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

use bollard::Docker;
use libtest_mimic::{Arguments, Failed, Trial};
use paceline_system_tests::{Fixtures, Needs, TestEnv};
use tokio::runtime::Runtime;

/// An engine, and the images that the tests use there.
struct Engine {
    docker: Docker,
    runtime: Runtime,
    fixtures: Fixtures,
    /// Whether this process made the images: then it removes them.
    own: bool,
}

fn main() -> ExitCode {
    let mut args = Arguments::from_args();
    // In one process they run one at a time. Under nextest each has a process of its own, and its
    // configuration says which may run together.
    args.test_threads = args.test_threads.or(Some(1));
    let connected = connect();
    let missing = connected.as_ref().err().map(ToString::to_string);
    let is_there = connected.is_ok();
    // Without an engine tests are skipped; with one, they must run.
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
            "skipped for want of root, of systemd with cgroup v2 (make test-cgroup2), of dockerd or ip, of tqdm and rich, or of the frameworks (make test-frameworks)"
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

    /// Runs one test in an environment of its own.
    fn test<F>(&self, name: &str, test: impl FnOnce(Arc<TestEnv>) -> F) -> Result<(), Failed>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        self.runtime.block_on(async {
            let env = Arc::new(TestEnv::new(self.docker.clone(), &self.fixtures.toy, name)?);
            let outcome = test(Arc::clone(&env)).await;
            env.clear().await?;
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

/// All tests; `is_there` says whether there is an engine, even when the tests are only listed.
fn trials(engine: Option<&Arc<Engine>>, is_there: bool) -> Vec<Trial> {
    let mut trials = trials![engine, is_there,
        flowcon::cpu_moves_to_the_growing_job_and_every_limit_is_put_back;
        flowcon::a_job_that_ends_leaves_its_container_without_our_limit;
        flowcon::a_restarted_container_is_managed_again;
        flowcon::a_dry_run_writes_nothing;
        limits::a_container_made_with_a_quota_gets_its_quota_back;
        limits::a_container_made_with_cpus_gets_its_cpus_back;
        limits::under_a_parent_group_with_a_quota_no_limit_is_put_back_too needs Root;
        limits::weights_take_the_place_of_caps_and_are_put_back;
        dependability::next_run_restores_limits_of_a_killed_run;
        dependability::ctrl_c_puts_every_limit_back_and_ends_with_130;
        dependability::a_second_allocator_is_turned_away;
        dependability::owners_update_after_a_kill_outlives_restore needs Root;
        dependability::other_state_folder_makes_no_second_allocator needs Root;
        faults::kills::killed_at_any_step_the_allocator_leaves_a_way_back needs Root;
        faults::random_kills::owners_words_outlive_kills_of_engine_writes needs Root;
        faults::random_kills::owners_words_outlive_kills_of_cgroup_writes needs Root;
        faults::random_kills::owners_words_outlive_kills_of_auto_writes needs Root;
        faults::others::a_container_that_changes_in_mid_update_gets_its_limits_back needs Root;
        faults::others::outside_update_is_overruled_and_restored_at_the_end;
        faults::others::outside_update_stays_where_the_allocator_yields;
        faults::others::a_limit_that_was_changed_past_the_engine_is_written_again needs Root;
        faults::room::without_room_for_the_originals_nothing_is_limited needs Root;
        faults::room::full_audit_disk_stops_neither_limits_nor_restore needs Root;
        faults::room::every_limit_comes_back_with_few_descriptors needs Root;
        faults::engine::an_engine_that_restarts_in_mid_run_keeps_nothing_of_ours needs PrivateEngine;
        faults::answers::endless_answer_is_not_held_in_memory;
        faults::answers::silent_nan_or_worsening_jobs_get_their_limits_back needs Root;
        faults::clock::a_clock_that_is_set_changes_no_decision;
        faults::lies::a_wrong_total_makes_no_honest_job_much_later;
        faults::load::two_hundred_containers_at_once_are_all_seen_and_all_put_back;
        orders::timing::orders_take_effect_quickly_and_are_audited;
        orders::clients::two_clients_at_once_lose_nothing;
        limits::by_default_limits_change_and_the_engine_learns_nothing needs Root;
        limits::orchestrated_container_is_left_alone_unless_adopted;
        endpoints::container_without_reports_is_named_and_left_alone;
        endpoints::a_unix_socket_is_read_through_the_containers_root needs Root;
        endpoints::a_container_that_did_not_opt_in_is_never_touched;
        endpoints::check_reports_problems;
        endpoints::host_network_job_cannot_answer_for_another needs Root;
        endpoints::containers_on_one_network_are_told_apart needs Root;
        policies::recorded_flowcon_run_is_replayed;
        policies::tradl_caps_acceptable_jobs_and_ends_finished_ones;
        policies::dqoes_cuts_jobs_faster_than_their_target;
        policies::unused_cpu_is_lent_and_taken_back;
        order::the_shorter_job_runs_first_and_both_ends_are_known;
        order::jobs_without_a_total_keep_equal_shares;
        processes::containers_and_jobs_outside_are_managed_by_one_policy needs Root;
        processes::no_job_of_either_kind_ends_later_than_under_equal_sharing needs Root;
        moves::converged_job_moves_and_resumes_from_its_checkpoint needs Root;
        moves::job_that_cannot_resume_at_target_stays needs Root;
        moves::an_allocator_that_ends_leaves_a_job_where_it_was needs Root;
        moves::a_free_move_changes_the_cpus_of_a_job_that_runs_on needs Root;
        moves::unmovable_job_is_reported_and_stays needs Root;
        faults::moves::killed_at_any_step_of_a_move_the_job_is_there_once needs Root;
        swarm::converged_job_moves_to_another_machine_and_resumes needs PrivateSwarm;
        swarm::job_that_cannot_resume_there_stays needs PrivateSwarm;
        swarm::ended_agent_is_reported_and_reached_again needs PrivateSwarm;
        swarm::gangs::gang_grows_shrinks_and_ends needs PrivateSwarm;
        swarm::gangs::starving_gang_goes_before_all_others needs PrivateSwarm;
        swarm::stack::the_stack_of_the_examples_moves_a_job needs DockerStack;
        swarm::faults::after_a_manager_that_was_killed_the_job_is_there_once needs PrivateSwarm;
        swarm::faults::frozen_job_continues_once_its_agent_is_back needs PrivateSwarm;
        swarm::faults::a_target_that_has_no_image_leaves_the_job_where_it_was needs PrivateSwarm;
        swarm::faults::a_checkpoint_that_finds_no_room_leaves_the_job_where_it_was needs PrivateSwarm;
        swarm::faults::lost::job_of_a_stopped_machine_resumes_from_checkpoint needs PrivateSwarm;
        swarm::faults::lost::a_job_whose_machine_is_cut_off_runs_once_at_a_time needs PrivateSwarm;
        swarm::faults::lost::a_cut_in_the_middle_of_a_move_leaves_the_job_once needs PrivateSwarm;
        bench::interrupted_bench_resumes_at_the_first_unfinished_run;
        bench::the_oracle_lets_the_shortest_job_run_first;
        bench::run_beside_other_work_is_marked_and_ends_on_time;
        truth::frames_agree_with_job_log_and_engine_statistics;
    ];
    trials.extend(of_restore(engine, is_there));
    trials.extend(of_doctor(engine, is_there));
    trials.extend(of_systemd(engine, is_there));
    trials.extend(of_the_sidecar(engine, is_there));
    trials.extend(of_users(engine, is_there));
    trials
}

/// The tests of `paceline restore` after a kill.
fn of_restore(engine: Option<&Arc<Engine>>, is_there: bool) -> Vec<Trial> {
    trials![engine, is_there,
        dependability::after_a_kill_restore_puts_every_limit_back;
        dependability::restore_continues_after_its_reader_left;
        dependability::restore_by_a_read_only_state_folder_puts_limits_back needs Root;
        dependability::restore_without_sight_of_control_groups_keeps_the_record needs Root;
    ]
}

/// The tests of `paceline doctor`.
fn of_doctor(engine: Option<&Arc<Engine>>, is_there: bool) -> Vec<Trial> {
    trials![engine, is_there,
        doctor::healthy_machine_has_no_error needs Root;
        doctor::leftovers_of_a_killed_run_are_named_by_doctor needs Root;
    ]
}

/// The tests of an engine that leaves control groups to systemd.
fn of_systemd(engine: Option<&Arc<Engine>>, is_there: bool) -> Vec<Trial> {
    trials![engine, is_there,
        systemd::limits_outlive_reloads_and_a_restart needs Systemd;
        systemd::property_of_a_scope_is_overruled_and_restored needs Systemd;
        systemd::property_of_a_scope_ends_with_its_restart needs Systemd;
    ]
}

/// The tests of the sidecar.
fn of_the_sidecar(engine: Option<&Arc<Engine>>, is_there: bool) -> Vec<Trial> {
    trials![engine, is_there,
        sidecar::jobs_under_exec_are_managed_by_their_output;
        sidecar::bar_is_read_live_and_sidecar_ends_with_its_container;
        sidecar::a_full_disk_stops_neither_the_job_nor_its_endpoint;
        sidecar::a_first_process_waits_for_orphans_too;
        sidecar::an_engine_that_restarts_is_attached_to_again needs PrivateEngine;
        exec::bars_of_tqdm_and_rich_in_a_terminal_are_read needs Bars;
        exec::child_that_outlives_the_first_process_is_read;
        exec::failed_first_process_ends_the_container_of_its_children;
        exec::missing_container_is_named_by_the_sidecar;
        frameworks::keras_and_pytorch_are_managed_by_their_output needs Frameworks;
        frameworks::python_jobs_are_ordered_by_the_totals_they_print needs Frameworks;
    ]
}

/// The tests with a user who is not root, which need the allocator's image.
fn of_users(engine: Option<&Arc<Engine>>, is_there: bool) -> [Trial; 3] {
    let image = engine.map(|engine| engine.fixtures.allocator.clone()).unwrap_or_default();
    let (served, examined) = (image.clone(), image.clone());
    [
        trial(
            (engine, is_there),
            "users::non_root_user_is_served_by_the_allocators_container",
            "not_root",
            Needs::Root,
            move |env| users::non_root_user_is_served_by_the_allocators_container(env, served),
        ),
        trial(
            (engine, is_there),
            "doctor::non_root_user_is_examined_in_the_allocators_container",
            "examined",
            Needs::Root,
            move |env| doctor::non_root_user_is_examined_in_the_allocators_container(env, examined),
        ),
        trial(
            (engine, is_there),
            "users::allocators_container_does_not_outlive_its_starter",
            "abandoned",
            Needs::Root,
            move |env| users::allocators_container_does_not_outlive_its_starter(env, image),
        ),
    ]
}

fn trial<F>(
    (engine, is_there): (Option<&Arc<Engine>>, bool),
    name: &str,
    short: &'static str,
    needs: Needs,
    test: impl FnOnce(Arc<TestEnv>) -> F + Send + 'static,
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

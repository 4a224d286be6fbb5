//! The manager's loop: read the agents' reports, let the policy decide, move jobs, publish the
//! result.

mod moving;
mod reviving;
mod show;
mod stuck;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use paceline_api::audit::{Audit, Entry};
use paceline_api::clock::{Clock, unix_seconds};
use paceline_api::json_lines::JsonLines;
use paceline_api::live::snapshot::DecisionView;
use paceline_api::live::{DaemonChannels, Order, Refusal};
use paceline_api::signals::Ending;
use paceline_node::migration::Settings;
use paceline_node::migration::mover::{MigrationHost, next_event};
use paceline_node::migration::moves::MigrationQueue;
use paceline_policy::{Moment, Policy};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::debug;

use super::agent_client::AgentClient;
use super::feed::Feed;
use super::gangs::{PlacementPolicy, Placing, Turn};
use super::member::Member;
use super::services::{Services, SwarmMigrationWorker};
use super::swarm::{Swarm, Watch};
use super::world::{Decided, World};
use reviving::Reviving;
use stuck::Stuck;

/// How often the agents' reports are read.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);

/// The latest first decision, in seconds: before it, every agent must have answered.
const FIRST_DECISION_TIMEOUT: f64 = 5.0;

/// How long moves may take to end at the end of a run. The engines of Swarms kill a manager after 90 s.
const END_TIMEOUT: Duration = Duration::from_mins(1);

/// A cluster under one policy.
#[derive(Debug)]
pub struct Manager {
    clock: Clock,
    watch: Watch,
    client: AgentClient,
    world: World,
    /// Agents' feeds by the machine's name, each with its address.
    feeds: BTreeMap<String, (String, Feed)>,
    channels: DaemonChannels,
    records: Records,
    decided: Option<DecisionView>,
    /// Moves in progress. `None` in a dry run: the policy decides, and no job is moved.
    moves: Option<MigrationQueue<SwarmMigrationWorker>>,
    /// Distributed jobs, if a policy places them.
    placing: Option<Placing>,
    /// Moves of an earlier manager that are neither completed nor undone yet.
    stuck: Stuck,
    /// Jobs that were lost with their machines.
    reviving: Reviving,
    tally: MoveCounts,
    look_at: Moment,
    wake_at: Moment,
}

/// Counts of moves.
#[derive(Clone, Copy, Debug, Default)]
struct MoveCounts {
    done: u64,
    failed: u64,
    seconds: f64,
}

/// The records that a manager writes.
#[derive(Debug, Default)]
pub struct Records {
    /// One line for each run of the policy.
    pub frames: Option<JsonLines>,
    /// The audit log.
    pub audit: Option<Audit>,
}

impl Manager {
    /// A manager of the Swarm that `docker` manages; `swarm` is its current state. It moves no
    /// jobs.
    pub fn new(
        (docker, swarm): (Docker, Swarm),
        client: AgentClient,
        policy: Box<dyn Policy>,
        records: Records,
        channels: DaemonChannels,
    ) -> Self {
        Self {
            clock: Clock::start(),
            watch: Watch::follow(docker, swarm),
            client,
            world: World::new(policy),
            feeds: BTreeMap::new(),
            channels,
            records,
            decided: None,
            moves: None,
            placing: None,
            stuck: Stuck::default(),
            reviving: Reviving::default(),
            tally: MoveCounts::default(),
            look_at: Moment::default(),
            wake_at: Moment::default(),
        }
    }

    /// Lets the manager move jobs and restart jobs of lost machines. Its run first completes or
    /// undoes moves that an earlier manager left unfinished.
    #[must_use]
    pub fn moving(mut self, docker: Docker, settings: Settings) -> Self {
        self.reviving = Reviving::new(docker.clone());
        let services = Services::new(docker, self.client.clone(), self.watch.latest());
        self.moves =
            Some(MigrationQueue::new(SwarmMigrationWorker::new(services, settings), settings.most));
        self
    }

    /// Lets a policy place distributed jobs. A dry run changes nothing.
    #[must_use]
    pub fn placing(mut self, docker: Docker, policy: PlacementPolicy, dry_run: bool) -> Self {
        self.placing = Some(Placing::new(policy, docker, self.clock, dry_run));
        self
    }

    /// Runs until a signal arrives, then ends every move, or leaves it to the next manager.
    pub async fn run(mut self, mut ending: watch::Receiver<Option<Ending>>) -> Ending {
        self.began();
        // An agent that does not answer delays this for minutes. What a signal interrupts, the next manager
        // does.
        tokio::select! {
            biased;
            _ = asked(&mut ending) => {}
            () = self.recover() => {}
        }
        let ended = loop {
            let timer = self.clock.instant(self.look_at);
            tokio::select! {
                biased;
                ended = asked(&mut ending) => break ended,
                Some(order) = self.channels.orders.recv() => refuse(order),
                event = next_event(&mut self.moves) => self.moved(event),
                Some(recovered) = self.stuck.tried.join_next() => match recovered {
                    Ok(recovered) => self.recovered(recovered),
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                () = tokio::time::sleep_until(timer) => self.turn(),
            }
        };
        self.end_moves(Instant::now() + END_TIMEOUT).await;
        if let Some(placing) = self.placing.take() {
            for entry in placing.end().await {
                self.write(&entry);
            }
        }
        self.write(&Entry::Ended { left: 0 });
        ended
    }

    fn began(&mut self) {
        let first = Arc::clone(&self.channels.snapshots.borrow());
        self.write(&Entry::Began {
            version: first.version.clone(),
            pid: first.pid,
            policy: first.policy.name.clone(),
            actuator: first.policy.actuator.clone(),
            dry_run: first.policy.dry_run,
        });
    }

    fn write(&mut self, entry: &Entry) {
        if let Some(audit) = &mut self.records.audit {
            audit.write(entry);
        }
    }

    fn turn(&mut self) {
        let now = self.clock.now();
        self.look_at = now.after(ROUND_INTERVAL.as_secs_f64());
        let swarm = self.watch.now();
        let mut news = self.world.machines(&swarm.members);
        self.listen(&swarm.members);
        for (name, (_, feed)) in &self.feeds {
            let heard = feed.latest();
            if let Some(said) = &heard.snapshot {
                news |= self.world.receive(now, name, said);
            }
            if let Some(why) = &heard.trouble {
                self.world.unreachable(name, why);
            }
        }
        self.try_again(now);
        self.revive(&swarm);
        if let Some(moves) = &mut self.moves {
            moves.retain(|job| self.world.knows(job));
        }
        if self.placing.is_some() {
            self.place(now);
        } else if (news || now >= self.wake_at) && !self.gathers(now) {
            self.decide(now);
        }
        self.publish(now, &swarm);
    }

    /// Lets the policy of distributed jobs decide once.
    fn place(&mut self, now: Moment) {
        let Some(placing) = &mut self.placing else { return };
        let Turn { frame, entries } = placing.turn(now);
        if let Some(frame) = frame {
            self.decided = Some(self.next_decision(ROUND_INTERVAL.as_secs_f64()));
            if let Some(frames) = &mut self.records.frames {
                frames.write(&frame);
            }
        }
        for entry in entries {
            self.write(&entry);
        }
    }

    /// Whether the first answer of an agent is still awaited. The policy should see all jobs at
    /// once: otherwise the jobs of later agents would look new.
    fn gathers(&self, now: Moment) -> bool {
        let unheard = |(_, feed): &(String, Feed)| {
            let heard = feed.latest();
            heard.snapshot.is_none() && heard.trouble.is_none()
        };
        self.decided.is_none()
            && now.seconds() < FIRST_DECISION_TIMEOUT
            && self.feeds.values().any(unheard)
    }

    /// Keeps one feed for each reachable machine.
    fn listen(&mut self, members: &[Member]) {
        let asked = |name: &str, address: &str| {
            members.iter().any(|member| {
                member.name == name
                    && member.trouble.is_none()
                    && member.address.as_deref() == Some(address)
            })
        };
        self.feeds.retain(|name, (address, _)| asked(name, address));
        for member in members.iter().filter(|member| member.trouble.is_none()) {
            let Some(address) = &member.address else {
                self.world.unreachable(&member.name, "its address is unknown to Docker");
                continue;
            };
            self.feeds.entry(member.name.clone()).or_insert_with(|| {
                let (name, client) = (member.name.clone(), self.client.clone());
                (address.clone(), Feed::follow(client, name, address.clone()))
            });
        }
    }

    fn decide(&mut self, now: Moment) {
        let Some(Decided { frame, decision, wake_at }) = self.world.decide(now) else { return };
        self.wake_at = wake_at;
        if let Some(frames) = &mut self.records.frames {
            frames.write(&frame);
        }
        let next = self.next_decision(decision.interval);
        let number = next.number;
        for (job, of) in &decision.jobs {
            debug!(%job, class = of.class, why = %of.why, "decided");
        }
        Entry::from_decision(number, &decision).for_each(|entry| self.write(&entry));
        self.migrate(&decision.migrate);
        self.decided = Some(next);
    }

    /// A decision made now, with the next number.
    fn next_decision(&self, interval: f64) -> DecisionView {
        let number = self.decided.as_ref().map_or(0, |before| before.number) + 1;
        DecisionView { number, at: unix_seconds(), interval }
    }
}

/// Waits for the signal to end. Cancel safe: the signal stays in its channel.
async fn asked(ending: &mut watch::Receiver<Option<Ending>>) -> Ending {
    let ended = ending.wait_for(Option::is_some).await;
    ended.ok().and_then(|ended| *ended).unwrap_or(Ending::Terminated)
}

/// Refuses an order: limits are written on the job's own machine, by its agent.
fn refuse(order: Order) {
    let why = "the manager takes no orders; give the order to the agent on the job's machine";
    // The client may have disconnected.
    drop(order.answer.send(Err(Refusal::Impossible(why.to_owned()))));
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    use paceline_api::live::{Snapshot, pair};
    use paceline_policy::Params;
    use paceline_policy::policies::Unlimited;
    use tokio::time::sleep;

    use super::*;
    use crate::agent_client;
    use crate::lost::Lost;
    use crate::testing::{Warnings, docker};

    /// A client of agents, which are never asked here.
    fn client(folder: &Path) -> AgentClient {
        let (token, ca) = (folder.join("token"), folder.join("ca.pem"));
        std::fs::write(&token, "0123456789abcdef").unwrap();
        std::fs::set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
        let made = rcgen::generate_simple_self_signed(["agent".to_owned()]).unwrap();
        std::fs::write(&ca, made.cert.pem()).unwrap();
        let settings = agent_client::Settings {
            agent_port: 1,
            agent_token_file: token,
            agent_ca: ca,
            agent_name: None,
        };
        AgentClient::new(&settings).unwrap()
    }

    /// A manager that moves jobs, with the engine at `socket` below `folder`.
    fn manager(folder: &Path, socket: &Path) -> Manager {
        let (_, channels) = pair(Snapshot::default());
        let policy = Unlimited::new(&Params::default()).unwrap();
        let found = (docker(socket), Swarm::default());
        Manager::new(found, client(folder), Box::new(policy), Records::default(), channels)
            .moving(docker(socket), Settings::default())
    }

    #[tokio::test(start_paused = true)]
    async fn signal_ends_a_recovery_without_answers() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("docker.sock");
        // The engine accepts each request, and answers none.
        let _mute = UnixListener::bind(&socket).unwrap();
        let (signals, ending) = watch::channel(None);
        let began = Instant::now();
        let run = Box::pin(manager(folder.path(), &socket).run(ending));
        let signal = async {
            sleep(Duration::from_secs(1)).await;
            signals.send_replace(Some(Ending::Interrupted));
        };
        let (ended, ()) = tokio::join!(run, signal);
        assert_eq!(ended, Ending::Interrupted);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn failed_restart_of_a_job_is_logged_once() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("docker.sock");
        // Each request is refused.
        drop(UnixListener::bind(&socket).unwrap());
        let mut manager = manager(folder.path(), &socket);
        let lost = Lost {
            job: "vae".to_owned(),
            task: "t".to_owned(),
            node: None,
            over: Some("its machine was removed from the Swarm"),
        };
        let swarm = Swarm { lost: [("s".to_owned(), lost)].into(), ..Swarm::default() };
        let warnings = Warnings::of("paceline_cluster::manager::reviving");
        for _ in 0..10 {
            manager.revive(&swarm);
            sleep(ROUND_INTERVAL).await;
        }
        assert_eq!(warnings.count(), 1);
    }
}

//! The manager's loop: hear the agents, let the policy decide, have jobs moved, show what came of it.

mod moving;
mod reviving;
mod show;
mod stuck;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use paceline_policy::{Moment, Policy};
use tokio::sync::watch;
use tracing::debug;

use super::ask::Asker;
use super::feed::Feed;
use super::gangs::{Mind, Placing, Turn};
use super::services::{Between, Services};
use super::swarm::{Member, Swarm, Watch};
use super::world::{Decided, World};
use crate::audit::{Audit, Entry};
use crate::clock::{Clock, unix_seconds};
use crate::json_lines::JsonLines;
use crate::live::snapshot::DecisionView;
use crate::live::{Backstage, Order, Refusal};
use crate::migrate::mover::{Mover, came};
use crate::migrate::moves::Moves;
use crate::migrate::{self, Settings};
use crate::signals::Ending;
use reviving::Reviving;
use stuck::Stuck;

/// How often what the agents have said is taken in.
const LOOK: Duration = Duration::from_secs(1);

/// Nothing is decided for so many seconds at first, unless every agent has been heard.
const LATEST: f64 = 5.0;

/// A cluster under one policy.
#[derive(Debug)]
pub struct Manager {
    clock: Clock,
    watch: Watch,
    asker: Asker,
    world: World,
    /// By the machine's name, each with the address that it is asked at.
    feeds: BTreeMap<String, (String, Feed)>,
    stage: Backstage,
    records: Records,
    decided: Option<DecisionView>,
    /// Jobs on their way; `None` in a dry run: all is decided, and nothing moved.
    moves: Option<Moves<Between>>,
    /// Distributed jobs, where a policy places them.
    placing: Option<Placing>,
    /// Moves of an earlier manager that could be neither completed nor undone yet.
    stuck: Stuck,
    /// Jobs that ended with their machines.
    reviving: Reviving,
    tally: Tally,
    look_at: Moment,
    wake_at: Moment,
}

/// What moves have come to.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    done: u64,
    failed: u64,
    seconds: f64,
}

/// Where a manager leaves its records.
#[derive(Debug, Default)]
pub struct Records {
    /// One line for each run of the policy.
    pub frames: Option<JsonLines>,
    /// All that was decided and why.
    pub audit: Option<Audit>,
}

impl Manager {
    /// A manager of the Swarm that `docker` manages, which is as `swarm` says at first. It starts when
    /// it is run, and moves nothing.
    pub fn new(
        (docker, swarm): (Docker, Swarm),
        asker: Asker,
        policy: Box<dyn Policy>,
        records: Records,
        stage: Backstage,
    ) -> Self {
        Self {
            clock: Clock::start(),
            watch: Watch::follow(docker, swarm),
            asker,
            world: World::new(policy),
            feeds: BTreeMap::new(),
            stage,
            records,
            decided: None,
            moves: None,
            placing: None,
            stuck: Stuck::default(),
            reviving: Reviving::default(),
            tally: Tally::default(),
            look_at: Moment::default(),
            wake_at: Moment::default(),
        }
    }

    /// The same, moving jobs, and starting those again that ended with their machines. What an earlier
    /// manager was in the middle of is completed or undone first.
    pub async fn moving(mut self, docker: Docker, settings: Settings) -> Self {
        self.reviving = Reviving::by(docker.clone());
        let services = Services::new(docker, self.asker.clone(), self.watch.latest());
        let recovered = migrate::recover(&services, &services, |_| true).await;
        self.recovered(recovered);
        self.moves = Some(Moves::new(Between::new(services, settings), settings.most));
        self
    }

    /// The same, with distributed jobs in the hands of a policy. A dry run changes nothing.
    #[must_use]
    pub fn placing(mut self, docker: Docker, mind: Mind, dry_run: bool) -> Self {
        self.placing = Some(Placing::new(mind, docker, self.clock, dry_run));
        self
    }

    /// Runs until a signal comes, then has every move come to its end.
    pub async fn run(mut self, mut ending: watch::Receiver<Option<Ending>>) -> Ending {
        self.began();
        let ended = loop {
            let timer = self.clock.instant(self.look_at);
            tokio::select! {
                biased;
                ended = async { ending.wait_for(Option::is_some).await.ok().and_then(|e| *e) } => {
                    break ended.unwrap_or(Ending::Terminated);
                }
                Some(order) = self.stage.orders.recv() => refuse(order),
                came = came(&mut self.moves) => self.moved(came),
                Some(recovered) = self.stuck.tried.join_next() => match recovered {
                    Ok(recovered) => self.recovered(recovered),
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                () = tokio::time::sleep_until(timer) => self.turn(),
            }
        };
        self.end_moves().await;
        if let Some(placing) = self.placing.take() {
            for entry in placing.end().await {
                self.write(&entry);
            }
        }
        self.write(&Entry::Ended { left: 0 });
        ended
    }

    fn began(&mut self) {
        let first = Arc::clone(&self.stage.snapshots.borrow());
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
        self.look_at = now.after(LOOK.as_secs_f64());
        let swarm = self.watch.now();
        let mut news = self.world.machines(&swarm.members);
        self.listen(&swarm.members);
        for (name, (_, feed)) in &self.feeds {
            let heard = feed.heard();
            if let Some(said) = &heard.snapshot {
                news |= self.world.heard(now, name, said);
            }
            if let Some(why) = &heard.trouble {
                self.world.silent(name, why);
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

    /// Lets the policy of distributed jobs decide.
    fn place(&mut self, now: Moment) {
        let Some(placing) = &mut self.placing else { return };
        let Turn { frame, entries } = placing.turn(now);
        if let Some(frame) = frame {
            self.decided = Some(self.next_decision(LOOK.as_secs_f64()));
            if let Some(frames) = &mut self.records.frames {
                frames.write(&frame);
            }
        }
        for entry in entries {
            self.write(&entry);
        }
    }

    /// Whether agents are yet to be heard for the first time: their jobs come together, or the
    /// policy would take all others for newcomers beside the first.
    fn gathers(&self, now: Moment) -> bool {
        let unheard = |(_, feed): &(String, Feed)| {
            let heard = feed.heard();
            heard.snapshot.is_none() && heard.trouble.is_none()
        };
        self.decided.is_none() && now.seconds() < LATEST && self.feeds.values().any(unheard)
    }

    /// Asks the agents of the machines that there are, and no others.
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
                self.world.silent(&member.name, "the engine does not know its address");
                continue;
            };
            self.feeds.entry(member.name.clone()).or_insert_with(|| {
                let (name, asker) = (member.name.clone(), self.asker.clone());
                (address.clone(), Feed::follow(asker, name, address.clone()))
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
        Entry::of_decision(number, &decision).for_each(|entry| self.write(&entry));
        self.migrate(&decision.migrate);
        self.decided = Some(next);
    }

    /// The next decision, which is made now.
    fn next_decision(&self, interval: f64) -> DecisionView {
        let number = self.decided.as_ref().map_or(0, |before| before.number) + 1;
        DecisionView { number, at: unix_seconds(), interval }
    }
}

/// Limits are written on the job's own machine, and so are orders given there.
fn refuse(order: Order) {
    let why = "orders are given to the agent of the job's machine, on that machine";
    // Whoever asked may have gone.
    drop(order.answer.send(Err(Refusal::Impossible(why.to_owned()))));
}

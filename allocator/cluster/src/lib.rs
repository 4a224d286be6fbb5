//! Many machines under one policy, on Docker Swarm.
//!
//! Each machine has an agent: the allocator of that machine, which serves its status. It also lends
//! the manager its [`AgentActions`](paceline_node::migration::agent_actions::AgentActions) for the
//! steps of a move. Docker lists machines and services ([`swarm`]). Agents report what runs there
//! (`feed`, with the [`AgentClient`]). The [`world`], which is pure, lets one policy decide over
//! all of it, and `services` moves jobs. Distributed jobs, of many tasks, are placed and scaled
//! together ([`gangs`]). [`Manager`] connects these. It shows the cluster in the same snapshot as a
//! single machine.
//!
//! An agent is the allocator of one machine. The manager reads the same snapshot as every other
//! reader, and computes means over its own times from the counts in it. Agents act only for a
//! manager that shows the token, and only for tasks that opted in.
//!
//! The manager keeps no state of its own: a move's journal is in the labels of the moved service.
//! During a rollback, the source resumes only after Docker confirms that the successor is gone.
//! Where it cannot confirm that, the job stays frozen, and the move is tried again (`stuck`). The
//! wanted and the final state of a task show whether it ended by itself or with its machine
//! (`lost`). A lost job restarts only after Docker reports its old task as over (`reviving`).
//! Nothing is assumed about a machine whose agent is silent.

pub mod agent_client;
mod engine;
mod feed;
pub mod gangs;
pub mod lost;
mod manager;
pub mod member;
mod replacement;
pub mod services;
pub mod swarm;
#[cfg(test)]
mod testing;
pub mod world;

pub use agent_client::AgentClient;
pub use manager::{Manager, Records};

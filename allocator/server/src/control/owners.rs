//! The orders that a user may give about jobs of their own. Pure.

use paceline_api::live::{Command, Snapshot};

/// The same order for exactly one job of user `uid`, named by its id; `None` if the user may not give it.
///
/// A user may set targets, and take a job out of management and back: each is in the user's power
/// anyway, by the settings with which the job is started. A share of the machine, and the guards, are not.
pub(super) fn for_own_job(command: Command, uid: u32, now: &Snapshot) -> Option<Command> {
    let id = |name: &str| {
        let mut own = now.jobs.iter().filter(|job| {
            let named = [&job.job, &job.name, &job.container].into_iter().any(|it| it == name);
            job.owner == Some(uid) && named
        });
        let found = own.next()?.container.clone();
        own.next().is_none().then_some(found)
    };
    match command {
        Command::Set { name, targets } => Some(Command::Set { name: id(&name)?, targets }),
        Command::Manage { name } => Some(Command::Manage { name: id(&name)? }),
        Command::Release { name } => Some(Command::Release { name: id(&name)? }),
        Command::Pin { .. } | Command::Guard { .. } | Command::LogLevel { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use paceline_api::live::snapshot::JobView;
    use paceline_policy::Share;

    use super::*;

    const ID: &str = "job-0123456789abcdef";

    fn now() -> Snapshot {
        let job = |name: &str, id: &str, owner| JobView {
            job: name.to_owned(),
            name: name.to_owned(),
            container: id.to_owned(),
            owner,
            ..JobView::default()
        };
        let jobs = vec![
            job("vae", ID, Some(1000)),
            job("gru", "job-1", Some(1001)),
            job("gru", "job-2", Some(1002)),
            job("twice", "job-3", Some(1000)),
            job("twice", "job-4", Some(1000)),
            job("box", "4f2a", None),
        ];
        Snapshot { jobs, ..Snapshot::default() }
    }

    fn release(name: &str, uid: u32) -> Option<Command> {
        for_own_job(Command::Release { name: name.to_owned() }, uid, &now())
    }

    #[test]
    fn owner_orders_about_an_own_job_by_name_or_id() {
        let exact = |id: &str| Some(Command::Release { name: id.to_owned() });
        assert_eq!(release("vae", 1000), exact(ID));
        assert_eq!(release(ID, 1000), exact(ID));
        // Another user's job of the same name is left alone.
        assert_eq!(release("gru", 1001), exact("job-1"));
        assert_eq!(release("gru", 1002), exact("job-2"));
    }

    #[test]
    fn job_of_another_user_or_of_nobody_is_refused() {
        for (name, uid) in [("vae", 1001), (ID, 1001), ("box", 1000), ("twice", 1000), ("", 1000)] {
            assert_eq!(release(name, uid), None, "{name} {uid}");
        }
    }

    #[test]
    fn owner_may_not_pin_or_switch_guards() {
        let name = || "vae".to_owned();
        for command in [
            Command::Pin { name: name(), share: Share::ALL },
            Command::LogLevel { filter: "debug".to_owned() },
        ] {
            assert_eq!(for_own_job(command, 1000, &now()), None);
        }
        let targets = paceline_wire::Targets::default();
        let set = for_own_job(Command::Set { name: name(), targets }, 1000, &now());
        assert_eq!(set, Some(Command::Set { name: ID.to_owned(), targets }));
    }
}

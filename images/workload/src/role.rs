//! The role of a process in a training.

use clap::{Args, ValueEnum};
use paceline_ps::Slice;

/// The role of this process in a training.
#[derive(Args, Clone, Debug)]
pub struct RoleArgs {
    /// The role of this process
    #[arg(long, value_enum, default_value_t = Role::Alone)]
    pub role: Role,
    /// For a worker: the parameter servers, in the order of the parts that they keep
    #[arg(
        long,
        value_name = "HOST:PORT,…",
        value_delimiter = ',',
        required_if_eq("role", "worker")
    )]
    pub servers: Vec<String>,
    /// For a parameter server: the address to listen at. It asks for no password: let only workers
    /// reach it
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:7300")]
    pub listen: String,
    /// For a parameter server: the part of the parameters that it keeps, counted from 0
    #[arg(long, value_name = "INDEX/COUNT", default_value_t = Slice::WHOLE)]
    pub part: Slice,
}

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// A training by itself
    Alone,
    /// A parameter server: keeps the parameters, and updates them by the workers' gradients
    Ps,
    /// A worker: computes gradients for parameter servers
    Worker,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        role: RoleArgs,
    }

    fn parse(line: &str) -> Result<RoleArgs, clap::Error> {
        Command::try_parse_from(line.split(' ')).map(|command| command.role)
    }

    #[test]
    fn default_role_is_single_process() {
        let alone = parse("mnist").unwrap();
        assert_eq!((alone.role, alone.part), (Role::Alone, Slice::WHOLE));
        let worker = parse("mnist --role worker --servers a:1,b:2").unwrap();
        assert_eq!(worker.servers, ["a:1", "b:2"]);
        assert_eq!(parse("mnist --role ps --part 1/2").unwrap().part.to_string(), "1/2");
    }

    #[test]
    fn worker_without_servers_and_invalid_part_are_refused() {
        for line in ["mnist --role worker", "mnist --role ps --part 2/2", "mnist --role boss"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}

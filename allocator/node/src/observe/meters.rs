//! What a container has used besides CPU: peak memory, block I/O, and network.

use std::path::{Path, PathBuf};
use std::{fs, io};

use paceline_cgroup::mounts::{self, Folders};
use paceline_cgroup::small_file;

use super::networks;

/// The longest list of network interfaces that is read, in bytes: some 500 of them.
const MAX_NETWORK: usize = 64 * 1024;

/// The files with the figures of one container; `None` if the file is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meters {
    peak: Option<PathBuf>,
    io: Option<Io>,
    network: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Io {
    V1(PathBuf),
    V2(PathBuf),
}

/// The figures, in bytes since the container began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metered {
    /// The peak of memory in use.
    pub memory_peak: Option<f64>,
    /// Bytes read from and written to block devices.
    pub blkio: Option<f64>,
    /// Bytes received and sent by its own network; `None` if it uses the machine's.
    pub net: Option<f64>,
}

impl Meters {
    /// The meters of the container whose first process is `pid`.
    pub fn for_process(proc: &Path, pid: u32) -> io::Result<Self> {
        let process = proc.join(pid.to_string());
        let cgroup = fs::read_to_string(process.join("cgroup"))?;
        let mountinfo = fs::read_to_string(proc.join("self/mountinfo"))?;
        // The machine's own network is not the container's.
        let own = !networks::is_of_the_machine(proc, pid)?;
        let network = own.then(|| process.join("net/dev"));
        let (peak, io) = match mounts::folders(&cgroup, &mountinfo) {
            Some(Folders::V1 { memory, .. }) => {
                let blkio = mounts::v1_folder("blkio", &cgroup, &mountinfo);
                let io = blkio.map(|folder| Io::V1(folder.join("blkio.throttle.io_service_bytes")));
                (memory.map(|folder| folder.join("memory.max_usage_in_bytes")), io)
            }
            Some(Folders::V2(folder)) => {
                (Some(folder.join("memory.peak")), Some(Io::V2(folder.join("io.stat"))))
            }
            None => (None, None),
        };
        Ok(Self { peak, io, network })
    }

    /// Reads all figures.
    pub fn read(&self) -> Metered {
        let text = |path: &PathBuf| small_file::read(path).ok();
        let io = match &self.io {
            Some(Io::V1(path)) => text(path).and_then(|text| total(&text)),
            Some(Io::V2(path)) => text(path).map(|text| all_devices(&text)),
            None => None,
        };
        Metered {
            memory_peak: self
                .peak
                .as_ref()
                .and_then(text)
                .and_then(|text| text.trim().parse().ok()),
            blkio: io,
            net: self.network.as_ref().and_then(|path| interfaces(path)),
        }
    }
}

/// The bytes of all interfaces; unknown where a job has made very many of them.
fn interfaces(path: &Path) -> Option<f64> {
    small_file::read_at_most(path, MAX_NETWORK).ok().map(|text| all_interfaces(&text))
}

/// Version 1 has a line with the sum: `Total` and the bytes.
fn total(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("Total "))?.trim().parse().ok()
}

/// Version 2 has a line for each device in use, so none at first.
fn all_devices(text: &str) -> f64 {
    let bytes = |field: &str| {
        let value = field.strip_prefix("rbytes=").or_else(|| field.strip_prefix("wbytes="))?;
        value.parse::<f64>().ok()
    };
    text.split_whitespace().filter_map(bytes).sum()
}

/// `/proc/PID/net/dev`: the first counter is bytes received, the ninth bytes sent. The loopback does
/// not count.
fn all_interfaces(text: &str) -> f64 {
    let bytes = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let counters: Vec<f64> = counters.split_whitespace().flat_map(str::parse).collect();
        (name.trim() != "lo").then_some(counters.first()? + counters.get(8)?)
    };
    text.lines().filter_map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn block_io_is_the_sum_of_reads_and_writes_in_both_versions() {
        let v1 = "254:0 Read 4096\n254:0 Write 1000\n254:0 Total 5096\nTotal 5096\n";
        assert_eq!(total(v1), Some(5096.0));
        assert_eq!(total(""), None);
        let v2 = "254:0 rbytes=4096 wbytes=1000 rios=1 wios=2 dbytes=7 dios=0\n8:0 rbytes=4\n";
        assert_eq!((all_devices(v2), all_devices("")), (5100.0, 0.0));
    }

    #[test]
    fn network_is_every_interface_except_the_loopback() {
        let text = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo:  999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0
  eth0: 1000 2 0 0 0 0 0 0 200 3 0 0 0 0 0 0
  eth1:   30 2 0 0 0 0 0 0   4 3 0 0 0 0 0 0
";
        assert!((all_interfaces(text) - 1234.0).abs() < 1e-9);
    }

    #[test]
    fn process_on_the_machines_network_has_no_network_figures() {
        let meters = Meters::for_process(Path::new("/proc"), std::process::id()).unwrap();
        assert_eq!((meters.network.as_ref(), meters.read().net), (None, None));
    }

    proptest! {
        #[test]
        fn readers_never_panic(text in "[ -~\n]*") {
            total(&text);
            all_devices(&text);
            all_interfaces(&text);
        }
    }
}

use std::os::unix::net::UnixDatagram;

use super::*;
use crate::forward::testing::LONG;
use crate::forward::tests;
use crate::push;

fn reading(count: u64, sum: f64) -> Progress {
    let mut progress = tests::progress(1.0);
    progress.eval.value = Some(-0.25);
    (progress.step, progress.total_steps) = (Some(12), Some(48));
    progress.signals.progress_ratio = Some(0.25);
    (progress.batch_latency.count, progress.batch_latency.sum) = (count, sum);
    progress
}

fn send(target: &mut Statsd, progress: Progress) -> Result<Outcome, String> {
    target.send(&Item::Reading { progress: progress.into(), is_last: false }, &Ending::new())
}

#[test]
fn udp_server_gets_gauges_and_the_time_of_each_batch() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(LONG)).unwrap();
    let address = format!("udp://{}", server.local_addr().unwrap()).parse().unwrap();
    let mut target = Statsd::new(address, DEFAULT_PREFIX, &[]).unwrap();
    let mut next = |progress| {
        assert_eq!(send(&mut target, progress), Ok(Outcome::Sent));
        let mut buffer = [0; 2048];
        let length = server.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    assert_eq!(
        next(reading(4, 0.5)),
        "paceline.loss:0|g\npaceline.loss:-0.25|g\npaceline.step:12|g\n\
         paceline.total_steps:48|g\npaceline.progress_ratio:0.25|g\n\
         paceline.batch_latency:125|ms|@0.25"
    );
    let second = next(reading(5, 0.75));
    assert!(second.ends_with("paceline.batch_latency:250|ms"), "{second}");
    let third = next(reading(5, 0.75));
    assert!(!third.contains("batch_latency"), "{third}");
    // Our own receiver reads it as the same job.
    let (observed, bad) = push::statsd::parse(second.as_bytes());
    assert_eq!((observed.step, observed.total_steps, bad), (Some(12), Some(48), 0));
    assert_eq!(observed.losses.last().map(|loss| loss.value), Some(-0.25));
}

#[test]
fn batches_of_an_earlier_process_are_not_counted_again() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("udp://{}", server.local_addr().unwrap()).parse().unwrap();
    let mut target = Statsd::new(address, DEFAULT_PREFIX, &[]).unwrap();
    target.resume(&reading(4000, 500.0));
    assert_eq!(target.timing(&reading(4000, 500.0)), None);
    let timing = target.timing(&reading(4001, 500.25));
    assert_eq!(timing.as_deref(), Some("paceline.batch_latency:250|ms"));
}

#[test]
fn unix_socket_gets_tags_and_its_loss_is_only_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("statsd.sock");
    let address: Address = format!("unix:{}", path.display()).parse().unwrap();
    let tags = ["team:vision".to_owned(), "gpu".to_owned()];
    let mut target = Statsd::new(address, "job.", &tags).unwrap();
    assert!(send(&mut target, reading(1, 0.5)).unwrap_err().starts_with("cannot send: "));
    let server = UnixDatagram::bind(&path).unwrap();
    server.set_read_timeout(Some(LONG)).unwrap();
    assert_eq!(send(&mut target, reading(2, 1.0)), Ok(Outcome::Sent));
    let mut buffer = [0; 2048];
    let length = server.recv(&mut buffer).unwrap();
    let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("job.")), "{text}");
    assert!(lines.iter().all(|line| line.ends_with("|#team:vision,gpu")), "{text}");
    // A server that does not read fills its queue. We do not wait for it.
    let full = (3..5000).map(|count| send(&mut target, reading(count, 1.0))).find(Result::is_err);
    assert!(full.unwrap().unwrap_err().starts_with("cannot send: "));
}

#[test]
fn lines_are_packed_into_datagrams_of_bounded_length() {
    let lines: Vec<_> = (0..100).map(|number| format!("paceline.{number:040}:1|g")).collect();
    let datagrams = packed(&lines);
    assert!(datagrams.len() > 1 && datagrams.iter().all(|one| one.len() <= MAX_DATAGRAM));
    assert_eq!(datagrams.join("\n"), lines.join("\n"));
}

#[test]
fn addresses_prefixes_and_tags_are_checked() {
    for (text, address) in [
        ("udp://127.0.0.1:8125", Address::Udp("127.0.0.1:8125".to_owned())),
        ("[::1]:8125", Address::Udp("[::1]:8125".to_owned())),
        ("unix:/run/statsd.sock", Address::Unix("/run/statsd.sock".into())),
        ("unix:///run/statsd.sock", Address::Unix("/run/statsd.sock".into())),
    ] {
        assert_eq!(text.parse(), Ok(address));
    }
    for text in ["", "udp://", "udp://host", "udp://host:0", "unix:", "http://host:80", ":8125"] {
        assert!(
            text.parse::<Address>().unwrap_err().starts_with("invalid statsd address"),
            "{text}"
        );
    }
    let address = Address::Udp("127.0.0.1:8125".to_owned());
    for prefix in ["a:b", "a|b", "a\nb"] {
        assert!(Statsd::new(address.clone(), prefix, &[]).is_err(), "{prefix:?}");
    }
    for tag in ["a,b", "a|b", "", ":x", "a:"] {
        assert!(Statsd::new(address.clone(), "", &[tag.to_owned()]).is_err(), "{tag:?}");
    }
    assert!(Statsd::new(address, "", &["url:http://x".to_owned()]).is_ok());
}

//! Losses that are reported as tensors.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::io::{Read, Write};
use std::net::TcpStream;

use paceline_reporter::{LocalAddr, Reporter};
use tch::{Kind, Tensor};

fn progress(reporter: &Reporter) -> String {
    let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else { panic!("it listens") };
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /v1/progress HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn tensor_is_a_loss_only_with_one_element() {
    let reporter = Reporter::builder("torch").listen("127.0.0.1:0").start().unwrap();
    let weights = Tensor::from_slice(&[1.0_f32, 3.0]).set_requires_grad(true);
    reporter.batch().tensor(&weights.mean(Kind::Float));
    reporter.batch().tensor(&Tensor::from_slice(&[4.0_f64]));
    reporter.batch().tensor(&weights);
    let said = progress(&reporter);
    for part in [r#""count":2,"sum":6.0"#, r#""rejected":1"#, r#""batch_latency":{"count":3"#] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

//! A training job in miniature: it computes, its loss falls or not, and its endpoint answers or
//! not. The command line sets all of it, so that each test gets the job that it needs.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Parser, ValueEnum};
use paceline_reporter::Reporter;
use tokio::signal::unix::{SignalKind, signal};

/// The exit code that a shell reports for a command ended by SIGTERM.
const TERMINATED: i32 = 143;

#[derive(Debug, Parser)]
struct Args {
    /// The loss of the first step.
    #[arg(long, default_value_t = 4.0)]
    start: f64,
    /// Steps in which the loss halves. By default it never does.
    #[arg(long)]
    half_life: Option<f64>,
    /// Rounds of arithmetic in a step: a million take some milliseconds.
    #[arg(long, default_value_t = 1_000_000)]
    work: u64,
    /// Threads that compute without a pause, besides the one that trains.
    #[arg(long, default_value_t = 0)]
    burners: u32,
    /// Seconds at the start in which it reports ten times a second and computes nothing.
    #[arg(long, default_value_t = 0.0)]
    sleep: f64,
    /// Sleeps in this way until this file exists …
    #[arg(long)]
    hold: Option<PathBuf>,
    /// … not at the start, but after this many steps.
    #[arg(long, requires = "hold", default_value_t = 0)]
    hold_after: u64,
    /// Ends at once at SIGTERM. The kernel does not do that for a container's first process.
    #[arg(long)]
    heed_term: bool,
    /// Steps until the end. By default it never ends.
    #[arg(long, default_value_t = u64::MAX)]
    steps: u64,
    /// The total of steps that it reports instead of the true one.
    #[arg(long)]
    states: Option<u64>,
    /// Always reports a total of one step more than it has taken.
    #[arg(long, conflicts_with = "states")]
    one_more: bool,
    /// Draw a bar that never ends its line, as tqdm does, instead of a line for each step.
    #[arg(long)]
    bar: bool,
    /// Saves its step here on request, and resumes from there at the start.
    #[arg(long)]
    checkpoint: Option<PathBuf>,
    /// The interval of further saves, in steps.
    #[arg(long, requires = "checkpoint")]
    save_every: Option<u64>,
    /// What it does at the start if there is a checkpoint.
    #[arg(long, value_enum, default_value_t = Resume::GoOn)]
    resume: Resume,
    /// Adds a line to this file with every step: which process, and the step.
    #[arg(long)]
    trace: Option<PathBuf>,
    /// What the endpoint does.
    #[arg(long, value_enum, default_value_t = Answer::Progress)]
    answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Resume {
    /// It resumes from there.
    GoOn,
    /// It starts from the beginning.
    Restart,
    /// It ends with an error.
    Exit,
    /// It hangs.
    Hang,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Answer {
    /// It reports.
    Progress,
    /// There is none.
    Nothing,
    /// It accepts connections and sends nothing.
    Silence,
    /// It says something else.
    Garbage,
    /// It answers with a gigabyte.
    Huge,
    /// Its answer does not end.
    Endless,
    /// Its answer does not end either, and takes a second for three bytes.
    Drip,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if args.heed_term {
        heed_term()?;
    }
    let first = args.first_step()?;
    let reporter = match args.answer {
        Answer::Progress => {
            let builder = Reporter::builder("toy").first_step(first);
            let stated = args.states.or((args.steps != u64::MAX).then_some(args.steps));
            let stated = if args.one_more { Some(1) } else { stated };
            let builder = match stated {
                Some(steps) => builder.total_steps(steps),
                None => builder,
            };
            builder.from_env().start()?
        }
        Answer::Nothing => Reporter::disabled(),
        Answer::Silence | Answer::Garbage | Answer::Huge | Answer::Endless | Answer::Drip => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 7223))?;
            std::thread::spawn(move || misbehave(&listener, args.answer));
            Reporter::disabled()
        }
    };
    let mut out = io::stdout().lock();
    let mut loss = args.loss_after(first);
    let mut trace = args.trace()?;
    let wakes = unix_seconds() + args.sleep;
    let sleeps = args.sleep > 0.0 || args.is_held(0);
    while unix_seconds() < wakes || args.is_held(0) {
        args.sleep_a_little(&reporter, &mut loss);
    }
    if sleeps {
        writeln!(out, "awake {:.6}", unix_seconds())?;
    }
    for _ in 0..args.burners {
        std::thread::spawn(|| {
            loop {
                compute(1_000_000);
            }
        });
    }
    for step in first + 1..=args.steps {
        let batch = reporter.batch();
        compute(args.work);
        batch.loss(loss);
        if args.one_more {
            reporter.total_steps(step + 1);
        }
        if let Some((file, process)) = &mut trace {
            // In one write: a pause must not leave half a line before the next process's lines.
            file.write_all(format!("{process} {step}\n").as_bytes())?;
        }
        if args.save_every.is_some_and(|every| step.is_multiple_of(every)) {
            args.save(step)?;
        }
        if let Some(request) = reporter.checkpoint_requested() {
            // A failure is reported to the requester.
            drop(request.save(|_| args.save(step)));
        }
        if args.bar {
            draw(&mut out, step, args.steps, loss)?;
        } else {
            writeln!(out, "{step} {:.6} {loss:.17}", unix_seconds())?;
        }
        let drawn = loss;
        loss *= args.factor();
        while args.is_held(step) {
            args.sleep_a_little(&reporter, &mut loss);
            // With another loss it would be the frame of another step.
            if args.bar {
                draw(&mut out, step, args.steps, drawn)?;
            }
        }
    }
    reporter.finish();
    Ok(())
}

/// Makes SIGTERM end this process at any point.
#[expect(clippy::exit, reason = "what a signal does to a process that is not the first one")]
fn heed_term() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let mut term = signal(SignalKind::terminate())?;
    drop(entered);
    std::thread::spawn(move || {
        runtime.block_on(term.recv());
        std::process::exit(TERMINATED);
    });
    Ok(())
}

impl Args {
    fn loss_after(&self, steps: u64) -> f64 {
        let halvings = self.half_life.map_or(0.0, |half_life| count(steps) / half_life);
        self.start * (-halvings).exp2()
    }

    /// The factor of the loss from one step to the next.
    fn factor(&self) -> f64 {
        self.half_life.map_or(1.0, |half_life| (-1.0 / half_life).exp2())
    }

    /// Whether it must wait at `step`.
    fn is_held(&self, step: u64) -> bool {
        step == self.hold_after && self.hold.as_ref().is_some_and(|file| !file.exists())
    }

    /// Reports after a tenth of a second without work.
    fn sleep_a_little(&self, reporter: &Reporter, loss: &mut f64) {
        let batch = reporter.batch();
        pause(Duration::from_millis(100));
        batch.loss(*loss);
        *loss *= self.factor();
    }

    /// The last step of an earlier process.
    fn first_step(&self) -> anyhow::Result<u64> {
        let Some(path) = self.checkpoint.as_ref().filter(|path| path.exists()) else {
            return Ok(0);
        };
        let saved = std::fs::read_to_string(path)?.parse()?;
        match self.resume {
            Resume::GoOn => Ok(saved),
            Resume::Restart => Ok(0),
            Resume::Exit => anyhow::bail!("it does not go on from step {saved}"),
            Resume::Hang => loop {
                pause(Duration::from_hours(1));
            },
        }
    }

    fn save(&self, step: u64) -> io::Result<PathBuf> {
        let path = self.checkpoint.clone().ok_or(io::ErrorKind::Unsupported)?;
        let unfinished = path.with_extension("part");
        std::fs::write(&unfinished, step.to_string())?;
        std::fs::rename(&unfinished, &path)?;
        Ok(path)
    }

    /// The file of steps, and a number that identifies this process.
    fn trace(&self) -> io::Result<Option<(File, u128)>> {
        let since = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
        let open = |path| File::options().create(true).append(true).open(path);
        let file = self.trace.as_ref().map(open).transpose()?;
        Ok(file.map(|file| (file, since)))
    }
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "exact below 2^53")]
fn count(steps: u64) -> f64 {
    steps as f64
}

fn draw(out: &mut impl Write, step: u64, of: u64, loss: f64) -> io::Result<()> {
    let percent = step * 100 / of;
    write!(out, "\r{percent:3}%|###       | {step}/{of} [00:01<00:09, 10.00it/s, loss={loss:.4}]")?;
    out.flush()
}

/// Accepts connections, answers with nonsense or not at all, and keeps them open.
fn misbehave(listener: &TcpListener, how: Answer) {
    let mut open = Vec::new();
    for mut stream in listener.incoming().flatten().take(1000) {
        // The reader may have closed the connection, as it should.
        drop(say(&mut stream, how));
        open.push(stream);
    }
}

fn say(stream: &mut TcpStream, how: Answer) -> io::Result<()> {
    const GIGABYTE: u64 = 1 << 30;
    let head = b"HTTP/1.1 200 OK\r\n";
    let begun = br#"{"schema": 1, "job": ""#;
    match how {
        Answer::Progress | Answer::Nothing | Answer::Silence => Ok(()),
        Answer::Garbage => stream.write_all(b"220 mail.example.org ESMTP\r\n"),
        Answer::Huge => {
            stream.write_all(head)?;
            write!(stream, "content-length: {GIGABYTE}\r\n\r\n")?;
            stream.write_all(begun)?;
            let rest = GIGABYTE - u64::try_from(begun.len()).unwrap_or(0);
            io::copy(&mut io::repeat(b'x').take(rest), stream).map(drop)
        }
        Answer::Endless => {
            stream.write_all(head)?;
            stream.write_all(b"\r\n")?;
            stream.write_all(begun)?;
            io::copy(&mut io::repeat(b'x'), stream).map(drop)
        }
        Answer::Drip => {
            stream.write_all(head)?;
            stream.write_all(b"\r\n")?;
            loop {
                stream.write_all(b" ")?;
                pause(Duration::from_millis(300));
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a job that sleeps is what a test asks for")]
fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Arithmetic that the compiler cannot remove and that uses registers only: its time is exactly in
/// proportion to the CPU that the job gets.
fn compute(rounds: u64) {
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..rounds {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
}

#[expect(clippy::disallowed_methods, reason = "a job stamps its log")]
fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

//! Posts events as JSON.

use std::io;
use std::time::Duration;

use super::http::{Client, Trust, Url};
use super::{Ending, EventSet, Item, Outcome, Takes, Target};

/// The receiver answers within this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The most times that an event is sent.
const MAX_TRIES: u32 = 5;
/// The pause after the first try; it doubles after each.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);

/// A receiver of events.
#[derive(Debug)]
pub struct Webhook {
    client: Client,
    events: EventSet,
}

impl Webhook {
    /// Posts these events to an address. An error says what was expected.
    pub fn new(url: &str, events: EventSet) -> Result<Self, String> {
        let url = Url::parse(url).map_err(str::to_owned)?;
        let client = Client::new(url).map_err(|error: io::Error| error.to_string())?;
        Ok(Self { client, events })
    }
}

impl Target for Webhook {
    fn name(&self) -> String {
        format!("webhook:{}", self.client.url())
    }

    fn takes(&self) -> Takes {
        Takes::Events(self.events)
    }

    fn send(&mut self, item: &Item, ending: &Ending) -> Result<Outcome, String> {
        let Item::Event(event) = item else { return Ok(Outcome::Nothing) };
        let body = event.json();
        let mut backoff = FIRST_BACKOFF;
        let mut tries = 1;
        loop {
            let time = ending.remaining(ANSWER_TIMEOUT);
            let error = match self.client.post(body.clone(), None, &Trust::Machine, time) {
                Ok(()) => return Ok(Outcome::Sent),
                Err(error) => error,
            };
            let is_over = ending.remaining(Duration::MAX).is_zero();
            if tries == MAX_TRIES || is_over || !error.is_temporary() {
                let times = if tries == 1 { "once".to_owned() } else { format!("{tries} times") };
                return Err(format!("event {}, tried {times}: {error}", event.kind.name()));
            }
            ending.pause(backoff);
            backoff *= 2;
            tries += 1;
        }
    }
}

#[cfg(test)]
mod tests;

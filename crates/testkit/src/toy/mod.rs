//! A toy protocol: a reliable stream from a sender to receivers, through an agent that stores payloads.
//!
//! It shows that the contract of [`weir_core::endpoint`] carries such protocols, and how one is written: three pure state
//! machines, a header of their own, and a [`Scheme`] by which they are found. Nothing else knows it.
//!
//! - The sender numbers payloads and sends each to channel 0. The agent and the receivers are members.
//! - Each party acknowledges to the one above it all numbers up to the first that it lacks, and says below which number it can
//!   take payloads. The agent passes on the least of what its receivers say, so that the sender stops while one of them has no
//!   room.
//! - What is missing is asked for by number, from the party above, which still has it: a payload is released when all below
//!   have acknowledged it.
//! - The end of the stream has a number, too.
//!
//! Decisions:
//! 1. The stream waits for its first receiver. Later, receivers that are gone hold nothing back, even if none is left.
//! 2. A receiver that comes late begins with the oldest payload that is still stored. One that asks for an older payload
//!    is told which that is, and goes on from there: its application sees from the numbers what it has missed.
//! 3. What the sender has been allowed to send stays allowed, also when a receiver comes that has less room. It keeps up to
//!    [`WINDOW`] payloads until its application has room for them.
//! 4. A sender has one agent, the first that comes. Without it the stream ends.
//!
//! Not here: congestion control; the sender paces packets by a fixed gap.

mod agent;
mod arrivals;
mod header;
mod receiver;
mod sender;

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use weir_core::registry::{ConfigError, Parties, Scheme, Setting, Stream, Tree};
use weir_core::{Action, ChannelId, Destination, Endpoint, Packet, Payload, PeerId};
use weir_units::Ecn;

pub use arrivals::WINDOW;
pub use header::Message;

/// The toy.
pub const TOY: Scheme = Scheme {
    name: "toy",
    summary: "An agent between a sender and its receivers stores payloads until all have them",
    suits: "Tests",
    paper: "none: it tests the contract between protocols and drivers",
    parties: Parties::Tree(Tree {
        sender: |stream, settings, _| build(settings, || sender::Sender::new(stream)),
        agent: |stream, settings, _| build(settings, || agent::Agent::new(stream)),
        receiver: |stream, settings, _| build(settings, || receiver::Receiver::new(stream)),
    }),
    settings: Vec::new,
};

/// The party, unless there are settings: the toy has none.
fn build<E: Endpoint + 'static>(
    settings: &[Setting],
    party: impl FnOnce() -> E,
) -> Result<Box<dyn Endpoint>, ConfigError> {
    match settings.first() {
        None => Ok(Box::new(party())),
        Some(Setting { key, .. }) => Err(ConfigError::UnknownSetting { scheme: TOY.name, key: key.clone() }),
    }
}

/// What a party wants and its driver has not fetched, oldest first.
#[derive(Debug)]
struct Outbox {
    actions: VecDeque<Action>,
    stream: Stream,
}

impl Outbox {
    fn new(stream: &Stream) -> Outbox {
        Outbox { actions: VecDeque::with_capacity(arrivals::WINDOW as usize), stream: *stream }
    }

    fn push(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    /// Sends a message without a payload.
    fn say(&mut self, to: Destination, message: Message) {
        self.send(to, message, Payload::None);
    }

    /// Asks the party above for what is missing, if anything is.
    fn ask(&mut self, missing: Option<Range<u64>>) {
        let Some(missing) = missing else { return };
        self.say(TO_ABOVE, Message::Request { first: missing.start, below: missing.end });
    }

    fn send(&mut self, to: Destination, message: Message, payload: Payload) {
        let size = if payload == Payload::None { self.stream.feedback_size } else { self.stream.packet_size };
        let packet = Packet { header: message.header(), size, ecn: Ecn::NotEct };
        self.push(Action::Send { to, packet, payload, with_next: false });
    }

    fn pop(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
}

const fn to(peer: PeerId) -> Destination {
    Destination::Peer(peer)
}

/// The stream's channel.
const CHANNEL: ChannelId = ChannelId(0);
const TO_ALL: Destination = Destination::Channel(CHANNEL);
/// The party above an agent or a receiver: its first correspondent.
const ABOVE: PeerId = PeerId(0);
const TO_ABOVE: Destination = to(ABOVE);
/// A party that has nothing new to say says again how it stands, as what it said may have been lost.
const REPORT_EVERY: Duration = Duration::from_millis(50);

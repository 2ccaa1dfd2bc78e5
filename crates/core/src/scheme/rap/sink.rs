//! The sink: it answers every packet (§III).

use weir_units::{Bytes, Ecn, Time};
use weir_wire::{Feedback, Paced};

use super::arrivals::{Arrival, Arrivals};
use super::repair::Payloads;
use crate::definition::Stream;
use crate::endpoint::{Action, Destination, Endpoint, Event, Header, Origin, Packet};
use crate::observation::Observation;
use crate::outbox::Outbox;

/// Of how many packets an answer tells (decision 3).
const REPORTS: u8 = 16;

/// The sink of a stream.
#[derive(Debug)]
pub struct Sink {
    feedback_size: Bytes,
    arrivals: Arrivals,
    /// Once payloads have numbers of their own.
    payloads: Option<Payloads>,
    actions: Outbox,
    finished: bool,
}

impl Sink {
    /// A sink to which nothing has come.
    pub fn new(stream: &Stream) -> Sink {
        Sink {
            feedback_size: stream.feedback_size,
            arrivals: Arrivals::default(),
            payloads: None,
            actions: Outbox::default(),
            finished: false,
        }
    }

    fn on_packet(&mut self, from: Origin, packet: &Packet) {
        let (Header::Paced(paced), Origin::Peer(source)) = (packet.header, from) else { return };
        match self.arrivals.on_packet(paced.sequence, packet.ecn == Ecn::Ce) {
            Arrival::New { missing: 0 } | Arrival::Late => self.deliver(paced),
            Arrival::New { missing } => {
                self.deliver(paced);
                self.actions.push(Action::Observe(Observation::Missing { packets: missing }));
            }
            Arrival::Repeated => {}
            Arrival::Implausible => return,
        }
        let Some((newest, reports, arrived, marked)) = self.arrivals.newest(REPORTS) else { return };
        let newest = newest.truncate(16) as u16;
        let header = Header::Feedback(Feedback { newest, reports, arrived, marked, held: 0 });
        let packet = Packet { header, size: self.feedback_size, ecn: Ecn::NotEct };
        self.actions.push(Action::send(Destination::Peer(source), packet));
    }

    fn deliver(&mut self, paced: Paced) {
        let Some(payload) = paced.payload else { return self.actions.deliver(self.arrivals.number(paced.sequence)) };
        if let Some(number) = self.payloads.get_or_insert_default().on_payload(payload) {
            self.actions.deliver(Some(number));
        }
    }
}

impl Endpoint for Sink {
    fn handle(&mut self, _now: Time, event: Event<'_>) {
        match event {
            Event::Packet { from, packet } if !self.finished => self.on_packet(from, packet),
            Event::Finish => self.finished = true,
            _ => {}
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.actions.pop()
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

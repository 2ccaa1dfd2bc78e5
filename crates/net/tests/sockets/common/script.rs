//! An endpoint that does what a test says, an application that takes notes, and tenants for both.

use std::collections::VecDeque;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use weir_core::{Action, ChannelId, Endpoint, Event, Header, Packet};
use weir_net::host::{Application, Delivery, Progress, Statistics, Tenant};
use weir_net::profile::ExperimentalProfile;
use weir_net::socket::UnicastSocket;
use weir_units::{Bytes, Ecn, Time};
use weir_wire::experimental::{Experimental, LEN};

/// The session of all tenants here.
pub(crate) const TSI: u16 = 7;

/// What a script wants.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) actions: VecDeque<Action>,
    pub(crate) due: Option<Time>,
}

struct Script<F> {
    act: F,
    plan: Plan,
}

impl<F> fmt::Debug for Script<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl<F: FnMut(Time, Event<'_>, &mut Plan) + Send> Endpoint for Script<F> {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        self.plan.due.take_if(|due| *due <= now);
        (self.act)(now, event, &mut self.plan);
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.plan.actions.pop_front()
    }

    fn deadline(&self) -> Option<Time> {
        self.plan.due
    }
}

/// An endpoint that does what `act` says at each event.
pub(crate) fn script(act: impl FnMut(Time, Event<'_>, &mut Plan) + Send + 'static) -> Box<dyn Endpoint> {
    Box::new(Script { act, plan: Plan::default() })
}

/// An endpoint that wants all this when its session starts, and nothing else.
pub(crate) fn at_start(actions: &[Action]) -> Box<dyn Endpoint> {
    let actions = actions.to_vec();
    script(move |_, event, plan| {
        if event == Event::Start {
            plan.actions.extend(actions.iter().cloned());
        }
    })
}

/// A packet of a protocol under trial, whose header is filled with this number.
pub(crate) fn numbered(number: u8) -> Packet {
    Packet { header: Header::Experimental(Experimental([number; 16])), size: Bytes::new(SIZE), ecn: Ecn::NotEct }
}

/// The number of such a packet.
pub(crate) fn number_of(packet: &Packet) -> u8 {
    match packet.header {
        Header::Experimental(Experimental([number, ..])) => number,
        other => panic!("{other:?}"),
    }
}

/// Bytes of such a packet on the network, without a payload.
const SIZE: u64 = LEN as u64 + 28;

/// A datagram that is such a packet, followed by this payload.
pub(crate) fn datagram(number: u8, payload: &[u8]) -> Vec<u8> {
    [&Experimental([number; 16]).encode(TSI)[..], payload].concat()
}

/// A tenant that listens on the loopback, and where.
pub(crate) fn tenant(endpoint: Box<dyn Endpoint>) -> (Tenant<ExperimentalProfile>, SocketAddr) {
    let mut tenant = Tenant::new(&super::tenant_config()).with_endpoint(endpoint);
    let local = listen(&mut tenant);
    (tenant, local)
}

/// A session of the tenant on a socket of the loopback, and its address.
pub(crate) fn listen(tenant: &mut Tenant<ExperimentalProfile>) -> SocketAddr {
    tenant.add_unicast_session(ExperimentalProfile { tsi: TSI });
    let socket = UnicastSocket::listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
    let number = tenant.add_unicast(socket).expect("a session");
    tenant.unicast_local(number).expect("it was just added")
}

/// An application that ends the run when the endpoint is complete, and after some seconds at the latest.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// To be sent.
    pub(crate) payloads: VecDeque<Vec<u8>>,
    pub(crate) delivered: Vec<Vec<u8>>,
    /// How many had been delivered at the end of each batch.
    pub(crate) batches: Vec<usize>,
    taken: Vec<u8>,
    is_complete: bool,
    start: Option<Time>,
}

impl Notes {
    /// It has payloads of these lengths to send.
    pub(crate) fn with_payloads(lengths: &[usize]) -> Notes {
        Notes { payloads: lengths.iter().map(|len| vec![0x5a; *len]).collect(), ..Notes::default() }
    }
}

impl Application<()> for Notes {
    fn payload(&mut self, _now: Time, _channel: Option<ChannelId>) -> Option<((), &[u8])> {
        self.taken = self.payloads.pop_front()?;
        Some(((), &self.taken))
    }

    fn deliver(&mut self, _now: Time, delivery: Delivery<'_, ()>) {
        self.delivered.push(delivery.payload.to_vec());
    }

    fn batch_end(&mut self) {
        self.batches.push(self.delivered.len());
    }

    fn complete(&mut self, _now: Time) {
        self.is_complete = true;
    }

    fn tick(&mut self, now: Time, _statistics: &Statistics) -> Progress {
        let start = *self.start.get_or_insert(now);
        if self.is_complete || now.since(start) > PATIENCE { Progress::Stop } else { Progress::Continue }
    }
}

/// What takes longer will not come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

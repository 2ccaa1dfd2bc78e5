//! The room that an application has for payloads, and what it has not worked off, as its endpoint is told.

use std::net::UdpSocket;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::common::script::{Plan, datagram, script, tenant};
use weir_core::{Action, Backlog, Endpoint, Event};
use weir_net::host::{Application, Delivery, Host, Progress, Statistics};
use weir_net::{Impossible, NetError};
use weir_units::Time;

/// An application that has room for two payloads, reads each at once, and has enough after some.
struct Reading {
    enough: usize,
    start: Option<Time>,
}

impl Application<()> for Reading {
    fn deliver(&mut self, _now: Time, _delivery: Delivery<'_, ()>) {
        self.enough -= 1;
    }

    fn room(&self) -> Option<u64> {
        Some(2)
    }

    fn tick(&mut self, now: Time, _statistics: &Statistics) -> Progress {
        let start = *self.start.get_or_insert(now);
        let is_over = self.enough == 0 || now.since(start) > crate::common::script::PATIENCE;
        if is_over { Progress::Stop } else { Progress::Continue }
    }
}

/// An application that works nothing off, and has enough after some payloads.
struct Piling {
    waiting: u64,
    enough: u64,
    start: Option<Time>,
}

impl Application<()> for Piling {
    fn deliver(&mut self, _now: Time, _delivery: Delivery<'_, ()>) {
        self.waiting += 1;
    }

    fn backlog(&self) -> Option<Backlog> {
        Some(Backlog { waiting: self.waiting, most: 9 })
    }

    fn tick(&mut self, now: Time, _statistics: &Statistics) -> Progress {
        let start = *self.start.get_or_insert(now);
        let is_over = self.waiting == self.enough || now.since(start) > crate::common::script::PATIENCE;
        if is_over { Progress::Stop } else { Progress::Continue }
    }
}

/// What an endpoint was told.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Room(u64),
    Backlog(u64),
    Start,
    Packet,
}

/// Tells all that it is told, and does what `act` wants.
fn telling(act: impl Fn(&Told, &mut Plan) + Send + 'static) -> (Box<dyn Endpoint>, Receiver<Told>) {
    let (tell, told): (Sender<Told>, Receiver<Told>) = channel();
    let endpoint = script(move |_, event, plan| {
        let event = match event {
            Event::Room { payloads } => Told::Room(payloads),
            Event::Backlog(backlog) => Told::Backlog(backlog.waiting),
            Event::Start => Told::Start,
            Event::Packet { .. } => Told::Packet,
            _ => return,
        };
        act(&event, plan);
        tell.send(event).expect("the test listens");
    });
    (endpoint, told)
}

/// Runs the endpoint with an application that has room for two payloads until it has enough.
fn run(endpoint: Box<dyn Endpoint>, enough: usize) -> Result<Statistics, NetError> {
    run_with(endpoint, &mut Reading { enough, start: None })
}

/// Runs the endpoint until its application has had enough; a packet comes before it starts.
fn run_with(endpoint: Box<dyn Endpoint>, application: &mut impl Application<()>) -> Result<Statistics, NetError> {
    let (tenant, local) = tenant(endpoint);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port of the loopback");
    socket.send_to(&datagram(1, b"payload"), local).expect("the loopback takes it");
    Host::run_one(tenant, application)
}

#[test]
fn room_is_told_before_the_start_and_again_when_payloads_have_been_read() {
    let (endpoint, told) = telling(|told, plan| {
        if *told == Told::Packet {
            plan.actions.extend([Action::Keep { number: 1 }, DELIVER, DELIVER]);
        }
    });
    let statistics = run(endpoint, 2).expect("it runs");
    let told: Vec<Told> = told.iter().collect();
    assert_eq!(told[..4], [Told::Room(2), Told::Start, Told::Packet, Told::Room(2)]);
    assert_eq!(statistics.delivered, 2);
}

#[test]
fn a_delivery_beyond_the_room_ends_the_run() {
    let (endpoint, _told) = telling(|told, plan| {
        if *told == Told::Packet {
            plan.actions.extend([Action::Keep { number: 1 }, DELIVER, DELIVER, DELIVER]);
        }
    });
    let error = run(endpoint, 9).expect_err("it delivers three payloads into a room for two");
    assert!(matches!(error, NetError::Impossible(Impossible::NoRoom)), "{error}");
}

#[test]
fn a_backlog_is_told_when_it_is_another_than_before() {
    let (endpoint, told) = telling(|told, plan| {
        if *told == Told::Packet {
            plan.actions.extend([Action::Keep { number: 1 }, DELIVER, DELIVER, DELIVER]);
        }
    });
    run_with(endpoint, &mut Piling { waiting: 0, enough: 3, start: None }).expect("it runs");
    let told: Vec<Told> = told.iter().collect();
    assert_eq!(told[..2], [Told::Start, Told::Packet]);
    let backlogs =
        told[2..].iter().map(|told| if let Told::Backlog(waiting) = told { *waiting } else { panic!("{told:?}") });
    assert!(
        backlogs.is_sorted_by(|before, after| before < after) && told.last() == Some(&Told::Backlog(3)),
        "{told:?}"
    );
}

const DELIVER: Action = Action::DeliverKept { number: 1 };

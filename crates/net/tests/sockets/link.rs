//! A modelled link in front of a receiver, and the times at which packets count.

use std::time::Duration;

use crate::common::{Beacon, Taker, config, receive, send, session, tenant_config};
use weir_core::{Action, Endpoint, Event};
use weir_net::host::{Application, Host, LinkInFront, Progress, Statistics, TenantConfig};
use weir_net::session::{self, SessionConfig};
use weir_net::{Description, NetError};
use weir_units::Time;
use weir_wire::alc::Content;

fn behind(link: &str) -> SessionConfig {
    let link = LinkInFront { config: link.parse().expect("a link"), seed: 7 };
    SessionConfig { tenant: TenantConfig { link: Some(link), ..tenant_config() }, ..config() }
}

#[test]
fn everything_comes_through_a_link_that_is_fast_enough() {
    let description = session(2, true);
    let sending = send(&description, Beacon::new(2, 10, 20), &config());
    let (ledger, statistics) = receive(&description, 0..2, &behind("rate=100mbit,delay=30ms,buffer=100ms"));
    sending.join().expect("no panic");
    assert_eq!((ledger.seen.len(), statistics.link_dropped), (400, 0));
    assert_eq!(ledger.of_channel(1), (0..200).collect::<Vec<_>>());
}

#[test]
fn a_slow_link_drops_what_does_not_fit_its_buffer() {
    let description = session(1, true);
    let sending = send(&description, Beacon::new(1, 50, 10), &config());
    let (ledger, statistics) = receive(&description, [0], &behind("rate=4mbit,buffer=50ms"));
    sending.join().expect("no panic");
    // 500 packets of 1056 bytes come in about 50 ms; 4 Mbit/s take 24 of them in that time, and 24 fit the buffer.
    assert!((24..150).contains(&statistics.delivered), "{statistics:?}");
    // Closing packets go through the link too.
    assert!(statistics.link_dropped + statistics.delivered >= 497, "{statistics:?}");
    assert_eq!(ledger.wrong, 0);
}

#[test]
fn random_loss_is_counted_as_the_link_s() {
    let description = session(1, true);
    let sending = send(&description, Beacon::new(1, 50, 20), &config());
    let (_, statistics) = receive(&description, [0], &behind("loss=10%"));
    sending.join().expect("no panic");
    assert!((50..200).contains(&statistics.link_dropped), "{statistics:?}");
    assert!((1_000..=1_003).contains(&(statistics.link_dropped + statistics.delivered)), "{statistics:?}");
}

/// Notes when packets and deadlines come.
#[derive(Debug)]
struct Notes {
    taker: Taker,
    packets: Vec<Time>,
    times: Vec<Time>,
    next: Option<Time>,
    report: std::sync::mpsc::Sender<(Vec<Time>, Vec<Time>)>,
}

/// Hears from [`Notes`] at the end: when packets came, and when anything did.
type Heard = std::sync::mpsc::Receiver<(Vec<Time>, Vec<Time>)>;

impl Notes {
    fn new(channels: u16) -> (Notes, Heard) {
        let (report, heard) = std::sync::mpsc::channel();
        let (packets, times) = (Vec::new(), Vec::new());
        (Notes { taker: Taker::new(0..channels), packets, times, next: None, report }, heard)
    }
}

impl Endpoint for Notes {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        self.times.push(now);
        match event {
            Event::Packet { .. } => self.packets.push(now),
            Event::Deadline | Event::Start => self.next = Some(now + Duration::from_millis(7)),
            Event::Finish => self.report.send((self.packets.clone(), self.times.clone())).expect("the test listens"),
            _ => {}
        }
        self.taker.handle(now, event);
    }

    fn poll(&mut self, now: Time) -> Option<Action> {
        self.taker.poll(now)
    }

    fn deadline(&self) -> Option<Time> {
        self.next
    }
}

/// Ends after a given number of ticks, and sleeps after each batch.
struct Until(u32, Duration, u16);

impl Application<Content> for Until {
    fn batch_end(&mut self) {
        std::thread::sleep(self.1);
    }
    fn problem(&mut self, _now: Time, problem: &NetError) {
        panic!("{problem}");
    }
    fn tick(&mut self, _now: Time, _statistics: &Statistics) -> Progress {
        crate::common::note_joined(self.2);
        self.0 -= 1;
        if self.0 > 0 { Progress::Continue } else { Progress::Stop }
    }
}

/// Runs a receiver that takes notes for a given number of ticks, and sleeps after each batch.
fn take_notes(notes: Notes, description: &Description, config: &SessionConfig, ticks: u32, dawdle: Duration) {
    let tenant = session::receiver(description, Some(Box::new(notes)), config).expect("a receiver");
    Host::run_one(tenant, &mut Until(ticks, dawdle, description.channels[0].port())).expect("it runs");
}

#[test]
fn packets_come_out_at_the_link_s_pace_and_time_never_goes_back() {
    let description = session(3, true);
    let sending = send(&description, Beacon::new(3, 10, 10), &config());
    let (notes, heard) = Notes::new(3);
    let config = behind("rate=8mbit,delay=10ms,buffer=1s");
    take_notes(notes, &description, &config, 200, Duration::ZERO);
    sending.join().expect("no panic");
    let (packets, times) = heard.recv().expect("the endpoint was finished");
    assert!(times.is_sorted() && times.len() > 400, "{} events", times.len());
    assert_eq!(packets.len(), 300);
    // 1056 bytes at 8 Mbit/s take 1.056 ms, to the nanosecond, whatever the scheduler does, while the link is busy.
    let gaps: Vec<u128> = packets.windows(2).map(|pair| pair[1].since(pair[0]).as_nanos()).collect();
    let exact = gaps.iter().filter(|gap| **gap == 1_056_000).count();
    assert!(exact > 250, "{exact} of {} gaps are the link's", gaps.len());
}

#[test]
fn a_receiver_that_is_slow_to_read_still_sees_when_packets_arrived() {
    let description = session(1, true);
    let sending = send(&description, Beacon::new(1, 1, 40), &config());
    let (notes, heard) = Notes::new(1);
    // It reads every 60 ms or so, and a packet comes every 5 ms.
    take_notes(notes, &description, &config(), 60, Duration::from_millis(60));
    sending.join().expect("no panic");
    let (packets, times) = heard.recv().expect("the endpoint was finished");
    assert_eq!(packets.len(), 40);
    assert!(times.is_sorted());
    let apart = packets.windows(2).filter(|pair| pair[1].since(pair[0]) > Duration::from_millis(1)).count();
    assert!(apart > 20, "only {apart} of 39 packets came apart from the one before");
}

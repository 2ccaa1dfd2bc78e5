//! What packets on a channel say of their session that anybody can say: that it is over, and that they are the sender's.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::common::{Taker, config, is_joined, note_joined, session};
use socket2::{Domain, Socket, Type};
use weir_net::description::Description;
use weir_net::host::{Application, Delivery, Host, Progress, Statistics, Strange};
use weir_units::Time;
use weir_wire::Layered;
use weir_wire::alc::{Content, MAX_OVERHEAD};
use weir_wire::fec::{PayloadId, RAPTORQ};

#[test]
fn data_takes_back_that_a_session_is_over_unless_it_says_so_itself() {
    let description = session(1, true);
    let said = [Said::Data, Said::Close, Said::Close, Said::Data, Said::Data, Said::LastData, Said::Close];
    let (log, statistics) = heard(&description, Ipv4Addr::LOCALHOST, &said);
    assert_eq!(log.events, ["data", "closed", "reopened", "data", "data", "data", "closed"]);
    assert_eq!(statistics.ignored.total(), 0);
}

#[test]
fn packets_from_another_address_than_the_description_s_are_not_taken_whatever_they_say() {
    let sender = Ipv4Addr::new(127, 0, 0, 2);
    for is_joined_for_source in [false, true] {
        let described = || Description {
            source: is_joined_for_source.then_some(sender.into()),
            control_address: Some(SocketAddr::new(sender.into(), 9)),
            ..session(1, true)
        };
        let said = [Said::Data, Said::Close, Said::Data];
        let (log, statistics) = heard(&described(), sender, &said);
        assert_eq!((log.events, statistics.ignored.total()), (vec!["data", "closed", "reopened", "data"], 0));
        let (log, statistics) = heard(&described(), Ipv4Addr::LOCALHOST, &said);
        assert!(log.events.is_empty(), "{:?}", log.events);
        // The system keeps away what comes to a membership for another source.
        let expected = if is_joined_for_source { 0 } else { 3 };
        assert_eq!(statistics.ignored.foreign, expected);
        let is_told =
            statistics.strangers.iter().any(|one| one.why == Strange::Source && one.from == Ipv4Addr::LOCALHOST);
        assert_eq!(is_told, !is_joined_for_source);
    }
}

/// What a packet says.
#[derive(Debug, Clone, Copy)]
enum Said {
    Data,
    /// Data with the flag that says that the session is over.
    LastData,
    Close,
}

/// What the application of a receiver is told.
#[derive(Debug, Default)]
struct Log {
    session: u16,
    events: Vec<&'static str>,
    last: Vec<&'static str>,
    quiet_ticks: u32,
}

impl Application<Content> for Log {
    fn deliver(&mut self, _now: Time, _delivery: Delivery<'_, Content>) {
        self.events.push("data");
    }

    fn closed(&mut self, _now: Time, _session: usize) {
        self.events.push("closed");
    }

    fn reopened(&mut self, _now: Time, _session: usize) {
        self.events.push("reopened");
    }

    fn tick(&mut self, _now: Time, _statistics: &Statistics) -> Progress {
        note_joined(self.session);
        self.quiet_ticks = if self.events == self.last { self.quiet_ticks + 1 } else { 0 };
        self.last.clone_from(&self.events);
        if self.quiet_ticks > QUIET_TICKS { Progress::Stop } else { Progress::Continue }
    }
}

/// What a receiver of the session hears of these packets from this address.
fn heard(description: &Description, from: Ipv4Addr, said: &[Said]) -> (Log, Statistics) {
    let (group, profile) = (description.channels[0], description.profile());
    let said = said.to_vec();
    let speaker = std::thread::spawn(move || {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("a socket");
        socket.bind(&SocketAddr::new(from.into(), 0).into()).expect("an address of the loopback");
        socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).expect("the loopback");
        while !is_joined(group.port()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        for (sequence, said) in (0..).zip(said) {
            let layered = Layered { sequence, ..Layered::default() };
            let mut packet = [0; MAX_OVERHEAD + 8];
            let length = match said {
                Said::Close => profile.encode_close(&layered, &mut packet),
                Said::Data | Said::LastData => {
                    let payload_id = PayloadId { block: 0, symbol: sequence };
                    let content = Content { toi: 1, encoding_id: RAPTORQ, payload_id, fdt: None, oti: None, ask: None };
                    profile.encode(&layered, &content, &mut packet) + 8
                }
            };
            if matches!(said, Said::LastData) {
                packet[1] |= FLAG_A;
            }
            socket.send_to(&packet[..length], &group.into()).expect("the loopback takes it");
            // One read is in the order of arrival anyway; but each has its own time so.
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let tenant =
        weir_net::session::receiver(description, Some(Box::new(Taker::new([0]))), &config()).expect("a receiver");
    let mut log = Log { session: group.port(), ..Log::default() };
    let statistics = Host::run_one(tenant, &mut log).expect("it runs");
    speaker.join().expect("no panic");
    (log, statistics)
}

/// In the second byte of the LCT header (RFC 5651 §5.1).
const FLAG_A: u8 = 0b10;
/// Ticks of 10 ms.
const QUIET_TICKS: u32 = 100;

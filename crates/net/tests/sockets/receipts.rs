//! Messages between applications over the control port: a receipt and its acknowledgement.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use crate::common::script::at_start;
use crate::common::{Counting, config, session};
use weir_core::PeerId;
use weir_net::Description;
use weir_net::host::{Application, Host, Progress, Statistics};
use weir_net::receipts::{Identity, ReceiptBook, ReceiptSender, Standing, Verdicts};
use weir_units::{Random, Time};
use weir_wire::alc::Content;
use weir_wire::receipt::LEN;

const KEY: [u8; 32] = [7; 32];
const SIGNATURE: [u8; 64] = [8; 64];

/// A sender that takes receipts for a while.
struct Collects {
    book: ReceiptBook,
    time: Counting,
    /// What it answers in place of an acknowledgement.
    instead: Option<Vec<u8>>,
}

impl Application<Content> for Collects {
    fn message(&mut self, now: Time, _from: SocketAddr, message: &[u8]) -> Option<Vec<u8>> {
        let answer = self.book.on_message(now, message, |_| {});
        self.instead.clone().or(answer)
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        self.time.tick(now, statistics)
    }
}

/// A receiver that has everything, and waits until the sender knows.
struct Finished {
    receipt: ReceiptSender,
}

impl Application<Content> for Finished {
    fn message(&mut self, now: Time, _from: SocketAddr, message: &[u8]) -> Option<Vec<u8>> {
        self.receipt.on_message(now, message);
        None
    }

    fn next_message(&mut self, now: Time) -> Option<(PeerId, Vec<u8>)> {
        self.receipt.poll(now, Standing::default).map(|message| (PeerId(0), message))
    }

    fn deadline(&self) -> Option<Time> {
        self.receipt.deadline()
    }

    fn tick(&mut self, _now: Time, _statistics: &Statistics) -> Progress {
        if self.receipt.deadline().is_none() { Progress::Stop } else { Progress::Finish }
    }
}

fn with_receipts() -> Description {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let control_address = Some(socket.local_addr().expect("it is bound"));
    Description { control_address, receipt_key: Some(KEY), ..session(1, true) }
}

fn collect(description: &Description, span: Duration, instead: Option<Vec<u8>>) -> (Collects, Statistics) {
    let sender = weir_net::session::sender(description, at_start(&[]), &config()).expect("a sender");
    // Signatures are the applications' business; here any will do.
    let verdicts = Verdicts {
        is_signed: |_, _, signature| signature == &SIGNATURE,
        is_of_content: Box::new(|receipt| receipt.proof == [5; 32]),
        is_expected: Box::new(|_| false),
        sign: Box::new(|_| SIGNATURE),
    };
    let book = ReceiptBook::new(KEY, description.tsi, 1, verdicts);
    let mut collects = Collects { book, time: Counting::for_all_of(span), instead };
    let statistics = Host::run_one(sender, &mut collects).expect("it runs");
    (collects, statistics)
}

#[test]
fn a_receipt_reaches_the_sender_s_application_and_its_acknowledgement_the_receiver_s() {
    let description = with_receipts();
    let of_sender = description.clone();
    let collecting = std::thread::spawn(move || collect(&of_sender, Duration::from_secs(2), None));
    let receiver = weir_net::session::receiver(&description, None, &config()).expect("a receiver");
    let random = Random::new(1, "receipt");
    let now = weir_net::clock::Clock::new().now();
    let identity = Identity { key: [3; 32], name: "host".to_owned(), sign: Box::new(|_| SIGNATURE) };
    let is_signed = Box::new(|_: &[u8], signature: &[u8; 64]| signature == &SIGNATURE);
    let mut receipt = ReceiptSender::new(identity, description.tsi, KEY, is_signed, now, random);
    receipt.finish(now, Duration::from_millis(100), Standing::default(), [5; 32]);
    let mut finished = Finished { receipt };
    Host::run_one(receiver, &mut finished).expect("it runs");
    let (collects, _) = collecting.join().expect("no panic");
    assert!(finished.receipt.is_acknowledged());
    let known: Vec<&str> = collects.book.entries().map(|entry| entry.last.name()).collect();
    assert_eq!((known, collects.book.receivers(), collects.book.forged()), (vec!["host"], 1, 0));
}

#[test]
fn an_answer_longer_than_its_message_is_not_sent() {
    for (instead, expected) in [(vec![1; LEN], Some(LEN)), (vec![1; LEN + 1], None)] {
        let description = with_receipts();
        let control = description.control_address.expect("it has one");
        let refused = u64::from(expected.is_none());
        let collecting = std::thread::spawn(move || collect(&description, Duration::from_millis(500), Some(instead)));
        std::thread::sleep(Duration::from_millis(100));
        let asking = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        asking.set_read_timeout(Some(Duration::from_millis(300))).expect("not zero");
        let mut message = [0; LEN];
        message[..4].copy_from_slice(b"WRCP");
        asking.send_to(&message, control).expect("the loopback takes it");
        assert_eq!(asking.recv(&mut [0; 500]).ok(), expected);
        let (_, statistics) = collecting.join().expect("no panic");
        assert_eq!(statistics.refused, refused, "{statistics:?}");
    }
}

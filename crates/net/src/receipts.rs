//! Receipts: how a sender that asks for it learns who has finished.
//!
//! A receiver that has everything waits for a random part of a spread, so that a thousand of them do not answer at once,
//! and then sends a small unicast message until it is acknowledged, at most five times. Messages carry a keyed BLAKE3 tag;
//! whoever has the session's description can make one, nobody else can, and the sender answers nothing without it.
//!
//! [`Courier`] is the receiver's side as a state machine without clock or socket, [`send_receipt`] runs it;
//! [`ReceiptDesk`] is the sender's side.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::time::Duration;

use weir_units::{Random, Time};
use weir_wire::receipt::{BODY_LEN, Kind, LEN, Receipt, TAG_LEN};

use crate::clock::{self, Clock};
use crate::description::ReceiptAddress;
use crate::error::NetError;

/// The receiver's side: when to send the receipt again, and when to stop.
#[derive(Debug, Clone)]
pub struct Courier {
    receipt: Receipt,
    key: [u8; 32],
    /// When to send next; `None` when it is over.
    next: Option<Time>,
    interval: Duration,
    tries: u32,
    is_acknowledged: bool,
}

/// Most receipts that a receiver sends.
pub const MAX_TRIES: u32 = 5;

impl Courier {
    /// Begins at `now`, with a wait within `spread` that `seed` and the receiver's number choose.
    pub fn new(receipt: Receipt, key: [u8; 32], now: Time, spread: Duration, seed: u64) -> Courier {
        let mut random = Random::new(seed ^ receipt.receiver, "receipt");
        let wait = spread.mul_f64(random.unit());
        let receipt = Receipt { kind: Kind::Receipt, ..receipt };
        Courier { receipt, key, next: Some(now + wait), interval: FIRST_INTERVAL, tries: 0, is_acknowledged: false }
    }

    /// When [`Courier::poll`] wants to be called; `None` when it is over.
    pub fn deadline(&self) -> Option<Time> {
        self.next
    }

    /// The message to send at `now`, if it is time. Each wait is twice the one before, from half a second on.
    pub fn poll(&mut self, now: Time) -> Option<[u8; LEN]> {
        if self.next.is_none_or(|next| now < next) {
            return None;
        }
        if self.tries == MAX_TRIES {
            self.next = None;
            return None;
        }
        self.tries += 1;
        self.next = Some(now + self.interval);
        self.interval *= 2;
        Some(sealed(&self.receipt, &self.key))
    }

    /// A message came. Returns whether it is the acknowledgement; anything else is ignored.
    pub fn on_message(&mut self, message: &[u8]) -> bool {
        let wanted = Receipt { kind: Kind::Acknowledgement, ..self.receipt };
        if opened(message, &self.key) == Some(wanted) {
            self.next = None;
            self.is_acknowledged = true;
        }
        self.is_acknowledged
    }

    /// Whether the sender has confirmed.
    pub fn is_acknowledged(&self) -> bool {
        self.is_acknowledged
    }
}

/// Sends `receipt` to where the description says, and waits until it is acknowledged, given up, or `stop` says break.
///
/// Takes up to `spread` and 15.5 s. Returns whether the sender acknowledged,
/// and how often the receipt was sent.
pub fn send_receipt(
    to: &ReceiptAddress,
    receipt: Receipt,
    spread: Duration,
    seed: u64,
    mut stop: impl FnMut() -> ControlFlow<()>,
) -> Result<(bool, u32), NetError> {
    let local = any_port(to.address.ip());
    let failed = |source| NetError::Socket { address: local, source };
    let socket = UdpSocket::bind(local).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    // Connected, so that answers of others are not even seen.
    socket.connect(to.address).map_err(|source| NetError::Socket { address: to.address, source })?;
    let clock = Clock::new();
    let mut courier = Courier::new(receipt, to.key, clock.now(), spread, seed);
    let mut message = [0; LEN + 1];
    while let Some(deadline) = courier.deadline() {
        if stop().is_break() {
            break;
        }
        if let Some(message) = courier.poll(clock.now()) {
            // A receipt that cannot be sent now is as good as lost, and is sent again.
            let _ = socket.send(&message);
        }
        let until = deadline.min(clock.now() + STOP_INTERVAL);
        let mut waiting = [clock::readable(socket.as_fd())];
        if clock::wait(&mut waiting, until).map_err(|error| NetError::Wait(error.into()))?
            && let Ok(len) = socket.recv(&mut message)
            && courier.on_message(&message[..len])
        {
            break;
        }
    }
    Ok((courier.is_acknowledged(), courier.tries))
}

/// The sender's side: takes receipts, answers them, and counts the receivers.
#[derive(Debug)]
pub struct ReceiptDesk {
    socket: UdpSocket,
    local: SocketAddr,
    key: [u8; 32],
    tsi: u16,
    receivers: BTreeMap<u64, Receipt>,
    forged: u64,
    overflowed: u64,
}

impl ReceiptDesk {
    /// A desk on `address`; port 0 takes any free one.
    pub fn open(address: SocketAddr, key: [u8; 32], tsi: u16) -> Result<ReceiptDesk, NetError> {
        let failed = |source| NetError::Socket { address, source };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let local = socket.local_addr().map_err(failed)?;
        Ok(ReceiptDesk { socket, local, key, tsi, receivers: BTreeMap::new(), forged: 0, overflowed: 0 })
    }

    /// Where it listens.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Takes what has come, without waiting, at most a thousand messages a call; `on_new` hears of each new
    /// receiver and where its receipt came from.
    pub fn serve(&mut self, mut on_new: impl FnMut(&Receipt, SocketAddr)) -> Result<(), NetError> {
        let mut message = [0; LEN + 1];
        for _ in 0..MESSAGES_A_CALL {
            match self.socket.recv_from(&mut message) {
                Ok((len, from)) => {
                    if let Some(answer) = self.on_message(&message[..len], |receipt| on_new(receipt, from)) {
                        // If the answer is lost, the receiver asks again.
                        let _ = self.socket.send_to(&answer, from);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // What an earlier answer met, such as a receiver that is gone.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(NetError::Receive(error)),
            }
        }
        Ok(())
    }

    /// How many receivers have finished.
    pub fn receivers(&self) -> u64 {
        self.receivers.len() as u64
    }

    /// The receipts, by the number of the receiver.
    pub fn receipts(&self) -> impl Iterator<Item = &Receipt> {
        self.receivers.values()
    }

    /// Messages that were not receipts of this session made with its key.
    pub fn forged(&self) -> u64 {
        self.forged
    }

    /// Good receipts that were not counted, and not acknowledged, because the table was full.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    fn on_message(&mut self, message: &[u8], on_new: impl FnOnce(&Receipt)) -> Option<[u8; LEN]> {
        let receipt = opened(message, &self.key).filter(|it| it.kind == Kind::Receipt && it.tsi == self.tsi);
        let Some(receipt) = receipt else {
            self.forged += 1;
            return None;
        };
        if !self.receivers.contains_key(&receipt.receiver) {
            if self.receivers.len() == MAX_RECEIVERS {
                self.overflowed += 1;
                return None;
            }
            self.receivers.insert(receipt.receiver, receipt);
            on_new(&receipt);
        }
        Some(sealed(&Receipt { kind: Kind::Acknowledgement, ..receipt }, &self.key))
    }
}

/// A message with its tag: the first 16 bytes of the keyed BLAKE3 hash of its body.
fn sealed(receipt: &Receipt, key: &[u8; 32]) -> [u8; LEN] {
    let body = receipt.encode_body();
    let mut message = [0; LEN];
    message[..BODY_LEN].copy_from_slice(&body);
    message[BODY_LEN..].copy_from_slice(&tag(&body, key));
    message
}

/// What a message says, if its tag is right.
fn opened(message: &[u8], key: &[u8; 32]) -> Option<Receipt> {
    let (receipt, given) = Receipt::decode(message).ok()?;
    let right = tag(&receipt.encode_body(), key);
    // All bytes are compared whatever the first ones are, so that the time taken tells nothing.
    let difference = given.iter().zip(right).fold(0, |all, (given, right)| all | (given ^ right));
    (std::hint::black_box(difference) == 0).then_some(receipt)
}

fn tag(body: &[u8; BODY_LEN], key: &[u8; 32]) -> [u8; TAG_LEN] {
    let hash = blake3::keyed_hash(key, body);
    *hash.as_bytes().first_chunk().expect("a BLAKE3 hash has 32 bytes")
}

fn any_port(family: IpAddr) -> SocketAddr {
    match family {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// The first wait for an acknowledgement; it doubles each time, so five tries end after 15.5 s.
const FIRST_INTERVAL: Duration = Duration::from_millis(500);
/// How often a waiting receiver asks whether it should stop.
const STOP_INTERVAL: Duration = Duration::from_millis(100);
/// So many receivers take about 100 MB.
const MAX_RECEIVERS: usize = 1_000_000;
const MESSAGES_A_CALL: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn receipt(receiver: u64) -> Receipt {
        Receipt { kind: Kind::Receipt, tsi: 9, receiver, received_bytes: 1_000, elapsed_millis: 20 }
    }

    fn courier() -> Courier {
        Courier::new(receipt(1), KEY, Time::ZERO, Duration::ZERO, 1)
    }

    fn desk() -> ReceiptDesk {
        ReceiptDesk::open((Ipv4Addr::LOCALHOST, 0).into(), KEY, 9).expect("a port on the loopback")
    }

    #[test]
    fn an_unanswered_receipt_is_sent_five_times_ever_more_slowly() {
        let mut courier = courier();
        let mut sent = Vec::new();
        while let Some(deadline) = courier.deadline() {
            if courier.poll(deadline).is_some() {
                sent.push(deadline.as_micros() / 1_000);
            }
        }
        assert_eq!(sent, [0, 500, 1_500, 3_500, 7_500]);
        assert!(!courier.is_acknowledged());
    }

    #[test]
    fn the_first_receipt_waits_for_a_random_part_of_the_spread() {
        let spread = Duration::from_secs(10);
        let first =
            |receiver| Courier::new(receipt(receiver), KEY, Time::ZERO, spread, 3).deadline().expect("it waits");
        let waits: Vec<Time> = (0..100).map(first).collect();
        assert!(waits.iter().all(|wait| *wait < Time::ZERO + spread));
        let early = waits.iter().filter(|wait| **wait < Time::from_secs(5)).count();
        assert!((30..70).contains(&early), "{early} of 100 in the first half");
    }

    #[test]
    fn an_acknowledgement_ends_it_and_a_forged_one_does_not() {
        let mut courier = courier();
        let receipt_back = courier.poll(Time::ZERO).expect("it is time");
        assert!(!courier.on_message(&receipt_back), "its own receipt is no acknowledgement");
        let acknowledgement = Receipt { kind: Kind::Acknowledgement, ..receipt(1) };
        assert!(!courier.on_message(&sealed(&acknowledgement, &[8; 32])), "the key is wrong");
        assert!(!courier.on_message(&sealed(&Receipt { receiver: 2, ..acknowledgement }, &KEY)), "it is for another");
        assert!(courier.on_message(&sealed(&acknowledgement, &KEY)));
        assert_eq!(courier.deadline(), None);
    }

    #[test]
    fn the_desk_counts_each_receiver_once_and_forgeries_apart() {
        let mut desk = desk();
        let mut new = 0;
        let mut hear = |message: &[u8]| desk.on_message(message, |_: &Receipt| new += 1).is_some();
        assert!(
            hear(&sealed(&receipt(1), &KEY)) && hear(&sealed(&receipt(1), &KEY)) && hear(&sealed(&receipt(2), &KEY))
        );
        assert!(!hear(&sealed(&receipt(3), &[8; 32])), "another key");
        assert!(!hear(&sealed(&Receipt { tsi: 8, ..receipt(3) }, &KEY)), "another session");
        assert!(!hear(&sealed(&Receipt { kind: Kind::Acknowledgement, ..receipt(3) }, &KEY)), "not a receipt");
        assert!(!hear(b"WRCP") && !hear(&[]));
        assert_eq!((desk.receivers(), desk.forged(), new), (2, 5, 2));
    }

    #[test]
    fn a_receipt_is_acknowledged_over_a_real_socket() {
        let mut desk = desk();
        let to = ReceiptAddress { address: desk.local(), key: KEY };
        let receiver = std::thread::spawn(move || {
            send_receipt(&to, receipt(5), Duration::from_millis(20), 1, || ControlFlow::Continue(()))
        });
        while !receiver.is_finished() {
            desk.serve(|_, _| {}).expect("the socket works");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(receiver.join().expect("no panic").expect("the socket works").0);
        assert_eq!(desk.receipts().map(|receipt| receipt.receiver).collect::<Vec<_>>(), [5]);
    }
}

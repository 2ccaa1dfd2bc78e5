//! The sender's side: announces a session while it is sent.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_net::announce::{Announcer, Listener, group_for};
use weir_net::clock::{Clock, wall_ntp_secs};
use weir_net::description::Description;
use weir_net::socket::header_len;
use weir_net::{Interface, InterfaceChoice};
use weir_object::keys::SecretKey;
use weir_units::Time;
use weir_wire::{Sap, sap};

use super::pace::Pace;
use super::{WITHDRAWN, compressed};
use crate::args::SendFile;
use crate::exit::{Exit, Failure};
use crate::session::{self, Offer};
use crate::trust;

/// A session that is to be announced.
pub(crate) struct Plan {
    pub(crate) group: SocketAddr,
    announcer: Announcer,
    /// Hears the others, where the group can be joined.
    listener: Option<Listener>,
    description: Description,
    secret: SecretKey,
}

impl Plan {
    /// The announcement that the options ask for. What cannot be announced is told before anything is sent.
    pub(crate) fn new(args: &SendFile, offer: &Offer, interface: &Interface) -> Result<Option<Plan>, Failure> {
        let Some(group) = args.announce else { return Ok(None) };
        let group = group.unwrap_or_else(|| group_for(args.to.ip()));
        let usage = |message: String| Failure::new(Exit::Usage, message);
        if offer.description.sealing.key.is_some() {
            let message = "--announce would tell everybody who listens the key of the session's packets, which the description holds: name the \
                           hosts that may have it with --readers, or give them the description another way, without --announce";
            return Err(usage(message.to_owned()));
        }
        let refused = |error| Failure::of(Exit::Network, "cannot announce the session")(error);
        let choice = InterfaceChoice::Name(interface.name.clone());
        let plan = Plan {
            group,
            announcer: Announcer::new(interface, group, args.ttl).map_err(refused)?,
            listener: Listener::new(&choice, &[group]).ok(),
            description: offer.description.clone(),
            secret: offer.secret.clone(),
        };
        let packet = plan.packet(wall_ntp_secs(), false).map_err(Failure::of(Exit::Internal, "cannot announce"))?;
        let (bytes, most) = (packet.bytes.len() as u64 + header_len(group.ip()), u64::from(offer.packet_size));
        if bytes > most {
            return Err(usage(format!(
                "an announcement of this session takes {bytes} bytes, and the path carries {most} in one piece (--packet-size): a higher \
                 --ratio makes fewer channels, --readers with fewer hosts fewer keys; or give receivers the description another way, without \
                 --announce"
            )));
        }
        Ok(Some(plan))
    }

    /// Announces the session from now on.
    pub(crate) fn start(self) -> io::Result<Announcing> {
        let is_over = Arc::<AtomicBool>::default();
        let (tell, troubles) = channel();
        let thread = std::thread::Builder::new().name("announce".into()).spawn({
            let is_over = Arc::clone(&is_over);
            move || self.run(&is_over, &tell)
        })?;
        Ok(Announcing { is_over, troubles, thread: Some(thread) })
    }

    fn run(mut self, is_over: &AtomicBool, tell: &Sender<String>) {
        let clock = Clock::new();
        let (mut pace, mut packet, mut has_failed) = (Pace::default(), None, false);
        while !is_over.load(Ordering::Relaxed) {
            let date = wall_ntp_secs();
            let current = packet.take().filter(|packet: &Packet| packet.holds(date));
            let Ok(current) = current.map_or_else(|| self.packet(date, false), Ok) else { return };
            // A network that is down for a while comes back.
            if let Err(error) = self.announcer.send(&current.bytes)
                && !std::mem::replace(&mut has_failed, true)
            {
                let _nobody_asks = tell.send(format!("the session cannot be announced at {}: {error}", self.group));
            }
            let chance = session::random::<1>().map_or(128, |[chance]| chance);
            let next = clock.now() + pace.interval(clock.now(), current.bytes.len(), chance);
            packet = Some(current);
            self.listen(&clock, &mut pace, next, is_over);
        }
        let Ok(withdrawal) = self.packet(wall_ntp_secs(), true) else { return };
        for _ in 0..WITHDRAWALS {
            let _who_misses_it_waits_for_the_end = self.announcer.send(&withdrawal.bytes);
            std::thread::park_timeout(BETWEEN);
        }
    }

    /// Hears what others announce, until it is time for the next announcement or the session is over.
    fn listen(&mut self, clock: &Clock, pace: &mut Pace, next: Time, is_over: &AtomicBool) {
        while clock.now() < next && !is_over.load(Ordering::Relaxed) {
            let until = next.min(clock.now() + LOOK);
            match self.listener.as_mut().map(|listener| listener.receive(until)) {
                Some(Ok(Some((packet, _)))) => {
                    if let Ok(sap) = Sap::decode(packet) {
                        pace.hear(clock.now(), sap.origin, sap.hash, packet.len());
                    }
                }
                Some(Ok(None)) => {}
                Some(Err(_)) | None => std::thread::park_timeout(LOOK),
            }
        }
    }

    fn packet(&self, date: u64, is_withdrawal: bool) -> io::Result<Packet> {
        let expires = date + LIFETIME;
        let described = Description { expires: Some(expires), ..self.description.clone() };
        let mark = if is_withdrawal { format!("{WITHDRAWN}\r\n") } else { String::new() };
        let payload = compressed(&trust::signed(&format!("{described}{mark}"), &self.secret))?;
        let [high, low, ..] = *blake3::hash(&payload).as_bytes();
        let sap = Sap {
            is_deletion: is_withdrawal,
            is_compressed: true,
            hash: u16::from_be_bytes([high, low]),
            origin: self.announcer.local(),
            payload: &payload,
        };
        let mut header = [0; sap::MAX_HEADER];
        let length = sap.encode_header(&mut header);
        Ok(Packet { bytes: [&header[..length], &payload[..]].concat(), expires })
    }
}

/// An announcement as it is sent.
struct Packet {
    bytes: Vec<u8>,
    expires: u64,
}

impl Packet {
    /// Whether it is to be sent as it is: half of its time is left, and the clock was not set back.
    fn holds(&self, date: u64) -> bool {
        (date + LIFETIME / 2..=date + LIFETIME).contains(&self.expires)
    }
}

/// A session that is announced, until this is dropped.
pub(crate) struct Announcing {
    is_over: Arc<AtomicBool>,
    troubles: Receiver<String>,
    thread: Option<JoinHandle<()>>,
}

impl Announcing {
    /// What keeps it from being announced, once.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.troubles.try_recv().ok()
    }
}

impl Drop for Announcing {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // A panic of its own has been reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// How long an announcement holds, in seconds. Played again later, it announces nothing.
const LIFETIME: u64 = 3_600;
/// How soon the end of a session is seen.
const LOOK: Duration = Duration::from_millis(50);
const WITHDRAWALS: usize = 2;
const BETWEEN: Duration = Duration::from_millis(20);

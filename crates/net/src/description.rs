//! A session's description: everything that a receiver needs to take part.
//!
//! It is written as SDP (RFC 8866) with the FLUTE attributes that the field uses (draft-ietf-rmt-flute-sdp), one `m=` line
//! a channel, and Weir's own attributes:
//!
//! | attribute | where | meaning |
//! |---|---|---|
//! | `a=weir-cc:NAME [key=value …]` | session | congestion control scheme and its settings |
//! | `a=weir-cci:short`, `long`, `clocked` | session | form of the congestion control information |
//! | `a=weir-packet:BYTES` | session | bytes of a full packet on the network, all headers included |
//! | `a=weir-symbol:BYTES` | session | bytes of an encoding symbol |
//! | `a=weir-flute:VERSION` | session | FLUTE version of the file delivery table, 1 or 2 |
//! | `a=weir-key:ed25519 HEX` | session | the sender's public key |
//! | `a=weir-epoch:N` | session | a start of the sender, the last one known when it was described: tables of earlier ones do not count |
//! | `a=weir-control:ADDRESS:PORT` | session | the sender's control port: it takes receipts and answers round-trip probes there; packets of the session from another address do not count |
//! | `a=weir-receipt:HEX` | session | receipts are wanted, and this key tags them |
//! | `a=weir-priority:N` | session | a receiver of several sessions gives this one N, 1 to 1000, unless told otherwise |
//! | `a=weir-sessions:N` | session | the number of sessions that are meant to be received together, with priorities from 1 to N |
//! | `a=weir-hops:N` | session | hop limit of an IPv6 session, for which `c=` has no place |
//! | `a=weir-ladder:BPS BPS …` | session | the rates between which receivers choose, rising, bits per second |
//! | `a=weir-media:ENCODING TYPE LAYER LAYER …` | session | layered media as RTP instead of files: encoding name, payload type, and by channel the layer that it carries (`1`), or the layers (`0-2`) |
//! | `a=weir-latency:MS` | session | how long after the sender got them pictures are given out |
//! | `a=weir-tsi:N` | session | the session's number, where it is not one of FLUTE |
//! | `a=weir-seal:group source` | session | the seals of packets: `group` or `encrypt`, `source`, or both |
//! | `a=weir-seal-key:HEX` | session | the members' key for these |
//! | `a=weir-seal-for:HEX HEX` | session | a receiver's public key, and the members' key encrypted for it |
//! | `a=weir-signature:HEX` | at the end | the sender's signature over all lines before it; whoever believes the sender checks it (not read here) |
//! | `b=AS:KBPS` | media | the highest rate of this channel alone, rounded up; it is for other tools, and not read |
//!
//! Channels of layered media are `m=video PORT RTP/AVP TYPE TYPE+1` lines, with the attributes that players need and those of decoding
//! dependency (RFC 5583): whoever takes the first of them alone has the base layer.
//!
//! `t=0 N` says until when an announced description holds; others have `t=0 0`.
//!
//! How many channels a ladder makes, and of which rates, the scheme says (`registry::Scheme::channels`).
//! A description without `weir-cc` is a plain FLUTE session: no congestion control, all its channels are joined at once.

mod media;
mod read;
mod seals;
#[cfg(test)]
mod tests;
mod write;

use std::net::{IpAddr, SocketAddr};

use weir_core::endpoint::Endpoint;
use weir_core::layers::Ladder;
use weir_core::registry::{self, ConfigError, Habitat, Scheme, Session, Setting};
use weir_units::{Bytes, Random, Rate};
use weir_wire::CciForm;
use weir_wire::alc::Profile;

use crate::groups::{self, GroupError};

pub use media::MediaFormat;
pub use read::{DescriptionError, LineError};
pub use seals::{Sealing, WrappedKey};

/// Everything that a receiver needs to take part in a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// What people call the session: one line, not empty.
    pub name: String,
    /// Transport session identifier.
    pub tsi: u16,
    /// FLUTE version of the file delivery table: 2 (RFC 6726) or 1 (RFC 3926).
    pub flute_version: u8,
    /// The sender, if only its packets count: channels are then joined for this source.
    pub source: Option<IpAddr>,
    /// Group and port of each channel, base layer first. All of one family.
    pub channels: Vec<SocketAddr>,
    /// TTL or hop limit that the sender uses.
    pub ttl: u8,
    /// Congestion control; `None` for a session without.
    pub control: Option<Control>,
    /// Bytes of an encoding symbol, where the description tells.
    pub symbol_size: Option<u16>,
    /// The sender's Ed25519 public key, where it signs.
    pub public_key: Option<[u8; 32]>,
    /// The last start of the sender that was known when it was described: the session is of that one, or a later one.
    pub epoch: Option<u64>,
    /// When it stops to hold, in seconds of the NTP era (RFC 8866 §5.9): of announcements, which anybody may send again.
    pub expires: Option<u64>,
    /// The sender's control port, where receivers have something to say to it: receipts, round-trip probes.
    pub control_address: Option<SocketAddr>,
    /// The key that authenticates receipts, if the sender asks for them. Every reader of the description has it.
    pub receipt_key: Option<[u8; 32]>,
    /// The priority that a receiver of several sessions gives it unless told otherwise: a higher number goes first.
    pub priority: Option<u16>,
    /// How many sessions are meant to be received together, with priorities from 1 to this.
    pub sessions: Option<u16>,
    /// The seals of its packets.
    pub sealing: Sealing,
    /// What its media are like; `None` for a session of files.
    pub media: Option<MediaFormat>,
}

/// The congestion control of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Control {
    /// Name of the scheme in [`registry::SCHEMES`].
    pub scheme: String,
    /// Settings of the scheme that differ from its defaults.
    pub settings: Vec<Setting>,
    /// The rates between which receivers choose. The scheme makes the channels of it.
    pub ladder: Ladder,
    /// Form of the congestion control information.
    pub form: CciForm,
    /// Bytes of a full packet on the network, all headers included; the rates count these.
    pub packet_size: Bytes,
}

impl Description {
    /// Channels that count up from `base`, one group after the other, all on its port; `None` if they would run out of the
    /// family's multicast addresses.
    ///
    /// Example: 3 from 239.255.0.255:5004 are 239.255.0.255, 239.255.1.0 and 239.255.1.1.
    pub fn channels_from(base: SocketAddr, count: usize) -> Option<Vec<SocketAddr>> {
        let group = |number: usize| -> Option<IpAddr> {
            let next: IpAddr = match base.ip() {
                IpAddr::V4(first) => u32::from(first).checked_add(u32::try_from(number).ok()?)?.to_be_bytes().into(),
                IpAddr::V6(first) => u128::from(first).checked_add(number as u128)?.to_be_bytes().into(),
            };
            next.is_multicast().then_some(next)
        };
        (0..count).map(|number| Some(SocketAddr::new(group(number)?, base.port()))).collect()
    }

    /// Says which of its channels the session may not use, if there is one.
    pub fn check_groups(&self) -> Result<(), GroupError> {
        self.channels.iter().try_for_each(|channel| groups::check(channel.ip(), self.source.is_some()))
    }

    /// The address that the session's packets come from, where the description has it: in its source filter, or as that of the
    /// sender's control port. One of another family than the channels says nothing of it.
    pub fn sender_address(&self) -> Option<IpAddr> {
        let is_ipv4 = self.channels.first().is_some_and(SocketAddr::is_ipv4);
        let control = self.control_address.map(|control| control.ip()).filter(|address| address.is_ipv4() == is_ipv4);
        self.source.or(control)
    }

    /// What the endpoints of a scheme need to know; `None` for a session without congestion control.
    pub fn session(&self, habitat: Habitat) -> Option<Session> {
        self.control.as_ref().map(|control| control.session(habitat))
    }

    /// What stays the same in all packets.
    pub fn profile(&self) -> Profile {
        Profile { tsi: self.tsi, form: self.form().unwrap_or_default() }
    }

    /// The form of the congestion control information; `None` for a session without congestion control.
    pub fn form(&self) -> Option<CciForm> {
        self.control.as_ref().map(|control| control.form)
    }

    /// The sender's endpoint, on real sockets; `None` for a session without congestion control. The seed of `random` is from
    /// the operating system.
    pub fn sender_endpoint(&self, random: Random) -> Result<Option<Box<dyn Endpoint>>, ConfigError> {
        self.endpoint(Scheme::sender, random)
    }

    /// A receiver's endpoint, on real sockets; `None` for a session without congestion control. The seed of `random` is from
    /// the operating system, and so no other receiver's.
    pub fn receiver_endpoint(&self, random: Random) -> Result<Option<Box<dyn Endpoint>>, ConfigError> {
        self.endpoint(Scheme::receiver, random)
    }

    /// Says why the endpoints of the session cannot be built, if they cannot.
    pub fn check(&self) -> Result<(), ConfigError> {
        let random = Random::new(0, "check");
        self.sender_endpoint(random.clone())?;
        self.receiver_endpoint(random).map(drop)
    }

    fn endpoint(
        &self,
        build: impl Fn(&Scheme, &Session, &[Setting], Random) -> Result<Box<dyn Endpoint>, ConfigError>,
        random: Random,
    ) -> Result<Option<Box<dyn Endpoint>>, ConfigError> {
        let Some((control, session)) = self.control.as_ref().zip(self.session(Habitat::Sockets)) else {
            return Ok(None);
        };
        let scheme = registry::find(&control.scheme)?;
        let (made, given) = (control.channel_rates()?.len(), self.channels.len());
        if made != given {
            return Err(ConfigError::WrongChannels { scheme: scheme.name, made, given });
        }
        build(scheme, &session, &control.settings, random).map(Some)
    }
}

impl Control {
    /// What the endpoints of the scheme need to know.
    pub fn session(&self, habitat: Habitat) -> Session {
        Session { ladder: self.ladder.clone(), packet_size: self.packet_size, form: self.form, habitat }
    }

    /// Whether a receiver is a member of channel 0 at all times.
    pub fn has_base_channel(&self) -> bool {
        registry::find(&self.scheme).is_ok_and(Scheme::has_base_channel)
    }

    /// The rates between which a receiver chooses, level 1 first.
    pub fn levels(&self) -> Result<Vec<Rate>, ConfigError> {
        registry::find(&self.scheme)?.levels(&self.session(Habitat::Sockets), &self.settings)
    }

    /// The highest rate of each channel, as the scheme makes them on real sockets.
    pub fn channel_rates(&self) -> Result<Vec<Rate>, ConfigError> {
        registry::find(&self.scheme)?.channels(&self.session(Habitat::Sockets), &self.settings)
    }
}

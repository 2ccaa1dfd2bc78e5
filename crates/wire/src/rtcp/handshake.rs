//! How a peer and a host that takes peers meet: APP packets (RFC 3550 §6.7) named `WEIR`.
//!
//! A client says hello; the server answers with an offer, which holds the terms of the stream and a cookie; the client starts
//! the stream by giving the cookie back. All messages have the same length, so that nobody can use a server to send another
//! host more than he spends himself. Not here: how cookies are made and when messages are repeated.

use super::{App, Packet};
use crate::{DecodeError, take_array};

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub kind: Kind,
    /// Who says it: the client's SSRC, or the stream's.
    pub ssrc: u32,
    /// In an offer and a start: the server's proof that the client receives at its address. Else zeros.
    pub cookie: [u8; COOKIE_LEN],
    /// In an offer: what the stream is like; in a start: the client's key, if the stream is encrypted. Else zeros.
    pub terms: Terms,
}

/// What a message says; the number is its subtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Client: is there a stream?
    Hello = 1,
    /// Server: there is; give the cookie back.
    Offer = 2,
    /// Client: start, or, once it runs, I am still here.
    Start = 3,
    /// Server: still here too, though there may be nothing to send.
    Alive = 4,
    /// Server: it serves as many peers as it can already.
    Busy = 5,
    /// Server: there will be a stream, and it is not known yet what it is like.
    Later = 6,
}

/// What a stream is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// RTP payload type.
    pub payload_type: u8,
    /// Bytes of a full packet on the network, all headers included.
    pub packet_size: u16,
    /// For how long a payload is of use after the sender got it, milliseconds: lost ones go again until then, and viewers give payloads
    /// out this long after they were sent. 0 is at once, and nothing goes again.
    pub latency_ms: u16,
    /// What the pictures of layered media are like; `None` for all other streams.
    pub pictures: Option<Pictures>,
    /// Name of the congestion control scheme, filled up with zeros.
    pub scheme: [u8; SCHEME_LEN],
    /// The public key for this run (X25519) of the message's sender; zeros if the stream is not encrypted.
    pub ephemeral: [u8; KEY_LEN],
    /// The sender's lasting public key (Ed25519); zeros if the stream is not encrypted.
    pub identity: [u8; KEY_LEN],
}

/// What the pictures of layered media are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pictures {
    /// The codec, by its number in [`Pictures::CODECS`].
    pub codec: u8,
    /// How many layers there are.
    pub layers: u8,
}

impl Pictures {
    /// Encoding names of codecs by their numbers. 0 is none.
    pub const CODECS: [&'static str; 5] = ["", "VP9", "H265", "H264", "AV1"];
}

/// Bytes of a cookie.
pub const COOKIE_LEN: usize = 16;
/// Bytes for the name of a scheme.
pub const SCHEME_LEN: usize = 16;
/// Bytes of a public key.
pub const KEY_LEN: usize = 32;
/// Bytes of every message.
pub const LEN: usize = App::HEADER_LEN + DATA_LEN;

impl Terms {
    /// Terms with a scheme of this name; `None` if the name is too long.
    pub fn new(payload_type: u8, packet_size: u16, scheme: &str) -> Option<Terms> {
        let mut name = [0; SCHEME_LEN];
        name.get_mut(..scheme.len())?.copy_from_slice(scheme.as_bytes());
        Some(Terms { payload_type, packet_size, scheme: name, ..Terms::default() })
    }

    /// Whether the stream is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.identity != [0; KEY_LEN]
    }

    /// The name of the scheme; `None` if it is not text.
    pub fn scheme(&self) -> Option<&str> {
        let len = self.scheme.iter().position(|byte| *byte == 0).unwrap_or(SCHEME_LEN);
        core::str::from_utf8(&self.scheme[..len]).ok()
    }
}

impl Message {
    /// A message without cookie and terms.
    pub fn plain(kind: Kind, ssrc: u32) -> Message {
        Message { kind, ssrc, cookie: [0; COOKIE_LEN], terms: Terms::default() }
    }

    /// The message as a packet.
    pub fn encode(&self) -> [u8; LEN] {
        let mut data = [0; DATA_LEN];
        data[0] = VERSION;
        data[1] = self.terms.payload_type;
        data[2..4].copy_from_slice(&self.terms.packet_size.to_be_bytes());
        data[4..4 + COOKIE_LEN].copy_from_slice(&self.cookie);
        let rest = [&self.terms.scheme[..], &self.terms.ephemeral, &self.terms.identity];
        data[4 + COOKIE_LEN..][..2].copy_from_slice(&self.terms.latency_ms.to_be_bytes());
        let pictures = self.terms.pictures.map_or([0; 2], |Pictures { codec, layers }| [codec, layers]);
        data[4 + COOKIE_LEN + 2..][..2].copy_from_slice(&pictures);
        let mut at = LATENCY_END;
        for field in rest {
            data[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        }
        let mut out = [0; LEN];
        App { subtype: self.kind as u8, ssrc: self.ssrc, name: *NAME, data: &data }.encode(&mut out);
        out
    }

    /// What an APP packet says.
    pub fn decode(packet: &Packet<'_>) -> Result<Message, DecodeError> {
        let app = App::decode(packet)?;
        if app.name != *NAME {
            return Err(DecodeError::Value { field: "APP name", value: u64::from(u32::from_be_bytes(app.name)) });
        }
        if app.data.len() != DATA_LEN {
            return Err(DecodeError::Value { field: "message length", value: app.data.len() as u64 });
        }
        let kind = match app.subtype {
            1 => Kind::Hello,
            2 => Kind::Offer,
            3 => Kind::Start,
            4 => Kind::Alive,
            5 => Kind::Busy,
            6 => Kind::Later,
            other => return Err(DecodeError::Value { field: "message kind", value: u64::from(other) }),
        };
        let mut rest = app.data;
        let [version, payload_type] = take_array(&mut rest, "message version")?;
        if version != VERSION {
            return Err(DecodeError::Version { protocol: "stream message", version });
        }
        let packet_size = u16::from_be_bytes(take_array(&mut rest, "packet size")?);
        let cookie = take_array(&mut rest, "cookie")?;
        let latency_ms = u16::from_be_bytes(take_array(&mut rest, "latency")?);
        let [codec, layers] = take_array(&mut rest, "codec and layers")?;
        let pictures = (codec > 0).then_some(Pictures { codec, layers });
        let scheme = take_array(&mut rest, "scheme")?;
        let (ephemeral, identity) = (take_array(&mut rest, "key")?, take_array(&mut rest, "lasting key")?);
        let terms = Terms { payload_type, packet_size, latency_ms, pictures, scheme, ephemeral, identity };
        Ok(Message { kind, ssrc: app.ssrc, cookie, terms })
    }
}

const NAME: &[u8; 4] = b"WEIR";
const VERSION: u8 = 3;
/// Where the latency, the codec and the layers end.
const LATENCY_END: usize = 4 + COOKIE_LEN + 4;
const DATA_LEN: usize = LATENCY_END + SCHEME_LEN + 2 * KEY_LEN;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::packets;
    use proptest::prelude::*;

    fn decoded(bytes: &[u8]) -> Result<Message, DecodeError> {
        Message::decode(&packets(bytes).next().expect("there is a packet")?)
    }

    proptest! {
        #[test]
        fn decoding_an_encoded_message_gives_it_back(
            ssrc in any::<u32>(), cookie in any::<[u8; COOKIE_LEN]>(), scheme in any::<[u8; SCHEME_LEN]>(),
            payload_type in any::<u8>(), packet_size in any::<u16>(), latency_ms in any::<u16>(), codec in any::<u8>(), layers in any::<u8>(), ephemeral in any::<[u8; KEY_LEN]>(),
            identity in any::<[u8; KEY_LEN]>(),
        ) {
            for kind in [Kind::Hello, Kind::Offer, Kind::Start, Kind::Alive, Kind::Busy, Kind::Later] {
                let pictures = (codec > 0).then_some(Pictures { codec, layers });
                let terms = Terms { payload_type, packet_size, latency_ms, pictures, scheme, ephemeral, identity };
                let message = Message { kind, ssrc, cookie, terms };
                prop_assert_eq!(decoded(&message.encode()), Ok(message));
            }
        }
    }

    #[test]
    fn other_names_versions_kinds_and_lengths_are_refused() {
        let good = Message::plain(Kind::Hello, 7).encode();
        for (at, value) in [(0, 0x80), (0, 0x87), (8, b'X'), (12, 1), (3, good[3] - 1)] {
            let mut bad = good;
            bad[at] = value;
            assert!(decoded(&bad).is_err(), "byte {at}");
        }
    }

    #[test]
    fn the_name_of_a_scheme_is_text_that_fits() {
        let terms = |name| Terms::new(33, 1_400, name);
        assert_eq!(terms("rap").as_ref().and_then(Terms::scheme), Some("rap"));
        assert_eq!(terms("a name of more than 16"), None);
        assert_eq!(Terms { scheme: [0xff; SCHEME_LEN], ..Terms::default() }.scheme(), None);
    }
}

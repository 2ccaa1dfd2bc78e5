//! What repair brings back of a packet: its payload, and what its headers say of it.

use weir_media::PictureInfo;
use weir_wire::media::PicturePlace;
use weir_wire::rtp::Rtp;

/// What a packet of a picture says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Saying {
    pub(super) marker: bool,
    pub(super) timestamp: u32,
    pub(super) place: PicturePlace,
}

impl Saying {
    /// Bytes in front of the payload.
    pub(super) const LEN: usize = 1 + 4 + 4;

    /// What the headers of a packet say; `None` if it is of no picture.
    pub(super) fn of(rtp: &Rtp, place: Option<PicturePlace>) -> Option<Saying> {
        Some(Saying { marker: rtp.marker, timestamp: rtp.timestamp, place: place? })
    }

    /// The bytes that repair protects: this, then the payload.
    pub(super) fn with(&self, payload: &[u8]) -> Vec<u8> {
        let Saying { marker, timestamp, place } = *self;
        let flags = u8::from(marker)
            | u8::from(place.is_key) << 1
            | u8::from(place.is_start) << 2
            | u8::from(place.is_leading) << 3
            | place.layer << 4;
        let mut out = Vec::with_capacity(Saying::LEN + payload.len());
        out.push(flags);
        out.extend(timestamp.to_be_bytes());
        out.extend(place.number.to_be_bytes());
        out.extend([place.needs, 0]);
        out.extend(payload);
        out
    }

    /// The same of bytes that repair brought back; `None` if they are too few.
    pub(super) fn split(bytes: &[u8]) -> Option<(Saying, &[u8])> {
        let (&[flags, a, b, c, d, high, low, needs, _], payload) = bytes.split_first_chunk()?;
        let place = PicturePlace {
            number: u16::from_be_bytes([high, low]),
            needs,
            layer: flags >> 4 & 7,
            is_key: flags & 2 != 0,
            is_start: flags & 4 != 0,
            is_leading: flags & 8 != 0,
        };
        let timestamp = u32::from_be_bytes([a, b, c, d]);
        Some((Saying { marker: flags & 1 != 0, timestamp, place }, payload))
    }

    /// The picture's place, as those who put pictures together know it.
    pub(super) fn info(&self) -> PictureInfo {
        let PicturePlace { number, needs, layer, is_key, is_leading, .. } = self.place;
        PictureInfo { number, needs, layer, is_key, is_leading }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_protected_comes_back_as_it_was() {
        for (marker, is_key, is_start, layer) in
            [(true, false, true, 7), (false, true, false, 0), (false, false, true, 2)]
        {
            let place = PicturePlace { number: 0xfffe, needs: 3, layer, is_key, is_leading: !is_start, is_start };
            let saying = Saying { marker, timestamp: 0x0102_0304, place };
            assert_eq!(Saying::split(&saying.with(b"picture")), Some((saying, &b"picture"[..])));
        }
        assert_eq!(Saying::split(&[0; 8]), None);
    }
}

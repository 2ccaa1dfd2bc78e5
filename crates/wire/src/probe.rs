//! A round-trip probe: a receiver of a session asks the sender, and the sender sends the same back.
//!
//! Layout, big-endian: magic `WRTT`, version 1, kind (1 probe, 2 echo, 3 probe at the start, 4 report), TSI 16 bits, clock 32 bits.
//! A report has the part of what is sent that the path carries instead of the clock, and is not answered.

use crate::{DecodeError, take_array};

/// A probe, or its echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Whose, and why.
    pub kind: Kind,
    /// The receiver's clock when it sent the probe, in microseconds, modulo 2^32. Only the receiver makes anything of it: the
    /// echo must repeat it. Of a report: the part that is carried, see [`Probe::flooded`].
    pub clock_micros: u32,
}

/// Who sends it, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// From a receiver.
    Probe,
    /// From a receiver that has just joined and looks for its rate.
    StartUp,
    /// From a receiver whose path is full whatever it leaves: a report.
    Flooded,
    /// From the sender: as long as the probe, so that a forged one gains nothing.
    Echo,
}

/// Bytes of a probe, and of an echo.
pub const LEN: usize = 12;

impl Probe {
    /// A report that the path carries this part of what is sent, from 0 to 1.
    pub fn flooded(carried: f64) -> Probe {
        let clock_micros = (carried.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32;
        Probe { kind: Kind::Flooded, clock_micros }
    }

    /// The part of what is sent that the path carries, if this is a report.
    pub fn carried(&self) -> Option<f64> {
        (self.kind == Kind::Flooded).then(|| f64::from(self.clock_micros) / f64::from(u32::MAX))
    }

    /// The message of session `tsi`.
    pub fn encode(&self, tsi: u16) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[..4].copy_from_slice(MAGIC);
        out[4] = VERSION;
        out[5] = match self.kind {
            Kind::Probe => 1,
            Kind::Echo => 2,
            Kind::StartUp => 3,
            Kind::Flooded => 4,
        };
        out[6..8].copy_from_slice(&tsi.to_be_bytes());
        out[8..].copy_from_slice(&self.clock_micros.to_be_bytes());
        out
    }

    /// The probe or echo in a message, and its session.
    pub fn decode(message: &[u8]) -> Result<(Probe, u16), DecodeError> {
        let mut rest = message;
        let magic: [u8; 4] = take_array(&mut rest, "probe magic")?;
        if &magic != MAGIC {
            return Err(DecodeError::Value { field: "probe magic", value: u64::from(u32::from_be_bytes(magic)) });
        }
        let [version, kind] = take_array(&mut rest, "probe version")?;
        if version != VERSION {
            return Err(DecodeError::Version { protocol: "probe", version });
        }
        let kind = match kind {
            1 => Kind::Probe,
            2 => Kind::Echo,
            3 => Kind::StartUp,
            4 => Kind::Flooded,
            _ => return Err(DecodeError::Value { field: "probe kind", value: u64::from(kind) }),
        };
        let tsi = u16::from_be_bytes(take_array(&mut rest, "probe TSI")?);
        let clock_micros = u32::from_be_bytes(take_array(&mut rest, "probe clock")?);
        if !rest.is_empty() {
            return Err(DecodeError::Value { field: "probe length", value: message.len() as u64 });
        }
        Ok((Probe { kind, clock_micros }, tsi))
    }
}

const MAGIC: &[u8; 4] = b"WRTT";
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_probe_lies_on_the_wire_as_the_page_draws_it() {
        let probe = Probe { kind: Kind::Echo, clock_micros: 0x0102_0304 };
        assert_eq!(probe.encode(0xa0b0), [b'W', b'R', b'T', b'T', 1, 2, 0xa0, 0xb0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_report_tells_what_is_carried_and_a_probe_does_not() {
        let report = Probe::flooded(0.25);
        let (read, _) = Probe::decode(&report.encode(7)).expect("a report");
        assert!((read.carried().expect("it tells") - 0.25).abs() < 1e-9);
        assert_eq!([-1.0, 9.0].map(|part| Probe::flooded(part).carried()), [Some(0.0), Some(1.0)]);
        assert_eq!(Probe { kind: Kind::Probe, ..report }.carried(), None);
    }

    proptest! {
        #[test]
        fn decoding_an_encoded_probe_gives_it_back(tsi in any::<u16>(), clock_micros in any::<u32>(), kind in 0usize..4) {
            let probe = Probe { kind: [Kind::Probe, Kind::Echo, Kind::StartUp, Kind::Flooded][kind], clock_micros };
            let message = probe.encode(tsi);
            prop_assert_eq!(Probe::decode(&message), Ok((probe, tsi)));
            prop_assert!(Probe::decode(&message[..LEN - 1]).is_err());
        }
    }
}

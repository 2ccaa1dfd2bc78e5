//! A round-trip probe: a receiver of a session asks the sender, and the sender sends the same back.
//!
//! Layout, big-endian: magic `WRTT`, version 1, kind (1 probe, 2 echo, 3 to 6 reports), TSI 16 bits, clock 32 bits.
//! A report has something else instead of the clock, and is not answered: the level of a receiver that looks for its rate (3), the part of what is sent
//! that the path carries (4), what the receiver wants (5), or whether a cut has emptied the path (6), in the upper 12 bits; and the receiver's number in the
//! lower 20.

use crate::{DecodeError, take_array};

/// A probe, or its echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Whose, and why.
    pub kind: Kind,
    /// The receiver's clock when it sent the probe, in microseconds, modulo 2^32. Only the receiver makes anything of it: the
    /// echo must repeat it. Of a report: what it tells, see [`Probe::flooded`], [`Probe::wanted`], [`Probe::judged`] and [`Probe::starting`].
    pub clock_micros: u32,
}

/// Who sends it, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// From a receiver.
    Probe,
    /// From a receiver that looks for its rate, or has found it: a report.
    Starts,
    /// From a receiver whose path is full whatever it leaves: a report.
    Flooded,
    /// From any receiver: a report of what it wants.
    Wants,
    /// From a receiver that reported a full path, after the sender has sent less: a report.
    Judges,
    /// From the sender: as long as the probe, so that a forged one gains nothing.
    Echo,
}

/// The highest number that a receiver can draw for a session. Its reports have it, so that the sender can tell receivers apart.
pub const MOST_RECEIVER: u32 = (1 << TOLD_SHIFT) - 1;

/// What a receiver whose path is full whatever it leaves has seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flooded {
    /// Its number, at most [`MOST_RECEIVER`].
    pub receiver: u32,
    /// The part of what is sent that the path carries, above 0 and up to 1. A report tells it in 4095ths. `None` where the path queues each channel
    /// apart, so that the receiver gets a flow's share in each, and cannot tell whose the others are.
    pub carried: Option<f64>,
}

/// What a receiver wants of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Its number, at most [`MOST_RECEIVER`].
    pub receiver: u32,
    /// The channels below this level, at most [`Wanted::MOST_LEVEL`]; 0 when it leaves the session.
    pub level: u16,
    /// And how many eighths of the next channel's rate more, at most [`Wanted::MOST_EIGHTHS`].
    pub eighths: u8,
}

impl Wanted {
    /// The highest level that a report can tell.
    pub const MOST_LEVEL: u16 = MOST_TOLD >> EIGHTHS_BITS;
    /// The most eighths that a report can tell.
    pub const MOST_EIGHTHS: u8 = (1 << EIGHTHS_BITS) - 1;
}

/// What a receiver whose path was full has seen since the sender sends less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Its number, at most [`MOST_RECEIVER`].
    pub receiver: u32,
    /// How many levels the sender withholds, at most [`Verdict::MOST_WITHHELD`]: it tells the sender of which cut this is.
    pub withheld: u16,
    /// The path is empty.
    pub is_empty: bool,
}

impl Verdict {
    /// The most levels that a report can tell.
    pub const MOST_WITHHELD: u16 = MOST_TOLD >> 1;
}

/// What a receiver that looks for its rate has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starting {
    /// Its number, at most [`MOST_RECEIVER`].
    pub receiver: u32,
    /// The channels below this level, at most [`Starting::MOST_LEVEL`]; 0 when it looks for its rate no more.
    pub level: u16,
}

impl Starting {
    /// The highest level that a report can tell.
    pub const MOST_LEVEL: u16 = MOST_TOLD;
}

/// Bytes of a probe, and of an echo.
pub const LEN: usize = 12;

impl Probe {
    /// A report of a path that is full.
    pub fn flooded(flooded: Flooded) -> Probe {
        let part = |carried: f64| (carried.clamp(0.0, 1.0) * f64::from(MOST_TOLD) + 0.5) as u16;
        Probe::report(Kind::Flooded, flooded.receiver, flooded.carried.map_or(0, |carried| part(carried).max(1)))
    }

    /// What the path carries, if this is a report of that.
    pub fn carried(&self) -> Option<Flooded> {
        let (receiver, told) = self.told(Kind::Flooded)?;
        Some(Flooded { receiver, carried: (told > 0).then(|| f64::from(told) / f64::from(MOST_TOLD)) })
    }

    /// A report of what a receiver wants.
    pub fn wanted(wanted: Wanted) -> Probe {
        let (level, eighths) = (wanted.level.min(Wanted::MOST_LEVEL), wanted.eighths.min(Wanted::MOST_EIGHTHS));
        Probe::report(Kind::Wants, wanted.receiver, level << EIGHTHS_BITS | u16::from(eighths))
    }

    /// What a receiver wants, if this is a report of that.
    pub fn wants(&self) -> Option<Wanted> {
        let (receiver, told) = self.told(Kind::Wants)?;
        Some(Wanted { receiver, level: told >> EIGHTHS_BITS, eighths: told as u8 & Wanted::MOST_EIGHTHS })
    }

    /// A report of what sending less has done.
    pub fn judged(verdict: Verdict) -> Probe {
        let told = verdict.withheld.min(Verdict::MOST_WITHHELD) << 1 | u16::from(verdict.is_empty);
        Probe::report(Kind::Judges, verdict.receiver, told)
    }

    /// What sending less has done, if this is a report of that.
    pub fn verdict(&self) -> Option<Verdict> {
        let (receiver, told) = self.told(Kind::Judges)?;
        Some(Verdict { receiver, withheld: told >> 1, is_empty: told & 1 == 1 })
    }

    /// A report of what a receiver that looks for its rate has.
    pub fn starting(starting: Starting) -> Probe {
        Probe::report(Kind::Starts, starting.receiver, starting.level.min(Starting::MOST_LEVEL))
    }

    /// What a receiver that looks for its rate has, if this is a report of that.
    pub fn starts(&self) -> Option<Starting> {
        let (receiver, level) = self.told(Kind::Starts)?;
        Some(Starting { receiver, level })
    }

    fn report(kind: Kind, receiver: u32, told: u16) -> Probe {
        Probe { kind, clock_micros: u32::from(told) << TOLD_SHIFT | receiver.min(MOST_RECEIVER) }
    }

    /// The receiver and what it tells, if this is a report of this kind.
    fn told(&self, kind: Kind) -> Option<(u32, u16)> {
        (self.kind == kind).then_some((self.clock_micros & MOST_RECEIVER, (self.clock_micros >> TOLD_SHIFT) as u16))
    }

    /// The message of session `tsi`.
    pub fn encode(&self, tsi: u16) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[..4].copy_from_slice(MAGIC);
        out[4] = VERSION;
        out[5] = match self.kind {
            Kind::Probe => 1,
            Kind::Echo => 2,
            Kind::Starts => 3,
            Kind::Flooded => 4,
            Kind::Wants => 5,
            Kind::Judges => 6,
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
            3 => Kind::Starts,
            4 => Kind::Flooded,
            5 => Kind::Wants,
            6 => Kind::Judges,
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
/// What a report tells lies above the receiver's number, and of what is wanted the level above the eighths.
const TOLD_SHIFT: u32 = 20;
const MOST_TOLD: u16 = (1 << (u32::BITS - TOLD_SHIFT)) - 1;
const EIGHTHS_BITS: u32 = 3;

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
    fn a_report_has_what_is_carried_in_twelve_bits_and_below_it_the_receiver() {
        let report = Probe::flooded(Flooded { receiver: 0x0_1234, carried: Some(0.25) });
        assert_eq!(report.encode(0xa0b0)[4..], [1, 4, 0xa0, 0xb0, 0x40, 0x00, 0x12, 0x34]);
        let told = |carried| Probe::flooded(Flooded { receiver: 7, carried }).carried().expect("it tells").carried;
        assert_eq!(told(None), None);
        let read = |carried| told(Some(carried)).expect("it is known");
        assert_eq!([-1.0, 0.0, 9.0].map(read), [1.0 / 4095.0, 1.0 / 4095.0, 1.0]);
        for carried in [0.0003, 0.01, 0.25, 0.9] {
            assert!((read(carried) - carried).abs() < 0.5 / 4095.0, "{carried}: {}", read(carried));
        }
        assert_eq!(Probe { kind: Kind::Probe, ..report }.carried(), None);
    }

    #[test]
    fn a_report_of_what_is_wanted_has_the_level_in_nine_bits_eighths_in_three_and_below_them_the_receiver() {
        let wanted = Wanted { receiver: 0x0_1234, level: 0x105, eighths: 3 };
        assert_eq!(Probe::wanted(wanted).encode(0xa0b0)[4..], [1, 5, 0xa0, 0xb0, 0x82, 0xb0, 0x12, 0x34]);
        let most = Wanted { receiver: 0xf_ffff, level: 511, eighths: 7 };
        for wanted in [wanted, most, Wanted { level: 0, ..wanted }] {
            assert_eq!(Probe::wanted(wanted).wants(), Some(wanted));
        }
        let too_much = Wanted { receiver: u32::MAX, level: u16::MAX, eighths: u8::MAX };
        assert_eq!(Probe::wanted(too_much).wants(), Some(most));
        assert_eq!(Probe { kind: Kind::Probe, ..Probe::wanted(wanted) }.wants(), None);
        assert_eq!(Probe::wanted(wanted).carried(), None);
    }

    #[test]
    fn a_verdict_has_how_many_levels_are_withheld_whether_the_path_is_empty_and_the_receiver() {
        let verdict = Verdict { receiver: 0x0_1234, withheld: 0x105, is_empty: true };
        assert_eq!(Probe::judged(verdict).encode(0xa0b0)[4..], [1, 6, 0xa0, 0xb0, 0x20, 0xb0, 0x12, 0x34]);
        for verdict in [verdict, Verdict { is_empty: false, ..verdict }] {
            assert_eq!(Probe::judged(verdict).verdict(), Some(verdict));
        }
        let most = Verdict { receiver: MOST_RECEIVER, withheld: Verdict::MOST_WITHHELD, is_empty: false };
        let too_much = Verdict { receiver: u32::MAX, withheld: u16::MAX, ..most };
        assert_eq!(Probe::judged(too_much).verdict(), Some(most));
        assert_eq!(Probe::judged(verdict).carried(), None);
    }

    #[test]
    fn a_report_of_a_start_has_the_level_in_twelve_bits_and_below_it_the_receiver() {
        let starting = Starting { receiver: 0x0_1234, level: 0x105 };
        assert_eq!(Probe::starting(starting).encode(0xa0b0)[4..], [1, 3, 0xa0, 0xb0, 0x10, 0x50, 0x12, 0x34]);
        let most = Starting { receiver: MOST_RECEIVER, level: Starting::MOST_LEVEL };
        for starting in [starting, most, Starting { level: 0, ..starting }] {
            assert_eq!(Probe::starting(starting).starts(), Some(starting));
        }
        assert_eq!(Probe::starting(Starting { receiver: u32::MAX, level: u16::MAX }).starts(), Some(most));
        assert_eq!(Probe { kind: Kind::Probe, ..Probe::starting(starting) }.starts(), None);
    }

    proptest! {
        #[test]
        fn decoding_an_encoded_probe_gives_it_back(tsi in any::<u16>(), clock_micros in any::<u32>(), kind in 0usize..6) {
            let kinds = [Kind::Probe, Kind::Echo, Kind::Starts, Kind::Flooded, Kind::Wants, Kind::Judges];
            let probe = Probe { kind: kinds[kind], clock_micros };
            let message = probe.encode(tsi);
            prop_assert_eq!(Probe::decode(&message), Ok((probe, tsi)));
            prop_assert!(Probe::decode(&message[..LEN - 1]).is_err());
        }
    }
}

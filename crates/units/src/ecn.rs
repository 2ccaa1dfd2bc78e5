//! Explicit congestion notification.

/// What an IP header says of congestion (RFC 3168 §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ecn {
    /// Its transport does not know ECN: a queue can only drop it.
    #[default]
    NotEct,
    /// Its transport knows ECN: a queue can mark it instead of dropping it.
    Ect,
    /// Congestion experienced: a queue has marked it.
    Ce,
}

impl Ecn {
    /// Marks the packet, if its transport knows what that means; tells whether it does.
    pub fn mark(&mut self) -> bool {
        let can = *self != Ecn::NotEct;
        if can {
            *self = Ecn::Ce;
        }
        can
    }

    /// The two low bits of IPv4's type of service and IPv6's traffic class; [`Ecn::Ect`] is ECT(0), as RFC 3168 §5 advises
    /// where one codepoint is enough.
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0b00,
            Ecn::Ect => 0b10,
            Ecn::Ce => 0b11,
        }
    }

    /// What the two low bits of `byte` say; ECT(1) counts as ECT.
    pub const fn from_bits(byte: u8) -> Ecn {
        match byte & 0b11 {
            0b00 => Ecn::NotEct,
            0b11 => Ecn::Ce,
            _ => Ecn::Ect,
        }
    }
}

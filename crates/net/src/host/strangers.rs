//! What came to a tenant and was not taken, so that the user of a session that stays silent can be told why.
//!
//! Not here: counts of it ([`super::Ignored`]), and what to say about it.

use std::net::IpAddr;

use crate::seal::Refusal;

/// What a tenant has seen and not taken, by sender. Bounded: whoever sends under many names pushes out the rarest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Strangers(Vec<Stranger>);

/// Packets of one kind from one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stranger {
    /// The tenant's session on whose channels they came.
    pub session: usize,
    /// Why they were not taken.
    pub why: Strange,
    /// Who sent them.
    pub from: IpAddr,
    /// How many came.
    pub packets: u64,
}

/// Why a packet on a channel was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strange {
    /// It is of the session of this number.
    Session(u64),
    /// It is not from the sender that the description names.
    Source,
    /// It says that it is of another channel than the one that it came on.
    Channel,
    /// Its symbols are of this FEC encoding id, which is not known here.
    Code(u8),
    /// It cannot be read.
    Unreadable,
    /// Its seal is not that of the session, or is of a packet that does not count any more.
    Seal(Refusal),
}

impl Strangers {
    /// A packet came.
    pub(super) fn note(&mut self, session: usize, why: Strange, from: IpAddr) {
        let is_it = |known: &&mut Stranger| (known.session, known.why, known.from) == (session, why, from);
        if let Some(known) = self.0.iter_mut().find(is_it) {
            known.packets += 1;
            return;
        }
        let new = Stranger { session, why, from, packets: 1 };
        if self.0.len() < MOST {
            self.0.push(new);
        } else if let Some(rarest) = self.0.iter_mut().min_by_key(|known| known.packets) {
            // It inherits the count, or a crowd of senders would push out each other for ever.
            *rarest = Stranger { packets: rarest.packets + 1, ..new };
        }
    }

    /// All of them, in the order in which they were first seen.
    pub fn iter(&self) -> impl Iterator<Item = &Stranger> {
        self.0.iter()
    }
}

/// As many as a user reads.
const MOST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_crowd_does_not_push_out_who_sends_much() {
        let mut strangers = Strangers::default();
        let from = |host: u8| IpAddr::from(Ipv4Addr::new(192, 0, 2, host));
        (0..1_000).for_each(|_| strangers.note(0, Strange::Session(9), from(1)));
        (0..=255).for_each(|host| strangers.note(0, Strange::Unreadable, from(host)));
        assert_eq!(strangers.iter().count(), MOST);
        let loudest = Stranger { session: 0, why: Strange::Session(9), from: from(1), packets: 1_000 };
        assert_eq!(strangers.iter().next(), Some(&loudest));
    }
}

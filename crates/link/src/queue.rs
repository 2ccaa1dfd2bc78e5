//! What waits for its turn on a link, and what has to go: the contract of a queueing discipline. Each discipline is a file
//! of its own.

pub(crate) mod codel;
pub(crate) mod drop_tail;
pub(crate) mod drr;
pub(crate) mod fair;
pub(crate) mod flows;
pub(crate) mod fq_codel;
pub(crate) mod red;

use alloc::boxed::Box;

use weir_units::{Bytes, Random, Time};

use crate::{Buffer, DropReason, Dropped, Label, LinkState};
use codel::{CoDel, CoDelConfig};
use drop_tail::DropTail;
use drr::{Drr, DrrConfig};
use fair::{Fair, FairConfig};
use fq_codel::{FqCoDel, FqCoDelConfig};
use red::{Red, RedConfig};

/// A packet in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued<P> {
    /// Its bytes on the link.
    pub size: Bytes,
    /// When it came.
    pub arrived: Time,
    /// Its flow, and whether it can be marked or is.
    pub label: Label,
    /// Whether this queue marked it.
    pub marked: bool,
    /// The packet.
    pub packet: P,
}

impl<P> Queued<P> {
    /// The packet goes, for `reason`.
    pub(crate) fn dropped(self, at: Time, reason: DropReason) -> Dropped<P> {
        Dropped { packet: self.packet, size: self.size, at, reason }
    }

    /// Marks the packet, if its transport knows what that means.
    pub(crate) fn mark(&mut self) -> bool {
        let can = self.label.ecn.mark();
        self.marked |= can;
        can
    }
}

/// Where a queue hands the packets that it drops.
pub type Drops<'a, P> = &'a mut dyn FnMut(Dropped<P>);

/// A queueing discipline: decides which packets wait, which goes first, and which is dropped.
///
/// Every packet that comes is given back once, by `dequeue` or to `drops`. Times do not go back.
pub trait Queue<P> {
    /// A packet comes, also if the link is free: then `dequeue` follows at once.
    fn enqueue(&mut self, packet: Queued<P>, link: LinkState, drops: Drops<'_, P>);

    /// The link is free at `now`: the packet whose turn it is. `None` says that nothing waits any more.
    fn dequeue(&mut self, now: Time, drops: Drops<'_, P>) -> Option<Queued<P>>;

    /// Packets that wait.
    fn len(&self) -> usize;

    /// Bytes that wait.
    fn bytes(&self) -> Bytes;

    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Which discipline a queue follows, with its parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum QueueConfig {
    /// First come, first served; a packet that finds the buffer full is dropped.
    #[default]
    DropTail,
    /// Random early detection.
    Red(RedConfig),
    /// Deficit round robin.
    Drr(DrrConfig),
    /// Fair queueing by finish numbers.
    Fair(FairConfig),
    /// CoDel.
    CoDel(CoDelConfig),
    /// FQ-CoDel.
    FqCoDel(FqCoDelConfig),
}

/// A queue of the discipline that its link's configuration names.
#[derive(Debug, Clone)]
pub(crate) enum Discipline<P> {
    DropTail(DropTail<P>),
    Red(Box<Red<P>>),
    Drr(Box<Drr<P>>),
    Fair(Box<Fair<P>>),
    CoDel(Box<CoDel<P>>),
    FqCoDel(Box<FqCoDel<P>>),
}

impl<P> Discipline<P> {
    pub(crate) fn new(config: &QueueConfig, limit: Buffer, random: &mut Random) -> Discipline<P> {
        match *config {
            QueueConfig::DropTail => Discipline::DropTail(DropTail::new(limit)),
            QueueConfig::Red(red) => Discipline::Red(Box::new(Red::new(red, limit, Random::new(random.bits(), "red")))),
            QueueConfig::Drr(drr) => Discipline::Drr(Box::new(Drr::new(drr, limit))),
            QueueConfig::Fair(fair) => Discipline::Fair(Box::new(Fair::new(fair, limit))),
            QueueConfig::CoDel(codel) => Discipline::CoDel(Box::new(CoDel::new(codel, limit))),
            QueueConfig::FqCoDel(fq_codel) => Discipline::FqCoDel(Box::new(FqCoDel::new(fq_codel, limit, random))),
        }
    }
}

macro_rules! each {
    ($discipline:expr, $queue:ident => $does:expr) => {
        match $discipline {
            Discipline::DropTail($queue) => $does,
            Discipline::Red($queue) => $does,
            Discipline::Drr($queue) => $does,
            Discipline::Fair($queue) => $does,
            Discipline::CoDel($queue) => $does,
            Discipline::FqCoDel($queue) => $does,
        }
    };
}

impl<P> Queue<P> for Discipline<P> {
    fn enqueue(&mut self, packet: Queued<P>, link: LinkState, drops: Drops<'_, P>) {
        each!(self, queue => queue.enqueue(packet, link, drops));
    }

    fn dequeue(&mut self, now: Time, drops: Drops<'_, P>) -> Option<Queued<P>> {
        each!(self, queue => queue.dequeue(now, drops))
    }

    fn len(&self) -> usize {
        each!(self, queue => queue.len())
    }

    fn bytes(&self) -> Bytes {
        each!(self, queue => queue.bytes())
    }
}

//! The channels of a session, and which of them a receiver is a member of.

use alloc::boxed::Box;

use weir_units::{Bytes, Rate, Time};
use weir_wire::{CciForm, Layered};

use super::{Leaves, Membership, Received};
use crate::endpoint::{Action, ChannelId, Origin};
use crate::estimate::QueuingDelay;
use crate::outbox::Outbox;

/// By channel, what a receiver knows of it.
#[derive(Debug)]
pub(crate) struct Memberships {
    channels: Box<[Membership]>,
    /// Of how many of them the receiver is a member.
    count: usize,
}

impl Memberships {
    /// No memberships in channels of these rates. `reorder` later packets of a channel give a missing one up.
    pub(crate) fn new(
        rates: impl Iterator<Item = Rate>,
        packet_size: Bytes,
        form: CciForm,
        reorder: u64,
    ) -> Memberships {
        let membership = |rate| Membership::new(rate, packet_size, form.sequence_bits(), reorder);
        Memberships { channels: rates.map(membership).collect(), count: 0 }
    }

    /// What is known of a channel, which has to be one of the session's.
    pub(crate) fn of(&self, channel: usize) -> &Membership {
        &self.channels[channel]
    }

    /// Becomes a member of a channel that it is no member of.
    pub(crate) fn join(&mut self, now: Time, channel: usize, actions: &mut Outbox) {
        self.channels[channel].join(now);
        self.count += 1;
        actions.push(Action::Join(ChannelId(channel as u16)));
    }

    /// Leaves a channel that it is a member of.
    pub(crate) fn leave(&mut self, now: Time, channel: usize, leaves: &mut Leaves, actions: &mut Outbox) {
        self.channels[channel].leave(now);
        self.count -= 1;
        leaves.on_leave(now);
        actions.push(Action::Leave(ChannelId(channel as u16)));
    }

    /// Joins channels again that should bring packets and do not: a join may be lost on its way, and routers forget.
    /// Where channel 0 is silent it alone: then it is the sender or the path, and not one channel.
    pub(crate) fn rejoin_silent(&mut self, now: Time, actions: &mut Outbox) {
        let asked_for = if self.channels[0].is_silent(now) { 1 } else { self.count };
        let members = self.channels.iter_mut().enumerate().filter(|(_, membership)| membership.is_member());
        for (channel, membership) in members.take(asked_for) {
            if membership.rejoin_if_silent(now) {
                actions.push(Action::Leave(ChannelId(channel as u16)));
                actions.push(Action::Join(ChannelId(channel as u16)));
            }
        }
    }

    /// Whether a packet came on the channel that it names, with a number that packets of the channel can have.
    #[inline]
    pub(crate) fn is_plausible(&self, from: Origin, header: &Layered) -> bool {
        let membership = self.channels.get(usize::from(header.channel));
        from == Origin::Channel(ChannelId(header.channel))
            && membership.is_some_and(|membership| membership.is_number(header.sequence))
    }

    /// A plausible packet came. Returns what it is to the receiver; `None` if it came before, or its number is far from what
    /// the channel was at.
    #[inline]
    pub(crate) fn on_packet(
        &mut self,
        now: Time,
        header: &Layered,
        delay: &QueuingDelay,
        leaves: &mut Leaves,
    ) -> Option<Received> {
        self.channels.get_mut(usize::from(header.channel))?.on_packet(now, header, delay, leaves)
    }
}

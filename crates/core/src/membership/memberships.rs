//! The channels of a session, and which of them a receiver is a member of.

use alloc::boxed::Box;

use weir_units::{Bytes, Rate, Time};
use weir_wire::{CciForm, Layered};

use super::{Membership, Received, Reordering};
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

/// Which silent channels are joined again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejoin {
    /// Where channel 0 is silent, it alone: then it is the sender or the path, and not one channel. For schemes whose
    /// receivers are members of channel 0 at all times.
    BaseFirst,
    /// Each. For schemes without such a channel, where silence of one tells nothing of the others.
    Each,
}

impl Memberships {
    /// No memberships in channels of these rates. `reordering` tells for a channel's rate how many later packets give a missing one up.
    pub(crate) fn new(
        rates: impl IntoIterator<Item = Rate>,
        packet_size: Bytes,
        form: CciForm,
        reordering: impl Fn(Rate) -> Reordering,
    ) -> Memberships {
        let membership = |rate| Membership::new(rate, packet_size, form.sequence_bits(), reordering(rate));
        Memberships { channels: rates.into_iter().map(membership).collect(), count: 0 }
    }

    /// What is known of a channel, which has to be one of the session's.
    pub(crate) fn of(&self, channel: usize) -> &Membership {
        &self.channels[channel]
    }

    /// The channels that the receiver is a member of, from the lowest.
    pub(crate) fn members(&self) -> impl Iterator<Item = usize> {
        let members = self.channels.iter().enumerate().filter(|(_, membership)| membership.is_member());
        members.map(|(channel, _)| channel).take(self.count)
    }

    /// Becomes a member of a channel that it is no member of.
    pub(crate) fn join(&mut self, now: Time, channel: usize, actions: &mut Outbox) {
        self.channels[channel].join(now);
        self.count += 1;
        actions.push(Action::Join(ChannelId(channel as u16)));
    }

    /// How many channels it is a member of.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Leaves a channel that it is a member of.
    pub(crate) fn leave(&mut self, channel: usize, actions: &mut Outbox) {
        self.channels[channel].leave();
        self.count -= 1;
        actions.push(Action::Leave(ChannelId(channel as u16)));
    }

    /// Joins channels again that should bring packets and do not: a join may be lost on its way, and routers forget.
    pub(crate) fn rejoin_silent(&mut self, now: Time, rejoin: Rejoin, actions: &mut Outbox) {
        let is_base_silent = rejoin == Rejoin::BaseFirst && self.channels[0].is_silent(now);
        let asked_for = if is_base_silent { 1 } else { self.count };
        let members = self.channels.iter_mut().enumerate().filter(|(_, membership)| membership.is_member());
        for (channel, membership) in members.take(asked_for) {
            if membership.rejoin_if_silent(now) {
                actions.push(Action::Leave(ChannelId(channel as u16)));
                actions.push(Action::Join(ChannelId(channel as u16)));
            }
        }
    }

    /// The sender's clock has another origin since the packet on which it shows `clock_micros`.
    pub(crate) fn on_clock_restart(&mut self, clock_micros: u64) {
        self.channels.iter_mut().for_each(|membership| membership.on_clock_restart(clock_micros));
    }

    /// Whether a packet came on the channel that it names, with a number that packets of the channel can have.
    #[inline]
    pub(crate) fn is_plausible(&self, from: Origin, header: &Layered) -> bool {
        let membership = self.channels.get(usize::from(header.channel));
        from == Origin::Channel(ChannelId(header.channel))
            && membership.is_some_and(|membership| membership.is_number(header.sequence))
    }

    /// A plausible packet came; if it tells that the sender has started again, `delay` hears of it. Returns what it is to the receiver; `None` if it came before, or its number is far from what
    /// the channel was at.
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Time, header: &Layered, delay: &mut QueuingDelay) -> Option<Received> {
        self.channels.get_mut(usize::from(header.channel))?.on_packet(now, header, delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    use crate::estimate::DelayWindow;

    /// A receiver's memberships on an empty path that takes no time, with clocks that agree.
    struct Tested {
        memberships: Memberships,
        delay: QueuingDelay,
        actions: Outbox,
        sequence: u32,
    }

    impl Tested {
        /// A member of three channels of four since 0 s.
        fn new() -> Tested {
            let rates = [Rate::from_mbps(1); 4];
            let mut tested = Tested {
                memberships: Memberships::new(rates, Bytes::new(1000), CciForm::Short, |_| Reordering::fixed(1)),
                delay: QueuingDelay::new(0.25, 0.05, DelayWindow::Everything),
                actions: Outbox::default(),
                sequence: 0,
            };
            (0..3).for_each(|channel| tested.memberships.join(Time::ZERO, channel, &mut tested.actions));
            tested.joins();
            tested
        }

        /// The joins since the last call.
        fn joins(&mut self) -> Vec<u16> {
            let actions = core::iter::from_fn(|| self.actions.pop());
            actions
                .filter_map(|action| if let Action::Join(ChannelId(channel)) = action { Some(channel) } else { None })
                .collect()
        }

        /// The next packet of a channel, sent and received at this time.
        fn packet(&mut self, millis: u64, channel: u16) -> Option<Received> {
            self.sequence += 1;
            let (now, clock_micros) = (Time::from_millis(millis), millis * 1000);
            let header = Layered { signal: false, slot: 0, channel, sequence: self.sequence, clock_micros };
            let received = self.memberships.on_packet(now, &header, &mut self.delay);
            self.delay.on_packet(now, channel, clock_micros);
            received
        }

        fn rejoin(&mut self, millis: u64, rejoin: Rejoin) -> Vec<u16> {
            self.memberships.rejoin_silent(Time::from_millis(millis), rejoin, &mut self.actions);
            self.joins()
        }
    }

    #[test]
    fn where_all_is_silent_the_base_is_asked_for_alone_if_there_is_one() {
        assert_eq!(Tested::new().rejoin(1_000, Rejoin::BaseFirst), [0]);
        assert_eq!(Tested::new().rejoin(1_000, Rejoin::Each), [0, 1, 2]);
        let mut tested = Tested::new();
        tested.packet(900, 0);
        assert_eq!(tested.rejoin(1_000, Rejoin::BaseFirst), [1, 2], "the base is not silent");
    }

    #[test]
    fn a_first_packet_tells_how_long_the_join_took_unless_it_was_repeated() {
        let mut tested = Tested::new();
        let answers = |answers_join| Some(Received::Measured { missing: 0, answers_join });
        assert_eq!(tested.packet(30, 0), answers(Some(Time::ZERO)));
        assert_eq!(tested.packet(40, 0), answers(None), "it is not the first");
        tested.rejoin(1_000, Rejoin::Each);
        assert!(!tested.memberships.of(1).is_heard());
        assert_eq!(tested.packet(1_500, 1), answers(None), "the channel was joined again");
        assert!(tested.memberships.of(1).is_heard());
    }

    #[test]
    fn packets_of_channels_that_were_left_or_never_joined_are_strays() {
        let mut tested = Tested::new();
        assert_eq!(tested.packet(500, 3), Some(Received::Stray));
        tested.memberships.leave(2, &mut tested.actions);
        assert_eq!(tested.packet(600, 2), Some(Received::Stray));
    }

    #[test]
    fn members_are_those_joined_and_not_left() {
        let mut tested = Tested::new();
        tested.memberships.leave(1, &mut tested.actions);
        assert_eq!(tested.memberships.members().collect::<Vec<_>>(), [0, 2]);
    }
}

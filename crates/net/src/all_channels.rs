//! The endpoint of a session without congestion control: all channels at once, every packet delivered. Nothing is measured.

use weir_core::{Action, ChannelId, Endpoint, Event, Origin};
use weir_units::Time;

/// It joins them at the start and leaves them at the end.
#[derive(Debug)]
pub(crate) struct AllChannels {
    joined: usize,
    wanted: usize,
    channels: usize,
    has_packet: bool,
}

impl AllChannels {
    /// All of this number of channels.
    pub(crate) fn new(channels: usize) -> AllChannels {
        AllChannels { joined: 0, wanted: 0, channels, has_packet: false }
    }
}

impl Endpoint for AllChannels {
    fn handle(&mut self, _now: Time, event: Event<'_>) {
        match event {
            Event::Start => self.wanted = self.channels,
            Event::Finish => self.wanted = 0,
            Event::Packet { from: Origin::Channel(_), .. } => self.has_packet = true,
            Event::Packet { .. }
            | Event::Deadline
            | Event::PeerUp(_)
            | Event::Reachable { .. }
            | Event::Reached { .. }
            | Event::PeerDown(_)
            | Event::HostDropped { .. }
            | Event::Backlog(_)
            | Event::Offer { .. }
            | Event::End
            | Event::Room { .. }
            | Event::Allot(_)
            | Event::Priority { .. }
            | Event::FinishSession(_) => {}
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        if std::mem::take(&mut self.has_packet) {
            return Some(Action::Deliver { number: None });
        }
        if self.joined < self.wanted {
            self.joined += 1;
            return Some(Action::Join(ChannelId(self.joined as u16 - 1)));
        }
        if self.joined > self.wanted {
            self.joined -= 1;
            return Some(Action::Leave(ChannelId(self.joined as u16)));
        }
        None
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

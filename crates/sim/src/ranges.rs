//! Which channels an endpoint knows by which numbers, if it is a party of several sessions.

use weir_core::ChannelId;

use crate::SessionId;
use crate::multicast::Member;

/// A party's place in a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attachment {
    pub(crate) session: SessionId,
    /// Where it is attached to the session's tree; a sender that joins nothing is not.
    pub(crate) member: Option<Member>,
}

/// A channel of a session, as the network knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Located {
    pub(crate) at: Attachment,
    pub(crate) channel: u16,
}

/// The sessions of a party besides the first, whose channels follow those of the first.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Vec<Range>);

#[derive(Debug)]
struct Range {
    first: u16,
    channels: u16,
    at: Attachment,
}

impl Ranges {
    /// Adds a session; `before` is how many channels the party's first session has.
    pub(crate) fn add(&mut self, before: u16, at: Attachment, channels: u16) -> ChannelId {
        let first = self.0.last().map_or(before, |last| last.first + last.channels);
        assert!(first.checked_add(channels).is_some(), "an endpoint knows fewer than {} channels", u16::MAX);
        self.0.push(Range { first, channels, at });
        ChannelId(first)
    }

    /// Which channel the endpoint means.
    pub(crate) fn locate(&self, ChannelId(channel): ChannelId) -> Option<Located> {
        let range = self.0.iter().find(|range| (range.first..range.first + range.channels).contains(&channel))?;
        Some(Located { at: range.at, channel: channel - range.first })
    }

    /// The first channel of a session, as the endpoint knows it.
    pub(crate) fn first_of(&self, session: SessionId) -> Option<ChannelId> {
        Some(ChannelId(self.0.iter().find(|range| range.at.session == session)?.first))
    }

    /// The party's places in these sessions, in the order of their channels.
    pub(crate) fn attachments(&self) -> impl Iterator<Item = Attachment> + '_ {
        self.0.iter().map(|range| range.at)
    }
}

//! Layered media as the content of a unicast stream: the programme is read as far ahead as a viewer may have it, and each viewer is served
//! by a reader of its own.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use weir_core::PeerId;
use weir_core::observation::Observation;
use weir_core::scheme::rap::quality::QualityConfig;
use weir_units::{Bytes, Time};
use weir_wire::rtcp::handshake::Pictures;
use weir_wire::rtp::Rtp;

use super::reader::{Counts, Reader};
use super::shelf::Shelf;
use crate::live::{Content, LayersProgress, Next};
use crate::media::programme::Programme;

/// See the module's documentation.
pub(super) struct MediaContent {
    programme: Programme,
    shelf: Shelf,
    form: Form,
    readers: BTreeMap<PeerId, Reader>,
    /// Since when the programme runs; a file's runs from the first viewer on.
    began: Option<Time>,
    /// It has ended, and the readers know.
    is_ended: bool,
    /// Of viewers that have gone.
    before: Counts,
}

/// How a programme is served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) pictures: Pictures,
    /// RTP payload type.
    pub(super) payload_type: u8,
    /// Bytes of a picture in a full packet.
    pub(super) room: usize,
    pub(super) quality: QualityConfig,
    /// Nobody knows what is to come: pictures go as they come.
    pub(super) is_live: bool,
}

impl MediaContent {
    pub(super) fn new(programme: Programme, shelf: Shelf, form: Form) -> MediaContent {
        let (readers, before) = (BTreeMap::new(), Counts::default());
        MediaContent { programme, shelf, form, readers, began: None, is_ended: false, before }
    }

    /// Where the programme is.
    fn position(&self, now: Time) -> Duration {
        match (self.form.is_live, self.began) {
            (true, _) => self.shelf.edge(),
            (false, began) => began.map_or(Duration::ZERO, |began| now.since(began)),
        }
    }

    /// Up to where pictures are read.
    fn horizon(&self, now: Time) -> Duration {
        let ahead = self.form.quality.max_buffer;
        let wants_to = self.readers.values().map(|reader| reader.wants_to(now, ahead)).max();
        wants_to.unwrap_or_else(|| self.position(now))
    }

    /// Pictures that may be wanted by now are put on the shelf, and those that nobody wants any more go.
    fn restock(&mut self, now: Time) {
        if self.began.is_none() && !self.form.is_live {
            return;
        }
        let horizon = self.horizon(now);
        while let Some((at, picture)) = self.programme.next_until(horizon) {
            self.shelf.push(at, &picture);
        }
        let wanted = self.readers.values().map(|reader| reader.wants_from(now)).min();
        self.shelf.forget(wanted.unwrap_or_else(|| self.position(now)));
        if self.programme.is_over() && !std::mem::replace(&mut self.is_ended, true) {
            let end = self.shelf.end();
            self.readers.values_mut().for_each(|reader| reader.end(end));
        }
    }

    fn counts(&self) -> Counts {
        self.readers.values().map(Reader::counts).fold(self.before, Counts::plus)
    }
}

impl Content for MediaContent {
    fn add(&mut self, now: Time, viewer: PeerId, packet_size: Bytes) {
        self.began.get_or_insert(now);
        let from = self.position(now);
        let mut reader = Reader::new(self.form.quality, packet_size, from);
        if self.is_ended {
            reader.end(self.shelf.end());
        }
        self.readers.insert(viewer, reader);
    }

    fn remove(&mut self, viewer: PeerId) {
        if let Some(reader) = self.readers.remove(&viewer) {
            self.before = self.before.plus(reader.counts());
        }
    }

    fn observe(&mut self, now: Time, viewer: PeerId, observation: &Observation) {
        if let Some(reader) = self.readers.get_mut(&viewer) {
            reader.observe(now, observation);
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.programme.readable()
    }

    fn read(&mut self, now: Time) {
        self.programme.read();
        self.turn(now);
    }

    fn turn(&mut self, now: Time) {
        self.restock(now);
        self.readers.values_mut().for_each(|reader| reader.refill(now, &self.shelf));
    }

    fn next_due(&self) -> Option<Time> {
        let readers = self.readers.values().filter_map(Reader::deadline);
        let ahead = self.form.quality.max_buffer;
        let programme = self.programme.next_at().zip(self.began).map(|(at, began)| match self.form.is_live {
            true => Time::ZERO,
            false => began + at.saturating_sub(ahead),
        });
        readers.chain(programme).min()
    }

    fn next(&mut self, now: Time, viewer: PeerId) -> Option<Next> {
        let reader = self.readers.get_mut(&viewer)?;
        let taken = reader.take(now);
        reader.refill(now, &self.shelf);
        taken.map(|next| Next { header: Rtp { payload_type: self.form.payload_type, ..next.header }, ..next })
    }

    fn waiting(&self, viewer: PeerId) -> u64 {
        self.readers.get(&viewer).map_or(0, Reader::waiting)
    }

    /// Where nobody is, all that is there waits for the next.
    fn waiting_in_all(&self) -> u64 {
        match self.readers.is_empty() {
            true => self.shelf.len() as u64,
            false => self.readers.values().map(Reader::waiting).sum(),
        }
    }

    fn is_over(&self) -> bool {
        self.programme.is_over() && self.readers.values().all(|reader| reader.is_served(&self.shelf))
    }

    fn payload_type(&self) -> Option<u8> {
        Some(self.form.payload_type)
    }

    fn payload_len(&self) -> usize {
        self.form.room
    }

    fn header_len(&self) -> usize {
        Rtp::LEN_WITH_PART
    }

    fn pictures(&self) -> Option<Pictures> {
        Some(self.form.pictures)
    }

    fn layers_of(&self, now: Time, viewer: PeerId) -> Option<LayersProgress> {
        self.readers.get(&viewer).map(|reader| reader.progress(now))
    }

    fn layer_changes(&self) -> Option<u64> {
        let counts = self.counts();
        Some(counts.added + counts.left)
    }

    fn underflows(&self) -> Option<u64> {
        Some(self.counts().underflows)
    }

    fn dropped_of(&self, viewer: PeerId) -> u64 {
        self.readers.get(&viewer).map_or(0, |reader| reader.counts().dropped)
    }

    fn dropped(&self) -> u64 {
        self.counts().dropped
    }

    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.programme.told)
    }

    fn failure(&self) -> Option<String> {
        self.programme.failure.clone()
    }
}

//! The pictures of a programme in parts, layer by layer, from which viewers are served. A state machine without clock or socket.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use weir_media::{Codec, Packetizer, Picture};
use weir_wire::media::PicturePlace;

/// See the module's documentation.
pub(super) struct Shelf {
    packetizer: Packetizer,
    rows: Vec<Row>,
    /// Where a decoder can begin, the latest last.
    entries: VecDeque<Entry>,
    /// The time of the latest picture.
    edge: Duration,
}

/// A layer.
#[derive(Debug, Default)]
struct Row {
    parts: VecDeque<Part>,
    /// The number of the first part that is here; parts are numbered from 0.
    first: u64,
    /// The time of the latest picture of the layer.
    latest: Option<Duration>,
    /// How long its pictures last, by the two latest.
    span: Duration,
}

/// A part of a picture, as much as fits into a packet.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) place: PicturePlace,
    /// It is the picture's last.
    pub(super) marker: bool,
    pub(super) timestamp: u32,
    /// When the picture goes in the programme.
    pub(super) at: Duration,
    /// How long the layer's pictures last.
    pub(super) span: Duration,
    /// Number within the layer.
    pub(super) sequence: u16,
    pub(super) payload: Arc<[u8]>,
}

/// A picture that a decoder can begin with.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) at: Duration,
    /// For each layer, the number of the first part from there on.
    pub(super) parts: Vec<u64>,
}

impl Shelf {
    /// For a programme whose layers' pictures last about as long as `spans` says, in parts of at most `room` bytes.
    pub(super) fn new(codec: Codec, spans: &[Duration], room: usize) -> Shelf {
        Shelf {
            packetizer: Packetizer::new(codec, room),
            rows: spans.iter().map(|span| Row { span: *span, ..Row::default() }).collect(),
            entries: VecDeque::new(),
            edge: Duration::ZERO,
        }
    }

    /// The next picture of the programme, which goes `at`. A layer that turns up while the programme runs goes with the highest.
    pub(super) fn push(&mut self, at: Duration, picture: &Picture) {
        let info = picture.info;
        let layer = usize::from(info.layer).min(self.rows.len() - 1);
        if info.is_key {
            let parts = self.rows.iter().map(Row::end).collect();
            self.entries.push_back(Entry { at, parts });
        }
        self.edge = self.edge.max(at);
        let row = &mut self.rows[layer];
        row.span = row.latest.replace(at).map_or(row.span, |latest| at.saturating_sub(latest));
        for payload in self.packetizer.packetize(picture) {
            let place = PicturePlace {
                number: info.number,
                needs: info.needs,
                layer: layer as u8,
                is_key: info.is_key,
                is_leading: info.is_leading,
                is_start: payload.starts,
            };
            let (timestamp, span, sequence) = (picture.timestamp, row.span, row.end() as u16);
            let (marker, payload) = (payload.marker, payload.data.into());
            row.parts.push_back(Part { place, marker, timestamp, at, span, sequence, payload });
        }
    }

    /// The first part of a layer that is here and has this number or a higher one, and its number.
    pub(super) fn from(&self, layer: usize, number: u64) -> Option<(u64, &Part)> {
        let row = self.rows.get(layer)?;
        let number = number.max(row.first);
        row.parts.get(usize::try_from(number - row.first).ok()?).map(|part| (number, part))
    }

    /// The first entry at this time or later.
    pub(super) fn entry(&self, at: Duration) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.at >= at)
    }

    /// Nobody wants what goes before this time any more.
    pub(super) fn forget(&mut self, before: Duration) {
        for row in &mut self.rows {
            while row.parts.front().is_some_and(|part| part.at < before) {
                row.parts.pop_front();
                row.first += 1;
            }
        }
        while self.entries.front().is_some_and(|entry| entry.at < before) {
            self.entries.pop_front();
        }
    }

    /// The time of the latest picture.
    pub(super) fn edge(&self) -> Duration {
        self.edge
    }

    /// When the programme ends, if no picture follows.
    pub(super) fn end(&self) -> Duration {
        self.rows.first().map_or(self.edge, |base| self.edge.max(base.latest.unwrap_or_default() + base.span))
    }

    /// How many parts are here.
    pub(super) fn len(&self) -> usize {
        self.rows.iter().map(|row| row.parts.len()).sum()
    }
}

impl Row {
    /// The number of the next part.
    fn end(&self) -> u64 {
        self.first + self.parts.len() as u64
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use weir_media::PictureInfo;

    /// Picture `number` of a programme of three layers with a key picture every 32, 20 ms each, of this many bytes.
    pub(in crate::media::unicast) fn picture(number: u16, bytes: usize) -> (Duration, Picture) {
        let (needs, layer) = [(4, 0), (1, 2), (2, 1), (1, 2)][usize::from(number % 4)];
        let is_key = number.is_multiple_of(32);
        let info = PictureInfo { number, needs: if is_key { 0 } else { needs }, layer, is_key, is_leading: false };
        let at = Duration::from_millis(20 * u64::from(number));
        (at, Picture { info, timestamp: u32::from(number) * 1_800, data: vec![0x82; bytes] })
    }

    #[test]
    fn parts_are_found_by_layer_and_number_until_they_are_forgotten() {
        let mut shelf = Shelf::new(Codec::Vp9, &[Duration::from_millis(80); 3], 1_000);
        (0..40).for_each(|number| {
            let (at, picture) = picture(number, 1_500);
            shelf.push(at, &picture);
        });
        let part =
            |shelf: &Shelf, layer, from| shelf.from(layer, from).map(|(number, part)| (number, part.place.number));
        assert_eq!([part(&shelf, 0, 0), part(&shelf, 0, 2)], [Some((0, 0)), Some((2, 4))]);
        assert_eq!([part(&shelf, 2, 3), part(&shelf, 2, 40)], [Some((3, 3)), None]);
        assert_eq!(shelf.from(1, 2).map(|(_, part)| (part.span.as_millis(), part.sequence)), Some((80, 2)));
        shelf.forget(Duration::from_millis(160));
        assert_eq!(part(&shelf, 0, 3), Some((4, 8)), "what was before is gone");
        let entry = shelf.entry(Duration::from_millis(1)).expect("a key picture");
        assert_eq!((entry.at.as_millis(), &entry.parts[..]), (640, &[16, 16, 32][..]));
        assert_eq!((shelf.edge().as_millis(), shelf.end().as_millis()), (780, 800));
    }
}

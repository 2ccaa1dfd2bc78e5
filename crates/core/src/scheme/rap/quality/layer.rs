//! One layer: what of it was sent, what of that has come, and how far it has played.

use alloc::collections::VecDeque;
use core::time::Duration;

use weir_units::{Bytes, Time};

/// What a packet carries of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// Its number, higher than that of every packet before; it keeps it when it is sent again.
    pub number: u64,
    /// Of which layer, the base being 0.
    pub layer: usize,
    /// Where in the stream's time it begins to play.
    pub from: Duration,
    /// For how long it plays. Of several packets for one picture, one has the picture's span and the others none.
    pub span: Duration,
    /// How large it is.
    pub bytes: Bytes,
}

/// What has become of the bytes of a layer. Those that were sent are in one of the other places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// Sent, not counting what was sent again.
    pub sent: u64,
    /// On the way.
    pub under_way: u64,
    /// Lost, and it could still be sent again in time.
    pub lost: u64,
    /// At the receiver, and not played yet.
    pub buffered: u64,
    /// Played.
    pub played: u64,
    /// Not known to be at the receiver when it should have played.
    pub missed: u64,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    number: u64,
    from: Duration,
    span: Duration,
    bytes: u64,
    /// When it was sent first, and when last.
    sent: Time,
    latest: Time,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    UnderWay,
    Lost,
    Buffered,
}

/// A layer as the sender knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer {
    /// What was sent and has not played yet, in order.
    pieces: VecDeque<Piece>,
    /// Numbers of lost pieces, in the order of their losses.
    lost: VecDeque<u64>,
    /// Where in the stream's time the next packet goes on.
    frontier: Duration,
    /// Up to where the stream has played, or was missed.
    played_to: Duration,
    /// Up to where it was missed last.
    missed_to: Option<Duration>,
    /// How much time of it was missed, in how many pieces of time.
    pub(super) missing: Duration,
    pub(super) underflows: u64,
    pub(super) account: Account,
}

impl Layer {
    /// Where the next packet goes on.
    pub(super) fn frontier(&self) -> Duration {
        self.frontier
    }

    /// The next packet goes on at `at` or later.
    pub(super) fn go_on_at(&mut self, at: Duration) {
        self.frontier = self.frontier.max(at);
    }

    /// Whether no more pieces can be told apart.
    pub(super) fn is_full(&self) -> bool {
        self.pieces.len() >= MOST_PIECES
    }

    /// A packet goes out that was not sent before.
    pub(super) fn send(&mut self, now: Time, carried: &Carried) {
        let bytes = carried.bytes.count();
        self.account.sent += bytes;
        self.account.under_way += bytes;
        let from = carried.from.max(self.frontier);
        self.frontier = from.saturating_add(carried.span);
        let Carried { number, span, .. } = *carried;
        self.pieces.push_back(Piece { number, from, span, bytes, sent: now, latest: now, fate: Fate::UnderWay });
    }

    /// A piece has come; gives its bytes and when it was sent last, if it is one of this layer's that has not played, and this is news.
    pub(super) fn on_acknowledged(&mut self, number: u64) -> Option<(u64, Time)> {
        let piece = self.find(number).map(|index| self.pieces[index])?;
        self.change(number, |_| Some(Fate::Buffered));
        (piece.fate != Fate::Buffered).then_some((piece.bytes, piece.latest))
    }

    /// A piece is lost; tells whether it is one of this layer's that has not played.
    pub(super) fn on_lost(&mut self, number: u64) -> bool {
        let mut is_news = false;
        let is_known = self.change(number, |fate| {
            is_news = fate == Fate::UnderWay;
            is_news.then_some(Fate::Lost)
        });
        if is_news {
            self.lost.push_back(number);
        }
        is_known
    }

    /// Whether something lost may be worth sending again.
    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// A lost piece that begins to play at `reach` or later, and was sent for the first time at `since` or later. It is taken as sent
    /// again; those that came after all, or would come too late, are passed over.
    pub(super) fn next_lost(&mut self, now: Time, reach: Duration, since: Time) -> Option<u64> {
        while let Some(number) = self.lost.pop_front() {
            let Some(index) = self.find(number) else { continue };
            let piece = &mut self.pieces[index];
            if piece.fate == Fate::Lost && piece.from >= reach && piece.sent >= since {
                piece.latest = now;
                self.change(number, |_| Some(Fate::UnderWay));
                return Some(number);
            }
        }
        None
    }

    /// The receiver plays up to `to` of the stream's time. Where nothing was there in time, that counts as missing if the layer is
    /// `wanted`.
    pub(super) fn play(&mut self, to: Duration, wanted: bool) {
        while let Some(piece) = self.pieces.front().copied().filter(|piece| piece.from <= to) {
            self.pieces.pop_front();
            self.miss(piece.from, wanted);
            *self.account.place(piece.fate) -= piece.bytes;
            let end = piece.from.saturating_add(piece.span);
            if piece.fate == Fate::Buffered {
                self.account.played += piece.bytes;
            } else {
                self.account.missed += piece.bytes;
                self.miss(end, wanted);
            }
            self.played_to = self.played_to.max(end);
        }
        self.miss(to, wanted);
    }

    /// From where it has played up to `to` there is nothing.
    fn miss(&mut self, to: Duration, wanted: bool) {
        if to <= self.played_to {
            return;
        }
        if wanted {
            self.underflows += u64::from(self.missed_to != Some(self.played_to));
            self.missing = self.missing.saturating_add(to - self.played_to);
            self.missed_to = Some(to);
        }
        self.played_to = to;
    }

    fn find(&self, number: u64) -> Option<usize> {
        self.pieces.binary_search_by_key(&number, |piece| piece.number).ok()
    }

    fn change(&mut self, number: u64, fate: impl FnOnce(Fate) -> Option<Fate>) -> bool {
        let Some(index) = self.find(number) else { return false };
        let piece = &mut self.pieces[index];
        if let Some(fate) = fate(piece.fate) {
            *self.account.place(piece.fate) -= piece.bytes;
            *self.account.place(fate) += piece.bytes;
            piece.fate = fate;
        }
        true
    }
}

impl Account {
    fn place(&mut self, fate: Fate) -> &mut u64 {
        match fate {
            Fate::UnderWay => &mut self.under_way,
            Fate::Lost => &mut self.lost,
            Fate::Buffered => &mut self.buffered,
        }
    }

    /// Bytes that were sent and have neither played nor been missed.
    pub fn ahead(&self) -> u64 {
        self.under_way + self.lost + self.buffered
    }
}

/// Pieces of a layer that are told apart: 20 s of packets of 1500 bytes at 20 Mbit/s.
const MOST_PIECES: usize = 1 << 15;

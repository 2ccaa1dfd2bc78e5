//! What a Linux sender knows of each outstanding segment, and RACK (RFC 8985): a segment is lost if one that was sent after it has
//! arrived, and it has had time enough to be overtaken.

use std::collections::VecDeque;
use std::time::Duration;

use weir_units::Time;

use crate::tcp::bit_ring::BitRing;
use crate::tcp::ring::Ring;

/// A transmission of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Record {
    pub(super) sent: Time,
    /// When the flight began that it belongs to, what had been delivered when it was sent, and when that was: for the
    /// delivery rate.
    pub(super) first_sent: Time,
    pub(super) delivered: u64,
    pub(super) delivered_at: Time,
    pub(super) flags: u8,
}

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// The last transmission was a repair, and is on its way.
const REPAIRING: u8 = 4;
const REPAIRED: u8 = 8;
const APP_LIMITED: u8 = 16;

impl Record {
    fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Whether it has been sent more than once.
    pub(super) fn was_repaired(&self) -> bool {
        self.is(REPAIRED)
    }

    /// Whether the application was the limit when it was sent.
    pub(super) fn is_app_limited(&self) -> bool {
        self.is(APP_LIMITED)
    }
}

/// The latest delivered transmission (`RACK.xmit_ts`, `RACK.end_seq`, `RACK.rtt`).
#[derive(Debug, Clone, Copy, Default)]
struct Rack {
    sent: Time,
    seq: u64,
    rtt: Duration,
}

/// All that is outstanding.
#[derive(Debug, Clone)]
pub(super) struct Board {
    records: Ring<Record>,
    sacked: BitRing,
    /// One past the highest segment that was sacked before the acknowledgement that is being read.
    top: u64,
    /// The lowest segment that is not acknowledged, and the next that was never sent.
    pub(super) una: u64,
    pub(super) next: u64,
    pub(super) sacked_out: u64,
    pub(super) lost_out: u64,
    repairing_out: u64,
    /// Segments found lost so far, each time that they were.
    pub(super) lost: u64,
    /// Transmissions in the order of their time. Those that do not matter any more are taken out when they come first.
    order: VecDeque<(Time, u64)>,
    /// No segment below needs a repair.
    hint: u64,
    rack: Rack,
    /// Segments by which one may overtake another; 3 until more was seen.
    reordering: u64,
    reordering_seen: bool,
}

impl Default for Board {
    fn default() -> Board {
        Board {
            records: Ring::default(),
            sacked: BitRing::default(),
            top: 0,
            una: 0,
            next: 0,
            sacked_out: 0,
            lost_out: 0,
            repairing_out: 0,
            lost: 0,
            order: VecDeque::new(),
            hint: 0,
            rack: Rack::default(),
            reordering: DUP_THRESH,
            reordering_seen: false,
        }
    }
}

impl Board {
    /// Segments sent and not acknowledged.
    #[inline]
    pub(super) fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// Segments that are believed to be on the way.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        self.outstanding() + self.repairing_out - self.sacked_out - self.lost_out
    }

    /// Whether something is lost and its repair not on the way.
    pub(super) fn has_lost_hole(&self) -> bool {
        self.lost_out > self.repairing_out
    }

    /// Whether anything is sacked, lost, or sent again.
    pub(super) fn has_holes(&self) -> bool {
        self.sacked_out + self.lost_out + self.repairing_out > 0
    }

    /// Repairs that are on the way.
    pub(super) fn repairing(&self) -> u64 {
        self.repairing_out
    }

    /// When the lowest outstanding segment was sent last.
    pub(super) fn head_sent(&self) -> Time {
        self.records.get(self.una).sent
    }

    /// Segment `seq` is sent, `next` or a repair; what the delivery rate needs is in `record`.
    #[inline]
    pub(super) fn sent(&mut self, seq: u64, record: Record, app_limited: bool) {
        let entry = self.records.entry(self.una, seq);
        let mut flags = if app_limited { APP_LIMITED } else { 0 };
        if seq < self.next {
            flags |= (entry.flags & (LOST | SACKED)) | REPAIRED | REPAIRING;
            self.repairing_out += u64::from(!entry.is(REPAIRING));
        } else {
            self.next = seq + 1;
        }
        *entry = Record { flags, ..record };
        self.order.push_back((record.sent, seq));
    }

    /// The lowest segment that is lost and not being repaired.
    pub(super) fn lost_hole(&mut self) -> Option<u64> {
        if !self.has_lost_hole() {
            return None;
        }
        self.hint = self.hint.max(self.una);
        while self.hint < self.next {
            let record = self.records.get(self.hint);
            if record.is(LOST) && !record.is(REPAIRING | SACKED) {
                return Some(self.hint);
            }
            self.hint += 1;
        }
        None
    }

    /// Everything below `ack` has arrived. `news` is told each segment that was not sacked before, and `all` each.
    #[inline]
    pub(super) fn acknowledge(&mut self, now: Time, ack: u64, min_rtt: Duration, mut news: impl FnMut(u64, &Record)) {
        for seq in self.una..ack {
            let record = self.records.get(seq);
            self.repairing_out -= u64::from(record.is(REPAIRING));
            self.lost_out -= u64::from(record.is(LOST));
            if record.is(SACKED) {
                self.sacked_out -= 1;
            } else {
                if !record.is(REPAIRED) {
                    self.see_order(seq);
                }
                self.advance(now, seq, &record, min_rtt);
                news(seq, &record);
            }
        }
        self.una = ack;
        self.sacked.advance(ack);
    }

    /// The block `start..end` has arrived.
    pub(super) fn sack(
        &mut self,
        now: Time,
        start: u64,
        end: u64,
        min_rtt: Duration,
        mut news: impl FnMut(u64, &Record),
    ) {
        let (start, end) = (start.max(self.una), end.min(self.next));
        if start >= end {
            return;
        }
        let mut fresh = std::mem::take(&mut self.sacked);
        fresh.insert(start, end, |first, mut bits| {
            while bits != 0 {
                let seq = first + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                let record = self.records.get(seq);
                self.sack_one(now, seq, &record, min_rtt);
                news(seq, &record);
            }
        });
        self.sacked = fresh;
    }

    fn sack_one(&mut self, now: Time, seq: u64, record: &Record, min_rtt: Duration) {
        if !record.is(REPAIRED) {
            self.see_order(seq);
        }
        self.lost_out -= u64::from(record.is(LOST));
        self.repairing_out -= u64::from(record.is(REPAIRING));
        self.sacked_out += 1;
        let entry = self.records.entry(self.una, seq);
        entry.flags = (entry.flags & !(LOST | REPAIRING)) | SACKED;
        self.advance(now, seq, record, min_rtt);
    }

    /// An acknowledgement is about to be read.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.top = self.sacked.top();
    }

    /// A segment that was sent once arrives. If one above it had arrived before, the network changes the order.
    fn see_order(&mut self, seq: u64) {
        if seq + 1 < self.top {
            self.reordering = self.reordering.max((self.top - 1 - seq).min(MOST_REORDERING));
            self.reordering_seen = true;
        }
    }

    /// `RACK_update()`: a transmission has been delivered.
    fn advance(&mut self, now: Time, seq: u64, record: &Record, min_rtt: Duration) {
        let rtt = now.since(record.sent);
        if record.is(REPAIRED) && rtt < min_rtt {
            // It is the first copy that has arrived.
            return;
        }
        self.rack.rtt = rtt;
        if (record.sent, seq) > (self.rack.sent, self.rack.seq) {
            (self.rack.sent, self.rack.seq) = (record.sent, seq);
        }
    }

    /// How long a segment may be late before it is lost. Without reordering on this path, and with a loss or enough sacked
    /// segments, not at all.
    fn reordering_window(&self, min_rtt: Duration, srtt: Duration, recovering: bool) -> Duration {
        if !self.reordering_seen && (recovering || self.sacked_out >= self.reordering) {
            return Duration::ZERO;
        }
        (min_rtt / 4).min(srtt)
    }

    /// `RACK_detect_loss()`: marks what is lost, and gives when the next segment may be.
    pub(super) fn detect_losses(
        &mut self,
        now: Time,
        min_rtt: Duration,
        srtt: Duration,
        recovering: bool,
    ) -> Option<Time> {
        let patience = self.rack.rtt + self.reordering_window(min_rtt, srtt, recovering);
        let mut again = None;
        self.tidy();
        let mut place = 0;
        while let Some((sent, seq)) = self.order.get(place).copied() {
            if !self.matters(sent, seq) {
                self.order.remove(place);
                continue;
            }
            if (sent, seq) >= (self.rack.sent, self.rack.seq) {
                break;
            }
            if sent + patience <= now {
                self.mark_lost(seq);
                self.order.remove(place);
            } else {
                again = again.max(Some(sent + patience));
                place += 1;
            }
        }
        again
    }

    /// Takes transmissions that are over off the front.
    #[inline]
    pub(super) fn tidy(&mut self) {
        while let Some((sent, seq)) = self.order.front().copied()
            && !self.matters(sent, seq)
        {
            self.order.pop_front();
        }
    }

    fn matters(&self, sent: Time, seq: u64) -> bool {
        let record = self.records.get(seq);
        let is_on_its_way = !record.is(SACKED) && (!record.is(LOST) || record.is(REPAIRING));
        seq >= self.una && record.sent == sent && is_on_its_way
    }

    fn mark_lost(&mut self, seq: u64) {
        let entry = self.records.entry(self.una, seq);
        if entry.is(LOST) {
            if entry.is(REPAIRING) {
                entry.flags &= !REPAIRING;
                self.repairing_out -= 1;
                self.lost += 1;
            }
        } else {
            // A tail that was sent again as a probe counts as one on the way.
            self.repairing_out -= u64::from(entry.is(REPAIRING));
            entry.flags = (entry.flags & !REPAIRING) | LOST;
            self.lost_out += 1;
            self.lost += 1;
        }
        self.hint = self.hint.min(seq);
    }

    /// The retransmission timer ran out: all is lost but what was sent too lately.
    pub(super) fn lose_all(&mut self, now: Time) {
        for seq in self.una..self.next {
            let record = self.records.get(seq);
            let is_recent = seq != self.una && record.sent + self.rack.rtt > now;
            if !record.is(SACKED) && !is_recent {
                self.mark_lost(seq);
            }
        }
        self.hint = self.una;
    }
}

/// Segments that must be sacked above a hole before it counts as lost at once.
const DUP_THRESH: u64 = 3;
const MOST_REORDERING: u64 = 300;

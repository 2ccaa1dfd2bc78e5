//! The viewers of a sender: how it stands with each, and the rate at which an encoder should make the stream for it. A state machine
//! without clock or socket.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use weir_core::PeerId;
use weir_core::observation::{PaceCause, PaceReport};
use weir_net::host::{Amount, Statistics};
use weir_units::{Bytes, Rate, Time};

use super::content::Content;
use super::events::ViewerProgress;

/// Those that are there.
pub(super) type Viewers = BTreeMap<PeerId, Viewer>;

/// How it stands with a viewer.
#[derive(Debug)]
pub(super) struct Viewer {
    address: SocketAddr,
    packet_size: Bytes,
    /// Bytes of a full packet's payload.
    payload_len: Bytes,
    /// The last that was heard of its pace, and when.
    pace: Option<(Time, PaceReport)>,
    backoffs: u64,
    given: Given,
    /// Since the first report: the integral of the allowed rate, in bit/s times nanoseconds.
    allowed: u128,
    /// How it stood lately, the oldest first.
    marks: VecDeque<Mark>,
    shown: Amount,
}

/// Payloads that were given for the first time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Given {
    packets: u64,
    bytes: u64,
}

impl Given {
    pub(super) fn note(&mut self, payload: &[u8]) {
        self.packets += 1;
        self.bytes += payload.len() as u64;
    }

    /// How many of the packets that were sent have a payload that was sent before.
    pub(super) fn resent(&self, sent_packets: u64) -> u64 {
        sent_packets.saturating_sub(self.packets)
    }
}

/// How a viewer stood at a time.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Time,
    allowed: u128,
    given_bytes: u64,
    sent_packets: u64,
}

impl Viewer {
    /// One that has just come.
    pub(super) fn new(address: SocketAddr, packet_size: Bytes, payload_len: usize) -> Viewer {
        Viewer {
            address,
            packet_size,
            payload_len: Bytes::new(payload_len as u64),
            pace: None,
            backoffs: 0,
            given: Given::default(),
            allowed: 0,
            marks: VecDeque::new(),
            shown: Amount::default(),
        }
    }

    /// How often congestion made its rate fall.
    pub(super) fn backoffs(&self) -> u64 {
        self.backoffs
    }

    /// It is given a payload for the first time.
    pub(super) fn note_given(&mut self, payload: &[u8]) {
        self.given.note(payload);
    }

    /// Its pace has changed, or could have.
    pub(super) fn on_pace(&mut self, now: Time, report: &PaceReport) {
        let is_backoff = matches!(report.cause, PaceCause::Loss | PaceCause::Timeout | PaceCause::Mark);
        self.backoffs += u64::from(is_backoff);
        self.allowed = self.allowed_by(now);
        self.pace = Some((now, *report));
    }

    fn allowed_by(&self, now: Time) -> u128 {
        let since = self.pace.map_or(0, |(at, report)| u128::from(report.rate.bps()) * now.since(at).as_nanos());
        self.allowed + since
    }

    /// How it stands, and notes that; `interval` is since it was asked for last.
    fn progress(&mut self, now: Time, interval: Duration, sent: Amount, waiting: u64, dropped: u64) -> ViewerProgress {
        let rate = (sent.bytes - self.shown.bytes).per(interval);
        self.shown = sent;
        self.mark(now, sent.packets);
        let pace = self.pace.map(|(_, report)| report);
        ViewerProgress {
            viewer: self.address.to_string(),
            sent_bytes: sent.bytes.count(),
            sent_packets: sent.packets,
            resent_packets: self.given.resent(sent.packets),
            rate_bps: rate.bps(),
            allowed_bps: pace.map(|pace| pace.rate.bps()),
            target_bps: self.target().map(Rate::bps),
            round_trip_ms: pace.map(|pace| pace.smoothed_round_trip.as_secs_f64() * 1e3),
            backoffs: self.backoffs,
            waiting,
            dropped,
            layers: None,
        }
    }

    fn mark(&mut self, now: Time, sent_packets: u64) {
        if self.pace.is_none() {
            return;
        }
        let mark = Mark { at: now, allowed: self.allowed_by(now), given_bytes: self.given.bytes, sent_packets };
        self.marks.push_back(mark);
        while self.marks.len() > 2 && now.since(self.marks[1].at) >= SPAN {
            self.marks.pop_front();
        }
    }

    /// The rate at which an encoder should make the stream: the mean of what congestion control allowed over the last five seconds, and at most
    /// twice what was used of it, as the rest was not tried. Of that the part counts that was content and went for the first time; headers and what was sent
    /// again are the rest.
    fn target(&self) -> Option<Rate> {
        let (first, last) = (self.marks.front()?, self.marks.back()?);
        let (_, report) = self.pace?;
        let span = last.at.since(first.at).as_nanos();
        let sent = u128::from(last.sent_packets - first.sent_packets) * u128::from(self.packet_size.count());
        let allowed = match span {
            0 => u128::from(report.rate.bps()),
            _ if sent == 0 => (last.allowed - first.allowed) / span,
            _ => ((last.allowed - first.allowed) / span).min(2 * sent * 8 * NANOSECONDS / span),
        };
        let given = u128::from(last.given_bytes - first.given_bytes);
        let (full, packet) = (u128::from(self.payload_len.count()), u128::from(self.packet_size.count().max(1)));
        // What was given and is still to go does not make packets larger than they are.
        let most = allowed * full / packet;
        let target = (allowed * given).checked_div(sent).map_or(most, |target| target.min(most));
        Some(Rate::from_bps(u64::try_from(target).unwrap_or(u64::MAX)))
    }
}

/// How it stands with each viewer; `interval` is since this was asked for last.
pub(super) fn progress(
    viewers: &mut Viewers,
    now: Time,
    interval: Duration,
    statistics: &Statistics,
    content: &impl Content,
) -> Vec<ViewerProgress> {
    let of = |(peer, viewer): (&PeerId, &mut Viewer)| {
        let sent = statistics.sent_to.get(peer).copied().unwrap_or_default();
        let progress = viewer.progress(now, interval, sent, content.waiting(*peer), content.dropped_of(*peer));
        ViewerProgress { layers: content.layers_of(now, *peer), ..progress }
    };
    viewers.iter_mut().map(of).collect()
}

const NANOSECONDS: u128 = 1_000_000_000;
/// Over how long the target is averaged.
const SPAN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn viewer() -> Viewer {
        Viewer::new(([192, 0, 2, 1], 9).into(), Bytes::new(1_000), 900)
    }

    fn pace(kbps: u64, cause: PaceCause) -> PaceReport {
        let smoothed_round_trip = Duration::from_millis(20);
        PaceReport { rate: Rate::from_kbps(kbps), smoothed_round_trip, outstanding_packets: 0, cause }
    }

    /// The target after so many quarters of a second, in each of which `sent` packets go, of them `given` for the first time with `len` bytes,
    /// and which begins with this rate.
    fn target(quarters: u64, rates: impl Fn(u64) -> u64, [sent, given, len]: [u64; 3]) -> Option<u64> {
        let mut viewer = viewer();
        let quarter = Duration::from_millis(250);
        let mut last = None;
        for number in 0..quarters {
            let now = Time::from_millis(number * 250);
            viewer.on_pace(now, &pace(rates(number), PaceCause::Step));
            (0..given).for_each(|_| viewer.note_given(&vec![0; len as usize]));
            let amount = Amount { packets: (number + 1) * sent, bytes: Bytes::new((number + 1) * sent * 1_000) };
            last = viewer.progress(now, quarter, amount, 0, 0).target_bps;
        }
        last
    }

    #[test]
    fn an_encoder_aims_at_what_is_allowed_less_headers() {
        assert_eq!(target(40, |_| 1_000, [30, 30, 900]), Some(900_000));
        assert_eq!(target(40, |_| 1_000, [0, 0, 0]), Some(900_000), "nothing was sent");
    }

    #[test]
    fn less_what_goes_again_and_what_short_payloads_waste() {
        assert_eq!(target(40, |_| 1_000, [30, 27, 900]), Some(810_000), "a tenth went again");
        assert_eq!(target(40, |_| 1_000, [30, 30, 450]), Some(450_000), "packets half full");
    }

    #[test]
    fn what_is_allowed_and_was_not_tried_counts_up_to_what_was_used() {
        // 960 kbit/s are sent.
        assert_eq!(target(40, |_| 20_000, [30, 30, 900]), Some(2 * 960_000 * 9 / 10));
    }

    #[test]
    fn the_target_is_a_mean_over_five_seconds() {
        let saw = |number: u64| if number.is_multiple_of(2) { 1_000 } else { 500 };
        assert_eq!(target(41, saw, [30, 30, 900]), Some(675_000));
        let fall = |number: u64| if number < 40 { 1_000 } else { 500 };
        assert_eq!(target(40 + 21, fall, [30, 30, 900]), Some(450_000), "five seconds after it fell");
        assert!(target(40 + 11, fall, [30, 30, 900]).is_some_and(|target| (600_000..750_000).contains(&target)));
    }

    #[test]
    fn before_the_first_answer_nothing_is_known() {
        let progress = viewer().progress(Time::ZERO, Duration::from_secs(1), Amount::default(), 3, 1);
        assert_eq!((progress.allowed_bps, progress.target_bps, progress.round_trip_ms), (None, None, None));
        assert_eq!((progress.waiting, progress.dropped), (3, 1));
    }

    #[test]
    fn backoffs_are_counted_and_steps_are_not() {
        let mut viewer = viewer();
        for cause in [PaceCause::Step, PaceCause::Loss, PaceCause::Mark, PaceCause::Timeout, PaceCause::Start] {
            viewer.on_pace(Time::ZERO, &pace(1_000, cause));
        }
        assert_eq!(viewer.backoffs, 3);
    }
}

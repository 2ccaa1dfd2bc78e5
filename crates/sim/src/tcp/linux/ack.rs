//! What an acknowledgement does (`tcp_ack()`).

use std::time::Duration;

use weir_units::Time;

use super::control::Control;
use super::rate::Sample;
use super::{Linux, Phase};
use crate::tcp::{Kind, Segment};

/// Round trips of the segments that an acknowledgement delivers and that were sent once.
#[derive(Debug, Clone, Copy, Default)]
struct Trips {
    /// Of the first and the last that it acknowledges cumulatively.
    cumulative: Option<(Duration, Duration)>,
    selective: Option<(Duration, Duration)>,
    /// A segment that was sent again is among those acknowledged cumulatively.
    is_ambiguous: bool,
}

impl Linux {
    #[inline]
    pub(in crate::tcp) fn receive(&mut self, now: Time, segment: &Segment, out: &mut impl FnMut(Segment)) {
        if segment.kind != Kind::Ack || segment.seq > self.board.next || segment.seq < self.board.una {
            return;
        }
        self.counters.acks += 1;
        let mut sample = Sample { prior_in_flight: self.board.in_flight(), ..Sample::default() };
        let lost = self.board.lost;
        let advances = segment.seq > self.board.una;
        let marked = segment.ecn_echo && self.config.ecn;
        let trips = self.read(now, segment, &mut sample);
        self.measure(now, &trips, &mut sample);
        if self.probe.is_some() {
            self.read_probe(segment.seq, !advances && sample.acked == 0);
        }
        let is_ordinary = advances && self.phase == Phase::Open && !marked && !self.board.has_holes();
        let timer = self.timer;
        if !is_ordinary {
            self.alert(now, marked);
        }
        let has_alarm = self.timer != timer;
        if advances && !has_alarm && !self.schedule_probe(now, true) {
            self.timer = None;
            self.rearm(now);
        }
        self.board.tidy();
        sample.losses = self.board.lost - lost;
        self.rate.finish(now, &mut sample, self.rtt.min_rtt());
        self.adjust(now, &sample, advances);
        self.repair(now, out);
        self.push(now, out);
    }

    /// Takes the news in, selective first.
    fn read(&mut self, now: Time, segment: &Segment, sample: &mut Sample) -> Trips {
        let mut trips = Trips::default();
        let min_rtt = self.rtt.min_rtt();
        self.board.begin();
        let rate = &mut self.rate;
        if segment.has_sack() {
            for (start, end) in segment.sack_blocks() {
                self.board.sack(now, start, end, min_rtt, |seq, record| {
                    rate.delivered(sample, seq, record);
                    if !record.was_repaired() {
                        extend(&mut trips.selective, now.since(record.sent));
                    }
                });
            }
        }
        if segment.seq > self.board.una {
            self.board.acknowledge(now, segment.seq, min_rtt, |seq, record| {
                rate.delivered(sample, seq, record);
                if record.was_repaired() {
                    trips.is_ambiguous = true;
                } else {
                    extend(&mut trips.cumulative, now.since(record.sent));
                }
            });
        }
        trips
    }

    /// The smoothed round trip is of the first segment acknowledged, the least one and the control's of the last.
    fn measure(&mut self, now: Time, trips: &Trips, sample: &mut Sample) {
        let cumulative = trips.cumulative.filter(|_| !trips.is_ambiguous);
        let smoothed = cumulative.or(trips.selective).map(|(first, _)| first);
        sample.rtt = trips.selective.or(cumulative).map(|(_, last)| last);
        let Some(smoothed) = smoothed else { return };
        if let Some(rtt) = sample.rtt {
            self.rtt.sample_min(now, rtt);
            if let Control::Cubic(cubic) = &mut self.control {
                cubic.measured(now, rtt, &mut self.window, self.board.una, self.board.next);
            }
        }
        self.rtt.sample(smoothed, self.board.una, self.board.next);
    }

    /// The window moves (`tcp_cong_control()`).
    fn adjust(&mut self, now: Time, sample: &Sample, advances: bool) {
        let view = self.view(now);
        if let Control::Bbr(bbr) = &mut self.control {
            let mut cwnd = self.window.cwnd;
            bbr.update(&view, sample, &mut self.rate.app_limited, &mut cwnd);
            let cwnd = bbr.window(&view, sample, cwnd);
            self.window.set(cwnd);
            return;
        }
        if self.is_reducing() {
            self.reduce(sample.acked, sample.losses, advances);
        } else if advances && self.is_window_limited() {
            match &mut self.control {
                Control::Cubic(cubic) => cubic.grow(now, sample.acked, &mut self.window),
                _ => {
                    let left = self.window.slow_start(sample.acked);
                    if left > 0 {
                        self.window.grow_by(self.window.cwnd, left);
                    }
                }
            }
        }
        self.set_rate();
    }

    /// The rate that sizes batches and paces: twice the window a round trip in slow start, then a fifth more than the window.
    fn set_rate(&mut self) {
        if self.rtt.has_sample() {
            let ratio = if self.window.cwnd < self.window.ssthresh / 2 { 2.0 } else { 1.2 };
            let window = self.window.cwnd.max(self.board.outstanding()) as f64;
            self.window.rate = ratio * window / (self.rtt.srtt().as_nanos() as f64 / 1e9);
        }
    }
}

fn extend(trips: &mut Option<(Duration, Duration)>, rtt: Duration) {
    *trips = Some((trips.map_or(rtt, |(first, _)| first), rtt));
}

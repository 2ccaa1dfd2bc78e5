//! A congestion window: of new data at a node (§3.6, 3.7), and of repairs to one child (§3.8). It grows and answers as TCP Vegas
//! or by losses, as the setting `control` says.

use weir_units::{Seq, Time};

use crate::model::cubic::Cubic;

use super::config::{Config, Control, NackRule};

/// A window, in packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    size: f64,
    threshold: f64,
    least: f64,
    /// Congestion of packets below this number has been reacted to.
    reacted: Seq,
    /// The backlog of packets below this number has been reacted to.
    shrunk: Seq,
    cubic: Cubic,
}

/// A packet is acknowledged by all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledged {
    pub(super) now: Time,
    pub(super) number: Seq,
    /// The number that is next to be sent.
    pub(super) next: Seq,
    /// Packets of the flow that wait in queues.
    pub(super) backlog: f64,
    /// Seconds.
    pub(super) round_trip: f64,
}

impl Window {
    /// A window that begins at its `least`, in packets.
    pub(super) fn new(config: &Config, packet_size: u64, least: f64) -> Window {
        let threshold = config.threshold as f64 / packet_size.max(1) as f64;
        Window {
            size: least,
            threshold: threshold.max(least),
            least,
            reacted: Seq::new(0),
            shrunk: Seq::new(0),
            cubic: Cubic::default(),
        }
    }

    /// Packets.
    pub(super) fn size(&self) -> f64 {
        self.size
    }

    pub(super) fn is_in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// The window grows, or falls because of the backlog.
    pub(super) fn on_acknowledged(&mut self, config: &Config, acked: &Acknowledged) {
        if self.is_in_slow_start() {
            if acked.backlog > config.gamma {
                self.threshold = self.size;
            } else {
                self.size += 1.0;
            }
            return;
        }
        match config.control {
            Control::Vegas => self.follow_backlog(config, acked),
            // In recovery the window stays (RFC 6675 §5).
            _ if acked.number < self.reacted => {}
            Control::Reno => self.size += 1.0 / self.size,
            Control::Cubic => self.size = self.cubic.grown(acked.now, self.size, acked.round_trip, 1.0),
        }
        if config.control != Control::Vegas {
            // More can never be in transit.
            self.size = self.size.min(config.buffer as f64);
        }
    }

    /// §3.7.
    fn follow_backlog(&mut self, config: &Config, acked: &Acknowledged) {
        if acked.backlog < config.alpha {
            self.size += 1.0 / self.size;
        } else if acked.backlog > config.beta && acked.number >= self.shrunk {
            self.size = (self.size - self.size / 8.0).max(self.least);
            self.threshold = self.threshold.min(self.size);
            self.shrunk = acked.next;
        }
    }

    /// `used` packets are in transit: what is far above is not what the path was seen to carry (RFC 7661), and no congestion
    /// has to wear it down.
    pub(super) fn limit_to(&mut self, used: f64) {
        self.size = self.size.min((2.0 * used).max(self.least));
    }

    /// Packet `number` is overdue: slow start begins again, once for all that was on its way. Whether this is news.
    pub(super) fn on_timeout(&mut self, config: &Config, number: Seq, next: Seq) -> bool {
        let is_news = self.is_news(number, next);
        if is_news {
            self.threshold = self.reduced(config);
            self.size = self.least;
        }
        is_news
    }

    /// Packet `number` is missing in a way that tells of congestion.
    pub(super) fn on_loss(&mut self, config: &Config, number: Seq, next: Seq) {
        if self.is_news(number, next) {
            self.threshold = self.reduced(config);
            if config.nacks != NackRule::SamePacket {
                self.size = self.threshold;
            }
        }
    }

    /// The threshold after congestion.
    fn reduced(&mut self, config: &Config) -> f64 {
        let reduced = match config.control {
            Control::Vegas | Control::Reno => self.size / 2.0,
            Control::Cubic => self.cubic.reduced(self.size),
        };
        reduced.max(self.least)
    }

    fn is_news(&mut self, number: Seq, next: Seq) -> bool {
        let is_news = number >= self.reacted;
        if is_news {
            self.reacted = next;
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Habitat;

    const CALM: f64 = 0.0;

    fn window() -> (Config, Window) {
        let config = Config::refined(Habitat::Lab);
        (config, Window::new(&config, 1024, 2.0))
    }

    fn acked(number: Seq, next: Seq, backlog: f64) -> Acknowledged {
        Acknowledged { now: Time::ZERO, number, next, backlog, round_trip: 0.1 }
    }

    fn seq(number: u64) -> Seq {
        Seq::new(number)
    }

    #[test]
    fn slow_start_adds_a_packet_for_each_acknowledged_up_to_64_kbytes() {
        let (config, mut window) = window();
        (0..62).for_each(|n| window.on_acknowledged(&config, &acked(seq(n), seq(n + 1), CALM)));
        assert_eq!((window.size(), window.is_in_slow_start()), (64.0, false));
        window.on_acknowledged(&config, &acked(seq(62), seq(63), CALM));
        assert_eq!(window.size(), 64.0 + 1.0 / 64.0);
    }

    #[test]
    fn a_backlog_above_gamma_ends_slow_start_and_one_above_beta_takes_an_eighth_once_a_window() {
        let (config, mut window) = window();
        (0..14).for_each(|n| window.on_acknowledged(&config, &acked(seq(n), seq(20), CALM)));
        window.on_acknowledged(&config, &acked(seq(14), seq(20), config.gamma + 1.0));
        assert!(!window.is_in_slow_start());
        (15..20).for_each(|n| window.on_acknowledged(&config, &acked(seq(n), seq(30), config.beta + 1.0)));
        assert_eq!(window.size(), 14.0);
        (20..30).for_each(|n| window.on_acknowledged(&config, &acked(seq(n), seq(40), config.alpha + 0.1)));
        assert_eq!(window.size(), 14.0);
    }

    #[test]
    fn a_timeout_starts_again_with_half_the_window_as_threshold_once_for_all_that_was_on_its_way() {
        let (config, mut window) = window();
        (0..30).for_each(|n| window.on_acknowledged(&config, &acked(seq(n), seq(60), CALM)));
        assert!(window.on_timeout(&config, seq(30), seq(60)));
        assert!(!window.on_timeout(&config, seq(59), seq(61)));
        assert_eq!((window.size(), window.threshold), (2.0, 16.0));
        window.on_loss(&config, seq(60), seq(70));
        assert_eq!(window.size(), 2.0);
    }

    #[test]
    fn a_window_that_is_far_above_its_use_comes_down_to_twice_that() {
        let (config, mut window) = window();
        (0..30).for_each(|n| window.on_acknowledged(&config, &acked(seq(n), seq(60), CALM)));
        window.limit_to(20.0);
        assert_eq!(window.size(), 32.0);
        window.limit_to(5.0);
        assert_eq!(window.size(), 10.0);
    }

    /// A window of 64 packets under such a control, out of slow start.
    fn at_64(control: Control) -> (Config, Window) {
        let (config, mut window) = window();
        let config = Config { control, ..config.as_today() };
        (0..62).for_each(|n| window.on_acknowledged(&config, &acked(seq(n), seq(100), CALM)));
        assert_eq!((window.size(), window.is_in_slow_start()), (64.0, false));
        (config, window)
    }

    #[test]
    fn under_reno_a_loss_halves_the_window_once_and_nothing_sent_before_lets_it_grow() {
        let (config, mut window) = at_64(Control::Reno);
        window.on_loss(&config, seq(70), seq(100));
        window.on_loss(&config, seq(99), seq(110));
        (62..100).for_each(|n| window.on_acknowledged(&config, &acked(seq(n), seq(120), CALM)));
        assert_eq!(window.size(), 32.0);
        window.on_acknowledged(&config, &acked(seq(100), seq(120), CALM));
        assert_eq!(window.size(), 32.0 + 1.0 / 32.0);
        window.on_loss(&config, seq(100), seq(120));
        assert!((window.size() - 16.0).abs() < 0.1);
    }

    #[test]
    fn under_cubic_a_loss_leaves_seven_tenths_whatever_the_backlog() {
        let (config, mut window) = at_64(Control::Cubic);
        window.on_acknowledged(&config, &acked(seq(62), seq(100), 1000.0));
        assert!(window.size() >= 64.0);
        let before = window.size();
        window.on_loss(&config, seq(70), seq(100));
        assert_eq!(window.size(), 0.7 * before);
    }

    #[test]
    fn a_window_that_losses_control_is_never_above_the_buffer() {
        let (config, mut window) = at_64(Control::Cubic);
        let config = Config { buffer: 65, ..config };
        (100..1000).for_each(|n| window.on_acknowledged(&config, &acked(seq(n), seq(2000), CALM)));
        assert_eq!(window.size(), 65.0);
    }
}

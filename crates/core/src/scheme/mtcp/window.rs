//! A TCP Vegas window: of new data at a node (§3.6, 3.7), and of repairs to one child (§3.8).

use weir_units::Seq;

use super::config::Config;

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
}

impl Window {
    /// A window that begins at its `least`, in packets.
    pub(super) fn new(config: &Config, packet_size: u64, least: f64) -> Window {
        let threshold = config.threshold as f64 / packet_size.max(1) as f64;
        Window { size: least, threshold: threshold.max(least), least, reacted: Seq::new(0), shrunk: Seq::new(0) }
    }

    /// Packets.
    pub(super) fn size(&self) -> f64 {
        self.size
    }

    pub(super) fn is_in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Packet `number` is acknowledged by all; `backlog` packets of the flow wait in queues, and the next number is `next`.
    pub(super) fn on_acknowledged(&mut self, config: &Config, number: Seq, next: Seq, backlog: f64) {
        if self.is_in_slow_start() {
            if backlog > config.gamma {
                self.threshold = self.size;
            } else {
                self.size += 1.0;
            }
        } else if backlog < config.alpha {
            self.size += 1.0 / self.size;
        } else if backlog > config.beta && number >= self.shrunk {
            self.size = (self.size - self.size / 8.0).max(self.least);
            self.threshold = self.threshold.min(self.size);
            self.shrunk = next;
        }
    }

    /// `used` packets are in transit: what is far above is not what the path was seen to carry (RFC 7661), and no congestion
    /// has to wear it down.
    pub(super) fn limit_to(&mut self, used: f64) {
        self.size = self.size.min((2.0 * used).max(self.least));
    }

    /// Packet `number` is overdue: slow start begins again, once for all that was on its way. Whether this is news.
    pub(super) fn on_timeout(&mut self, number: Seq, next: Seq) -> bool {
        let is_news = self.is_news(number, next);
        if is_news {
            self.threshold = (self.size / 2.0).max(self.least);
            self.size = self.least;
        }
        is_news
    }

    /// Packet `number` is missing in a way that tells of congestion.
    pub(super) fn on_loss(&mut self, number: Seq, next: Seq, halves: bool) {
        if self.is_news(number, next) {
            self.threshold = (self.size / 2.0).max(self.least);
            if halves {
                self.size = self.threshold;
            }
        }
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

    fn seq(number: u64) -> Seq {
        Seq::new(number)
    }

    #[test]
    fn slow_start_adds_a_packet_for_each_acknowledged_up_to_64_kbytes() {
        let (config, mut window) = window();
        (0..62).for_each(|n| window.on_acknowledged(&config, seq(n), seq(n + 1), CALM));
        assert_eq!((window.size(), window.is_in_slow_start()), (64.0, false));
        window.on_acknowledged(&config, seq(62), seq(63), CALM);
        assert_eq!(window.size(), 64.0 + 1.0 / 64.0);
    }

    #[test]
    fn a_backlog_above_gamma_ends_slow_start_and_one_above_beta_takes_an_eighth_once_a_window() {
        let (config, mut window) = window();
        (0..14).for_each(|n| window.on_acknowledged(&config, seq(n), seq(20), CALM));
        window.on_acknowledged(&config, seq(14), seq(20), config.gamma + 1.0);
        assert!(!window.is_in_slow_start());
        (15..20).for_each(|n| window.on_acknowledged(&config, seq(n), seq(30), config.beta + 1.0));
        assert_eq!(window.size(), 14.0);
        (20..30).for_each(|n| window.on_acknowledged(&config, seq(n), seq(40), config.alpha + 0.1));
        assert_eq!(window.size(), 14.0);
    }

    #[test]
    fn a_timeout_starts_again_with_half_the_window_as_threshold_once_for_all_that_was_on_its_way() {
        let (config, mut window) = window();
        (0..30).for_each(|n| window.on_acknowledged(&config, seq(n), seq(60), CALM));
        assert!(window.on_timeout(seq(30), seq(60)));
        assert!(!window.on_timeout(seq(59), seq(61)));
        assert_eq!((window.size(), window.threshold), (2.0, 16.0));
        window.on_loss(seq(60), seq(70), true);
        assert_eq!(window.size(), 2.0);
    }

    #[test]
    fn a_window_that_is_far_above_its_use_comes_down_to_twice_that() {
        let (config, mut window) = window();
        (0..30).for_each(|n| window.on_acknowledged(&config, seq(n), seq(60), CALM));
        window.limit_to(20.0);
        assert_eq!(window.size(), 32.0);
        window.limit_to(5.0);
        assert_eq!(window.size(), 10.0);
    }
}

//! From estimates to target rates.

use core::time::Duration;

use alloc::vec::Vec;

use super::config::{BetaRule, Config, Model, RttMethod};
use super::schedule::packets_per_slot;
use crate::definition::Session;
use crate::estimate::{Ewma, LossIntervals};
use crate::model::{reno, vegas};

/// The throughput model with its adaptive part, β. Rates are in full packets per second.
#[derive(Debug)]
pub(super) struct Controller {
    model: Model,
    rtt_method: RttMethod,
    aggressiveness_secs: f64,
    initial_rtt_secs: f64,
    stable_window_only: bool,
    beta_rule: BetaRule,
    beta: Ewma,
    /// By level: what bounds β, packets.
    bounds: Vec<f64>,
}

impl Controller {
    pub(super) fn new(session: &Session, config: &Config) -> Controller {
        let slots = config.beta_span.unwrap_or(config.tau).as_secs_f64() / config.tau.as_secs_f64();
        let bounds: Vec<f64> =
            (0..=session.ladder.levels()).map(|level| slots * packets_per_slot(session, config, level)).collect();
        Controller {
            model: config.model,
            rtt_method: config.rtt_method,
            aggressiveness_secs: config.aggressiveness.as_secs_f64(),
            initial_rtt_secs: config.initial_rtt.as_secs_f64(),
            stable_window_only: config.stable_window_only,
            beta_rule: config.beta_rule,
            beta: match config.model {
                Model::AdaptiveVegas => Ewma::starting_at(config.beta_gain, bounds[1]),
                Model::FixedVegas | Model::Reno => Ewma::starting_at(0.0, config.fixed_beta_packets),
            },
            bounds,
        }
    }

    /// The Vegas threshold in packets; `None` for a model without one.
    pub(super) fn beta_packets(&self) -> Option<f64> {
        (self.model != Model::Reno).then(|| self.beta())
    }

    /// A slot ended: β moves towards what relation 6 asks for (AVMRC §3.1), within what is allowed while `sustained` is
    /// the highest level sustained.
    ///
    /// Without a loss so far relation 6 holds for any window, so that β moves towards its bound.
    pub(super) fn on_slot(&mut self, long_delay: Duration, losses: &LossIntervals, sustained: usize) {
        if self.model != Model::AdaptiveVegas {
            return;
        }
        let low = self.bounds[1];
        let high = match self.beta_rule {
            BetaRule::Literal => self.bounds[self.bounds.len() - 1],
            BetaRule::Sustained => self.bounds[sustained],
        };
        let delay = long_delay.as_secs_f64();
        let computed = losses.long_term_rate().map_or(high, |p| vegas::stable_beta_packets(p, self.rtt(delay), delay));
        self.beta.update(computed.clamp(low, high));
        self.beta.clamp(low, high);
    }

    /// The loss history has been seeded (decision 8): β is at least what relation 6 asks for with it at this queuing
    /// delay, at which the seed is the one of the rate kept.
    pub(super) fn seed_beta(&mut self, delay: Duration, losses: &LossIntervals, sustained: usize) {
        if let (Model::AdaptiveVegas, Some(p)) = (self.model, losses.long_term_rate()) {
            let delay = delay.as_secs_f64();
            let bound = self.bounds[sustained];
            let computed = vegas::stable_beta_packets(p, self.rtt(delay), delay).min(bound);
            self.beta.clamp(computed.max(self.beta()), f64::INFINITY);
        }
    }

    /// Short-term and long-term target rates for these queuing delays and losses.
    pub(super) fn targets(&self, delays: [Duration; 2], losses: &LossIntervals) -> [f64; 2] {
        let rates = [losses.short_term_rate(), losses.long_term_rate()];
        [0, 1].map(|term| self.target(delays[term].as_secs_f64(), rates[term]))
    }

    fn target(&self, delay_secs: f64, loss_event_rate: Option<f64>) -> f64 {
        let rtt = self.rtt(delay_secs);
        match (self.model, loss_event_rate) {
            (Model::Reno, p) => reno::packets_per_sec(p.unwrap_or(0.0), rtt, 4.0 * rtt),
            (_, None) => vegas::packets_per_sec_without_loss(self.beta(), delay_secs),
            (_, Some(p)) => {
                let window = vegas::window_packets(self.beta(), rtt, delay_secs);
                let window = if self.stable_window_only { window.min(vegas::stable_window_packets(p)) } else { window };
                vegas::packets_per_sec_with_loss(p, window, rtt, 4.0 * rtt)
            }
        }
    }

    /// The loss interval in packets at which the model's target is `packets_per_sec` (RMRC's seed, AVMRC §4.1; for the
    /// Vegas models decision 8).
    pub(super) fn implied_loss_interval(&self, packets_per_sec: f64, delay: Duration) -> f64 {
        let rtt = self.rtt(delay.as_secs_f64());
        1.0 / match self.model {
            Model::Reno => reno::loss_event_rate(packets_per_sec, rtt, 4.0 * rtt),
            Model::AdaptiveVegas | Model::FixedVegas => vegas::stable_loss_event_rate(packets_per_sec, rtt, 4.0 * rtt),
        }
    }

    /// What stands for the round-trip time (§3.2, §6.2), in seconds.
    fn rtt(&self, delay_secs: f64) -> f64 {
        match self.rtt_method {
            RttMethod::FixedPlusQueuing => self.aggressiveness_secs + delay_secs,
            RttMethod::Fixed => self.aggressiveness_secs,
            RttMethod::Measured => self.initial_rtt_secs + delay_secs,
        }
    }

    fn beta(&self) -> f64 {
        self.beta.average().expect("β has a value from the start")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Habitat;
    use crate::layers::Ladder;
    use weir_units::{Bytes, Rate};
    use weir_wire::CciForm;

    fn controller(config: Config) -> Controller {
        let session = Session {
            ladder: Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(6561), 1.5).expect("valid"),
            packet_size: Bytes::new(1000),
            form: CciForm::Short,
            habitat: Habitat::Lab,
        };
        Controller::new(&session, &config)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A history of one interval of `packets`, and as many since.
    fn losses(packets: u32) -> LossIntervals {
        let mut losses = LossIntervals::new();
        (0..packets).for_each(|_| losses.on_received());
        losses.on_loss_event();
        (0..packets).for_each(|_| losses.on_received());
        losses
    }

    #[test]
    fn without_loss_beta_moves_a_twentieth_of_the_way_to_its_bound_each_slot() {
        for (beta_rule, bound) in [(BetaRule::Literal, 88.0), (BetaRule::Sustained, 41.0)] {
            let mut controller = controller(Config { beta_rule, ..Config::default() });
            assert_eq!(controller.beta_packets(), Some(4.0));
            controller.on_slot(ms(50), &LossIntervals::new(), 7);
            assert_eq!(controller.beta_packets(), Some(4.0 + 0.05 * (bound - 4.0)));
        }
    }

    #[test]
    fn with_loss_beta_moves_to_what_relation_6_asks_for_and_stays_above_its_minimum() {
        // p = 0.01: W = 24; δ = 100 ms, RTT = 200 ms: β = 12.
        let mut controller = controller(Config::default());
        (0..400).for_each(|_| controller.on_slot(ms(100), &losses(100), 9));
        assert!((controller.beta() - 12.0).abs() < 1e-6, "{}", controller.beta());
        (0..400).for_each(|_| controller.on_slot(ms(1), &losses(100), 9));
        assert!((controller.beta() - 4.0).abs() < 1e-6, "{}", controller.beta());
    }

    #[test]
    fn beta_is_seeded_with_the_history_so_that_the_model_gives_the_rate_kept() {
        let mut controller = controller(Config { stable_window_only: true, ..Config::default() });
        let mut losses = LossIntervals::new();
        losses.seed(controller.implied_loss_interval(364.5, ms(100)));
        let long = |controller: &Controller| controller.targets([ms(100), ms(100)], &losses)[1];
        assert!(long(&controller) < 100.0, "β is still near where it began: {}", long(&controller));
        controller.seed_beta(ms(100), &losses, 9);
        assert!((long(&controller) / 364.5 - 1.0).abs() < 1e-6, "{}", long(&controller));
        let seeded = controller.beta();
        controller.seed_beta(ms(1), &losses, 9);
        assert_eq!(controller.beta(), seeded, "a seed never lowers β");
    }

    #[test]
    fn the_seed_of_beta_keeps_to_the_bound_of_the_sustained_level() {
        let mut controller = controller(Config { beta_rule: BetaRule::Sustained, ..Config::default() });
        controller.seed_beta(ms(100), &losses(100_000), 3);
        assert_eq!(controller.beta(), 9.0);
    }

    #[test]
    fn beta_falls_at_once_with_the_sustained_level() {
        let mut controller = controller(Config { beta_rule: BetaRule::Sustained, ..Config::default() });
        (0..400).for_each(|_| controller.on_slot(ms(50), &LossIntervals::new(), 7));
        controller.on_slot(ms(50), &LossIntervals::new(), 3);
        assert_eq!(controller.beta(), 9.0);
    }

    #[test]
    fn targets_follow_equation_2_until_the_first_loss_and_equation_3_after() {
        let controller = controller(Config { model: Model::FixedVegas, fixed_beta_packets: 10.0, ..Config::default() });
        assert_eq!(controller.targets([ms(50), ms(100)], &LossIntervals::new()), [200.0, 100.0]);
        // δ = 100 ms: RTT = 200 ms, W = 20, TO = 800 ms, which is the example of Eq. 3 at twice its times.
        let [_, long] = controller.targets([ms(50), ms(100)], &losses(100));
        assert!((long - 161.461_546_401_578 / 2.0).abs() < 1e-9, "{long}");
    }

    #[test]
    fn an_empty_path_after_a_loss_is_believed_only_where_equation_3_holds() {
        let target = |stable_window_only| {
            let config = Config { model: Model::FixedVegas, stable_window_only, ..Config::default() };
            controller(config).targets([ms(0), ms(0)], &losses(100_000))[1]
        };
        assert!(target(false) < 330.0, "as printed, Eq. 3 falls to 32/RTT: {}", target(false));
        assert!((target(true) / 5929.0 - 1.0).abs() < 0.01, "0.87 of 679 packets in 0.1 s: {}", target(true));
    }

    #[test]
    fn the_round_trip_time_is_what_the_method_says() {
        let config = Config { initial_rtt: ms(200), ..Config::default() };
        let rtt = |rtt_method| controller(Config { rtt_method, ..config }).rtt(0.05);
        assert!((rtt(RttMethod::FixedPlusQueuing) - 0.15).abs() < 1e-12);
        assert!((rtt(RttMethod::Fixed) - 0.1).abs() < 1e-12);
        assert!((rtt(RttMethod::Measured) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn the_implied_interval_gives_back_the_rate() {
        for model in [Model::Reno, Model::AdaptiveVegas] {
            let controller = controller(Config { model, stable_window_only: true, ..Config::default() });
            let interval = controller.implied_loss_interval(364.5, ms(0));
            let mut losses = LossIntervals::new();
            losses.seed(interval);
            let [_, long] = controller.targets([ms(0), ms(0)], &losses);
            assert!((long / 364.5 - 1.0).abs() < 1e-6, "{model:?}: {long}");
        }
    }
}

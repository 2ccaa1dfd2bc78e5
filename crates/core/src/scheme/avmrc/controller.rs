//! From estimates to target rates.

use core::time::Duration;

use alloc::vec::Vec;

use super::config::{BetaRule, Config, Model, RttMethod};
use super::schedule::packets_per_slot;
use crate::estimate::{Ewma, LossIntervals};
use crate::model::{reno, vegas};
use crate::registry::Session;

/// The throughput model with its adaptive part, β. Rates are in full packets per second.
#[derive(Debug)]
pub(super) struct Controller {
    model: Model,
    rtt_method: RttMethod,
    aggressiveness_secs: f64,
    stable_window_only: bool,
    beta_rule: BetaRule,
    beta: Ewma,
    /// By level: what bounds β.
    packets_per_slot: Vec<f64>,
}

impl Controller {
    pub(super) fn new(session: &Session, config: &Config) -> Controller {
        let packets_per_slot: Vec<f64> =
            (0..=session.ladder.levels()).map(|level| packets_per_slot(session, config, level)).collect();
        Controller {
            model: config.model,
            rtt_method: config.rtt_method,
            aggressiveness_secs: config.aggressiveness.as_secs_f64(),
            stable_window_only: config.stable_window_only,
            beta_rule: config.beta_rule,
            beta: match config.model {
                Model::AdaptiveVegas => Ewma::starting_at(config.beta_gain, packets_per_slot[1]),
                Model::FixedVegas | Model::Reno => Ewma::starting_at(0.0, config.fixed_beta_packets),
            },
            packets_per_slot,
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
        let low = self.packets_per_slot[1];
        let high = match self.beta_rule {
            BetaRule::Literal => self.packets_per_slot[self.packets_per_slot.len() - 1],
            BetaRule::Sustained => self.packets_per_slot[sustained],
        };
        let delay = long_delay.as_secs_f64();
        let computed = losses.long_term_rate().map_or(high, |p| vegas::stable_beta_packets(p, self.rtt(delay), delay));
        self.beta.update(computed.clamp(low, high));
        self.beta.clamp(low, high);
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
            RttMethod::Measured { initial } => initial.as_secs_f64() + delay_secs,
        }
    }

    fn beta(&self) -> f64 {
        self.beta.average().expect("β has a value from the start")
    }
}

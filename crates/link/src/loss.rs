//! Which packets are lost on the way. Not what the queue drops.

use alloc::vec::Vec;

use weir_units::Random;

/// A model of loss on the way, whatever the load.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Loss {
    /// Every packet gets through.
    #[default]
    None,
    /// Each packet is lost with this probability, 0 to 1, whatever became of the others.
    Random(f64),
    /// Losses in bursts.
    GilbertElliott(GilbertElliott),
    /// Exactly these are lost: the first packet that the link sends has number 1. In ascending order.
    Packets(Vec<u64>),
}

/// Loss in bursts (Gilbert 1960, Elliott 1963): the link is in a good or a bad state, and may change it after each packet.
///
/// It is bad for `enter_bad / (enter_bad + leave_bad)` of the packets, for `1 / leave_bad` of them in a row on average.
/// Example: 0.01, 0.25, 0, 1 loses 1 / 26 of the packets, 4 in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GilbertElliott {
    /// Probability that the state after a packet is bad, if it was good.
    pub enter_bad: f64,
    /// Probability that the state after a packet is good, if it was bad.
    pub leave_bad: f64,
    /// Probability that a packet is lost in the good state.
    pub loss_good: f64,
    /// Probability that a packet is lost in the bad state.
    pub loss_bad: f64,
}

/// A loss model at work.
#[derive(Debug, Clone)]
pub(crate) struct LossProcess {
    model: Loss,
    random: Random,
    /// Of the Gilbert–Elliott model.
    bad: bool,
    /// Packets that were asked about.
    asked: u64,
}

impl LossProcess {
    pub(crate) fn new(model: Loss, random: Random) -> LossProcess {
        LossProcess { model, random, bad: false, asked: 0 }
    }

    /// Whether the next packet is lost.
    pub(crate) fn strikes(&mut self) -> bool {
        self.asked += 1;
        match &self.model {
            Loss::None => false,
            Loss::Random(p) => self.random.chance(*p),
            Loss::GilbertElliott(model) => {
                let (loss, change) = match self.bad {
                    false => (model.loss_good, model.enter_bad),
                    true => (model.loss_bad, model.leave_bad),
                };
                let lost = self.random.chance(loss);
                self.bad ^= self.random.chance(change);
                lost
            }
            Loss::Packets(numbers) => numbers.binary_search(&self.asked).is_ok(),
        }
    }

    /// The last `packets` will be asked about again.
    pub(crate) fn take_back(&mut self, packets: usize) {
        self.asked -= packets as u64;
    }

    /// Goes on with another model, in its good state. Packets keep their numbers.
    pub(crate) fn change(&mut self, model: &Loss) {
        if self.model != *model {
            self.model = model.clone();
            self.bad = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(model: Loss, packets: usize) -> Vec<bool> {
        let mut process = LossProcess::new(model, Random::new(3, "loss"));
        (0..packets).map(|_| process.strikes()).collect()
    }

    #[test]
    fn listed_packets_are_lost_and_no_others() {
        let lost = fates(Loss::Packets([1, 4].into()), 6);
        assert_eq!(lost, [true, false, false, true, false, false]);
    }

    #[test]
    fn random_loss_strikes_at_its_rate() {
        let lost = fates(Loss::Random(0.1), 100_000).into_iter().filter(|lost| *lost).count();
        // Four standard deviations.
        assert!((9_620..=10_380).contains(&lost), "{lost}");
    }

    #[test]
    fn bursts_have_the_share_and_the_length_of_the_model() {
        let model = GilbertElliott { enter_bad: 0.01, leave_bad: 0.25, loss_good: 0.0, loss_bad: 1.0 };
        let fates = fates(Loss::GilbertElliott(model), 200_000);
        let lost = fates.iter().filter(|lost| **lost).count() as f64;
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // Nearly 2 000 bursts: the mean length is good to about 2 %.
        assert!((lost / 200_000.0 * 26.0 - 1.0).abs() < 0.1, "{lost}");
        assert!((lost / bursts / 4.0 - 1.0).abs() < 0.1, "{}", lost / bursts);
    }
}

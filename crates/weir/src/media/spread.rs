//! Layers over channels of which a receiver takes any: every channel carries all layers, each with the same share of its packets, and
//! repair makes any packets of a layer as good as any others.
//!
//! A receiver of rate R gets R times a layer's share of that layer, and needs the layer's own rate b of it. So a layer that is to come whole
//! from the rate R on has the share b / R, and all shares add up to 1 (priority encoding transmission: Albanese, Blömer, Edmonds, Luby,
//! Sudan, IEEE Trans. Inf. Theory 42(6), 1996). Here each number of layers comes whole from the same multiple of its own rate on.

use weir_units::Rate;

/// What each layer has of every channel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shares(Vec<f64>);

impl Shares {
    /// For layers of these cumulative rates, which rise from above zero.
    ///
    /// Example: 1, 2 and 4 Mbit/s are layers of 1, 1 and 2 Mbit/s. The multiple is 1/1 + 1/2 + 2/4 = 2, and the shares are a half, a
    /// quarter and a quarter.
    pub(super) fn of(cumulative: &[Rate]) -> Shares {
        let needs = needs(cumulative);
        let multiple: f64 = needs.iter().sum();
        Shares(needs.iter().map(|need| need / multiple).collect())
    }

    /// What a channel sends next, packet by packet.
    pub(super) fn turns(&self, channel: usize) -> Turns {
        let mut turns = Turns { shares: self.0.clone(), credits: vec![0.0; self.0.len()] };
        // Channels are not in step, so that a picture does not go over the same ones each time.
        (0..channel).for_each(|_| _ = turns.next());
        turns
    }
}

/// The rates that bring each number of layers whole to a receiver that climbs to them: multiples of what the layers need by themselves.
pub(super) fn least_rates(cumulative: &[Rate]) -> Vec<Rate> {
    let multiple: f64 = needs(cumulative).iter().sum();
    cumulative.iter().map(|rate| rate.scale(multiple / MEAN_OF_SAWTOOTH)).collect()
}

/// A rate that climbs evenly and is halved when it has reached its highest is three quarters of that on average.
const MEAN_OF_SAWTOOTH: f64 = 0.75;

/// By layer: its rate over that of it and all below.
fn needs(cumulative: &[Rate]) -> Vec<f64> {
    let below = [Rate::ZERO].into_iter().chain(cumulative.iter().copied());
    cumulative.iter().zip(below).map(|(rate, below)| 1.0 - below.bps() as f64 / rate.bps().max(1) as f64).collect()
}

/// The layers in turn, each as often as its share says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turns {
    shares: Vec<f64>,
    /// By layer: the packets that it is behind its share.
    credits: Vec<f64>,
}

impl Turns {
    /// The layer whose turn it is.
    pub(super) fn next(&mut self) -> usize {
        self.credits.iter_mut().zip(&self.shares).for_each(|(credit, share)| *credit += share);
        // Of several, the lowest.
        let most = self.credits.iter().copied().fold(f64::MIN, f64::max);
        let layer = self.credits.iter().position(|credit| *credit == most).unwrap_or(0);
        self.credits[layer] -= 1.0;
        layer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(mbps: [u64; 3]) -> Vec<Rate> {
        mbps.map(Rate::from_mbps).to_vec()
    }

    #[test]
    fn each_number_of_layers_comes_whole_from_the_same_multiple_of_its_rate_on() {
        let cumulative = rates([3, 6, 12]);
        // Twice the rates on average, as shares say below.
        assert_eq!(least_rates(&cumulative), rates([8, 16, 32]));
        let Shares(shares) = Shares::of(&cumulative);
        assert_eq!(shares, [0.5, 0.25, 0.25]);
        // A receiver that averages three quarters of a layer's least rate receives that layer at its own rate.
        for ((least, share), own) in least_rates(&cumulative).iter().zip(&shares).zip([3.0, 3.0, 6.0]) {
            assert!((least.bps() as f64 * 0.75 * share - own * 1e6).abs() < 1.0);
        }
    }

    #[test]
    fn every_channel_gives_each_layer_its_share_in_any_stretch() {
        let shares = Shares::of(&rates([3, 4, 9]));
        let Shares(wanted) = &shares;
        for channel in 0..5 {
            let mut turns = shares.turns(channel);
            let layers: Vec<usize> = (0..1_000).map(|_| turns.next()).collect();
            for stretch in layers.chunks(50) {
                for (layer, share) in wanted.iter().enumerate() {
                    let packets = stretch.iter().filter(|one| **one == layer).count() as f64;
                    assert!((packets - share * 50.0).abs() < 2.0, "layer {layer}: {packets}");
                }
            }
        }
        assert_ne!(shares.turns(0).credits, shares.turns(1).credits);
    }

    #[test]
    fn one_layer_has_all() {
        assert_eq!(least_rates(&[Rate::from_mbps(3)]), [Rate::from_mbps(4)]);
        assert_eq!(Shares::of(&[Rate::from_mbps(1)]).turns(3).next(), 0);
    }
}

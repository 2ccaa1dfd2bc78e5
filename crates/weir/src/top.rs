//! The highest rate that a session offers where the user says none: it follows the interface that the session is sent on.

use weir_core::registry::{ConfigError, OfferedRates};
use weir_units::Rate;

/// What is offered on an interface of this speed: the highest rate at which all channels together, as `sent` adds them up, take nine
/// tenths of it. The tenth is for the headers below IP, 3 % in Ethernet, and for what else the host sends.
///
/// The channels of most schemes add up to the highest rate. STAIR's and FGLM's come to more, so that their highest rate is lower.
pub(crate) fn within(
    speed: Rate,
    offered: OfferedRates,
    sent: impl Fn(OfferedRates) -> Result<Rate, ConfigError>,
) -> Result<OfferedRates, ConfigError> {
    let budget = Rate::from_bps(speed.bps() / 10 * 9);
    let least = least(offered.low, offered.ratio);
    let mut high = budget.min(HIGHEST).max(least);
    while high > least && sent(OfferedRates { high, ..offered })? > budget {
        high = high.scale(STEP).max(least);
    }
    Ok(OfferedRates { high, ..offered })
}

/// The least highest rate that makes sense: the second one. With fewer a receiver has nothing to choose.
pub(crate) fn least(low: Rate, ratio: f64) -> Rate {
    low.scale(ratio)
}

/// Sessions above it need more than a link: larger buffers, faster disks, hosts that do little else.
pub(crate) const HIGHEST: Rate = Rate::from_mbps(1000);
/// How the highest rate is lowered until the channels fit.
const STEP: f64 = 0.99;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::layers::Ladder;
    use weir_core::registry::{Habitat, SCHEMES, Scheme, Session};
    use weir_units::Bytes;
    use weir_wire::CciForm;

    /// What all channels of a scheme send together.
    fn sent(scheme: &Scheme, OfferedRates { low, high, ratio }: OfferedRates) -> Result<Rate, ConfigError> {
        let ladder = Ladder::geometric(low, high, ratio)?;
        let session =
            Session { ladder, packet_size: Bytes::new(1456), form: CciForm::Clocked, habitat: Habitat::Sockets };
        Ok(Rate::from_bps(scheme.channels(&session, &[])?.iter().map(|rate| rate.bps()).sum()))
    }

    fn on(scheme: &Scheme, mbps: u64) -> OfferedRates {
        let offered = scheme.rates().expect("it is layered");
        within(Rate::from_mbps(mbps), offered, |rates| sent(scheme, rates)).expect("a usable ladder")
    }

    fn layered() -> impl Iterator<Item = &'static Scheme> {
        SCHEMES.iter().copied().filter(|scheme| scheme.is_layered())
    }

    #[test]
    fn cumulative_layers_take_nine_tenths_of_the_interface_and_a_gigabit_at_most() {
        let table = [(10, 9), (100, 90), (1000, 900), (2500, 1000), (10_000, 1000), (400_000, 1000)];
        for scheme in layered().filter(|scheme| !["stair", "fglm"].contains(&scheme.name)) {
            let offered = scheme.rates().expect("it is layered");
            for (mbps, high) in table {
                let expected = OfferedRates { high: Rate::from_mbps(high), ..offered };
                assert_eq!(on(scheme, mbps), expected, "{} at {mbps} Mbit/s", scheme.name);
            }
        }
    }

    #[test]
    fn all_channels_together_take_nine_tenths_and_one_more_step_would_be_too_much() {
        for scheme in layered() {
            for mbps in [10, 25, 54, 100, 300, 866, 1000, 1300] {
                let (budget, rates) = (Rate::from_mbps(mbps).scale(0.9), on(scheme, mbps));
                let sum = |high| sent(scheme, OfferedRates { high, ..rates }).expect("a usable ladder");
                let is_highest = rates.high == HIGHEST || sum(rates.high.scale(1.0 / STEP)) > budget;
                let what = format!("{} at {mbps} Mbit/s: {rates:?}, {} together", scheme.name, sum(rates.high));
                assert!(sum(rates.high) <= budget && is_highest, "{what}");
            }
        }
    }

    #[test]
    fn a_faster_interface_never_has_a_lower_top_of_a_cumulative_scheme_and_none_is_below_the_second_rate() {
        for scheme in layered() {
            let offered = scheme.rates().expect("it is layered");
            let tops: Vec<Rate> = (0..12_000).step_by(7).map(|mbps| on(scheme, mbps).high).collect();
            assert!(tops[0] == least(offered.low, offered.ratio) && tops.iter().all(|top| *top >= tops[0]));
            assert_eq!(tops.last(), Some(&HIGHEST), "{}", scheme.name);
            let is_cumulative = !["stair", "fglm"].contains(&scheme.name);
            assert!(!is_cumulative || tops.is_sorted(), "{}", scheme.name);
        }
    }

    #[test]
    fn what_cannot_be_a_ladder_is_said() {
        let offered = OfferedRates { low: Rate::from_kbps(256), high: Rate::from_mbps(100), ratio: 1.01 };
        let sluice = layered().find(|scheme| scheme.name == "sluice").expect("in the registry");
        assert!(within(Rate::from_mbps(1000), offered, |rates| sent(sluice, rates)).is_err());
    }
}

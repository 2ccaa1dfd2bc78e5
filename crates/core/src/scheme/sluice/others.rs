//! Receivers of the session behind the same bottleneck: whether some have more than this one, and up to which level.
//!
//! A bottleneck carries the channels of the highest receiver behind it. So a burst without a limit shows every receiver behind it what it
//! shows to the highest one, and a burst with a limit below that one's level shows nothing at all. What others have can be joined: it
//! costs the bottleneck nothing.

use core::time::Duration;

use super::burst::Verdict;

/// What bursts told of others.
#[derive(Debug)]
pub(super) struct Others {
    evidence: Evidence,
    /// A level that they have.
    level: Option<usize>,
    /// How many levels to join at once on the way there.
    stride: usize,
}

/// Since a burst without a limit fitted last.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    /// Bursts without a limit, and of the last ones how many in a row were clearly too much.
    misfits: u32,
    too_much: u32,
    /// Bursts with a limit that fitted, the highest limit of these, and the lowest one of those that did not fit. What others have lies
    /// between.
    limited_fits: u32,
    highest_fit: usize,
    lowest_misfit: Option<usize>,
}

impl Default for Others {
    fn default() -> Others {
        Others { evidence: Evidence::default(), level: None, stride: 1 }
    }
}

impl Others {
    /// A burst that stands for the next level is over. `fits` is whether that level would fit.
    pub(super) fn on_burst(&mut self, verdict: &Verdict, fits: bool, packet_time: Duration) {
        let is_too_much = verdict.is_too_much(packet_time);
        match verdict.limit {
            None if verdict.fits(packet_time) => *self = Others::default(),
            None => self.evidence.on_misfit(is_too_much),
            Some(limit) => {
                self.evidence.on_limited(limit, fits);
                if fits && self.evidence.suffices() {
                    self.level = self.level.max(Some(limit + 1));
                } else if is_too_much && self.level > Some(limit) {
                    self.forget();
                }
            }
        }
    }

    /// They do not have it after all.
    pub(super) fn forget(&mut self) {
        (self.level, self.stride) = (None, 1);
    }

    /// Whether they are known to have more than `level`.
    pub(super) fn have_more_than(&self, level: usize) -> bool {
        self.level > Some(level)
    }

    /// The level to go to from `level`, towards what they have: first the next one, then twice as many each time.
    pub(super) fn stride_from(&mut self, level: usize) -> usize {
        let most = level + self.stride;
        self.stride *= 2;
        self.level.map_or(level, |others| others.min(most))
    }
}

impl Evidence {
    fn on_misfit(&mut self, is_too_much: bool) {
        self.misfits += 1;
        self.too_much = if is_too_much { self.too_much + 1 } else { 0 };
    }

    /// A burst with this limit fitted or not. If a higher one fits than one that did not, limits have nothing to do with it.
    fn on_limited(&mut self, limit: usize, fits: bool) {
        if fits {
            self.limited_fits += 1;
            self.highest_fit = self.highest_fit.max(limit);
        } else {
            self.lowest_misfit = Some(self.lowest_misfit.map_or(limit, |lowest| lowest.min(limit)));
        }
        if self.lowest_misfit.is_some_and(|lowest| lowest <= self.highest_fit) {
            (self.limited_fits, self.highest_fit, self.lowest_misfit) = (0, 0, None);
        }
    }

    /// Two bursts that are clearly too much and one that fits are no chance; of those that are too close to tell it takes more.
    const fn suffices(&self) -> bool {
        self.too_much >= CLEAR_MISFITS || self.misfits >= MISFITS && self.limited_fits >= LIMITED_FITS
    }
}

const CLEAR_MISFITS: u32 = 2;
/// Where each burst fits with probability p, none of six and both of two with a limit do in at most one of ninety cases.
const MISFITS: u32 = 6;
const LIMITED_FITS: u32 = 2;

#[cfg(test)]
mod tests {
    use weir_units::Rate;

    use super::super::cycle::Burst;
    use super::*;

    const PACKET_TIME: Duration = Duration::from_millis(3);

    /// A burst that makes the queue grow by `slope`, with a limit or without.
    fn burst(limit: Option<usize>, slope: f64) -> Verdict {
        let (rate, length) = (Rate::from_kbps(4_300), Duration::from_millis(100));
        Verdict {
            kind: Burst::NextLevel,
            limit,
            rate,
            length,
            slope,
            packets: 100.0,
            expected: 100.0,
            own_loss: 0.05,
            after: None,
        }
    }

    fn after(bursts: impl IntoIterator<Item = (Option<usize>, f64)>) -> Others {
        let mut others = Others::default();
        for (limit, slope) in bursts {
            let verdict = burst(limit, slope);
            others.on_burst(&verdict, verdict.fits(PACKET_TIME), PACKET_TIME);
        }
        others
    }

    const TOO_MUCH: f64 = 0.15;
    const CLOSE: f64 = 0.03;
    const FITS: f64 = 0.0;

    #[test]
    fn a_burst_with_a_limit_that_fits_between_others_that_are_too_much_tells_what_others_have() {
        let others = after([(None, TOO_MUCH), (Some(35), TOO_MUCH), (None, TOO_MUCH), (Some(29), FITS)]);
        assert!(others.have_more_than(29) && !others.have_more_than(30));
        let once = after([(None, TOO_MUCH), (Some(29), FITS)]);
        assert!(!once.have_more_than(1), "one burst may be too much by chance");
    }

    #[test]
    fn bursts_that_are_too_close_to_tell_need_more() {
        let of = |misfits: usize, limited_fits: usize| {
            let bursts = [(None, CLOSE)].repeat(misfits).into_iter();
            after(bursts.chain([(Some(29), FITS)].repeat(limited_fits))).have_more_than(29)
        };
        assert_eq!([of(5, 2), of(6, 1), of(6, 2)], [false, false, true]);
    }

    #[test]
    fn a_higher_limit_that_fits_than_one_that_does_not_says_nothing_of_others() {
        let close = [(None, CLOSE)].repeat(6).into_iter();
        let mut bursts: alloc::vec::Vec<_> =
            close.chain([25, 40, 41, 29].map(|x| (Some(x), if x == 40 { CLOSE } else { FITS }))).collect();
        assert!(!after(bursts.clone()).have_more_than(1), "29 is the first that counts");
        bursts.push((Some(30), FITS));
        assert!(after(bursts).have_more_than(30));
    }

    #[test]
    fn strides_double_up_to_what_others_have() {
        let mut others = after([(None, TOO_MUCH), (None, TOO_MUCH), (Some(29), FITS)]);
        let levels = [20, 21, 23, 27, 30].map(|level| others.stride_from(level));
        assert_eq!(levels, [21, 23, 27, 30, 30]);
    }

    #[test]
    fn a_burst_that_says_otherwise_makes_it_forget() {
        let known = [(None, TOO_MUCH), (None, TOO_MUCH), (Some(29), FITS)];
        let and = |burst| after(known.into_iter().chain([burst])).have_more_than(1);
        assert!(and((None, TOO_MUCH)) && and((Some(31), TOO_MUCH)));
        assert!(!and((None, FITS)), "there is room for the next level");
        assert!(!and((Some(25), TOO_MUCH)), "they have 25 at most");
    }
}

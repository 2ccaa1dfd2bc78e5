//! What holds for the parties of some schemes only.

use weir_core::layers::Hybrid;
use weir_core::registry::{Scheme, Setting};

use crate::party::{Party, Role};
use crate::setup::Setup;

/// Asserts after every event of a party.
pub(crate) type Check = Box<dyn Fn(&Party)>;

/// What is asserted of a few schemes besides the general rules.
struct Extra {
    schemes: &'static [&'static str],
    /// Settings that the check needs.
    settings: &'static [(&'static str, &'static str)],
    check: fn(&Setup) -> Check,
}

const EXTRAS: &[Extra] = &[
    Extra { schemes: &["avmrc", "rmrc", "vmrc", "sluice"], settings: &[], check: has_no_holes },
    Extra { schemes: &["stair", "fglm"], settings: &[], check: has_the_layers_of_its_rate },
    // 1000 packets a second.
    Extra { schemes: &["rap"], settings: &[("max_rate", "4M")], check: sends_what_is_offered_when_it_may },
];

/// The settings that the extra checks of a scheme need.
pub(crate) fn settings(scheme: &Scheme) -> Vec<Setting> {
    let settings = extras(scheme).flat_map(|extra| extra.settings);
    settings.map(|(key, value)| Setting { key: (*key).to_owned(), value: (*value).to_owned() }).collect()
}

/// The extra checks of a scheme.
pub(crate) fn check(setup: &Setup) -> Check {
    let checks: Vec<Check> = extras(setup.scheme).map(|extra| (extra.check)(setup)).collect();
    Box::new(move |party| checks.iter().for_each(|check| check(party)))
}

fn extras(scheme: &Scheme) -> impl Iterator<Item = &'static Extra> {
    EXTRAS.iter().filter(move |extra| extra.schemes.contains(&scheme.name))
}

/// A level of AVMRC's is all channels below it.
fn has_no_holes(_: &Setup) -> Check {
    Box::new(|party| {
        let members = &party.members;
        assert!(members.iter().copied().eq(0..members.len() as u16), "a hole in the subscription: {members:?}");
    })
}

/// What a receiver of STAIR or FGLM is a member of is what its rate and its stairs ask for.
fn has_the_layers_of_its_rate(setup: &Setup) -> Check {
    let ladder = &setup.session.ladder;
    let layers = match setup.scheme.name {
        "fglm" => Hybrid::non_cumulative(ladder),
        _ => Hybrid::from_ladder(ladder),
    };
    let fixed = layers.rates().len() as u16;
    Box::new(move |party| {
        if party.role != Role::Receiver {
            return;
        }
        let (now, next) = (layers.set(party.level as u64), layers.set(party.level as u64 + 1));
        for channel in 0..fixed {
            let is_member = party.members.contains(&channel);
            let wanted = now.contains(usize::from(channel));
            // Between two rates of which the second is being prepared a layer may be there already, or no more.
            if wanted == next.contains(usize::from(channel)) {
                assert_eq!(is_member, wanted, "channel {channel} at {} units", party.level);
            }
        }
    })
}

/// RAP's source sends no more than was offered, and no faster than its highest rate; its sink answers a packet once.
fn sends_what_is_offered_when_it_may(_: &Setup) -> Check {
    Box::new(|party| match party.role {
        Role::Source => {
            // What may go again is taken from the application once and sent several times.
            let new = if party.taken > 0 { party.taken } else { party.sent };
            // On sockets 5 ms may be caught up with.
            assert!(new <= party.offered && party.last.sent.len() <= 6, "{party:?}");
        }
        _ => assert!(party.last.sent.len() <= 1, "{party:?}"),
    })
}

#[test]
fn every_extra_check_is_of_schemes_that_there_are() {
    for name in EXTRAS.iter().flat_map(|extra| extra.schemes) {
        weir_core::registry::find(name).expect("an extra check names a scheme of the registry");
    }
}

//! Any party of a session sends to its channels, from its own host, and does not get its own packets back.

use weir_core::{Action, ChannelId, Destination, Origin};

use super::script::say;
use super::{Outcome, Party, Scenario, Script, Session, Setup, ms};

pub(super) const EVERYBODY_SENDS: Scenario =
    Scenario { name: "any party sends to a channel, and not to itself", setup, check };

/// The session's root, two members, and one who only sends.
const PARTIES: u8 = 4;
const SENDS_ONLY: u8 = 3;
const CHANNEL: ChannelId = ChannelId(1);

/// Each sends three packets to the channel in its turn, and one to the channel that nobody has joined.
fn setup() -> Setup {
    let parties = (0..PARTIES).map(|party| {
        let joins = match party {
            SENDS_ONLY => Script::default(),
            _ => Script::default().at(ms(0), Action::Join(CHANNEL)),
        };
        let sends = (0..3).fold(joins, |script, number| {
            let after = ms(1000 + 100 * u64::from(party) + 10 * number);
            script.at(after, say(Destination::Channel(CHANNEL), party, number))
        });
        Party::new(sends.at(ms(2000), say(Destination::Channel(ChannelId(0)), party, 3))).in_sessions(&[0])
    });
    Setup { parties: parties.collect(), sessions: vec![Session { channels: 2, root: 0 }], lasts: ms(3000) }
}

fn check(outcome: &Outcome) {
    for (account, party) in outcome.parties.iter().zip(0..) {
        let heard: Vec<_> = account.seen.iter().filter_map(|(_, seen)| seen.tagged()).collect();
        let others = (0..PARTIES).filter(|other| *other != party && party != SENDS_ONLY);
        let expected = others.flat_map(|other| [0, 1, 2].map(|number| (Origin::Channel(CHANNEL), other, number)));
        assert_eq!(heard, expected.collect::<Vec<_>>(), "party {party}");
    }
}

//! A party of several sessions knows their channels by consecutive numbers.

use weir_core::{Action, ChannelId, Destination, Origin};

use super::script::say;
use super::{Outcome, Party, Scenario, Script, Session, Setup, ms};

pub(super) const CHANNELS_FOLLOW_ONE_ANOTHER: Scenario =
    Scenario { name: "the channels of several sessions follow one another", setup, check };

/// The channels of the two sessions.
const CHANNELS: [u16; 2] = [2, 3];

/// Two senders send to each channel twice. The manager joins one channel of the first session and two of the second, leaves one
/// of these, and sends to one itself.
fn setup() -> Setup {
    let senders = [0, 1].map(|session| {
        let rounds = [1000, 3000].map(|after| (0..CHANNELS[session]).map(move |channel| (after, channel)));
        let sends = rounds.into_iter().flatten().fold(Script::default(), |script, (after, channel)| {
            script.at(ms(after), say(Destination::Channel(ChannelId(channel)), session as u8, u64::from(channel)))
        });
        Party::new(sends.at(ms(3500), Action::Join(ChannelId(1)))).in_sessions(&[session])
    });
    let joins = [1, 2, 4].map(|channel| Action::Join(ChannelId(channel)));
    let manager = joins.into_iter().fold(Script::default(), |script, join| script.at(ms(0), join));
    let manager = manager.at(ms(2000), Action::Leave(ChannelId(2)));
    let manager = manager.at(ms(4500), say(Destination::Channel(ChannelId(3)), MANAGER, 0));
    let manager = Party::new(manager).in_sessions(&[0, 1]);
    let sessions = [0, 1].map(|root| Session { channels: CHANNELS[root], root });
    Setup { parties: senders.into_iter().chain([manager]).collect(), sessions: sessions.to_vec(), lasts: ms(5500) }
}

fn check(outcome: &Outcome) {
    let heard = |party: usize| {
        let mut heard: Vec<_> = outcome.parties[party].seen.iter().filter_map(|(_, seen)| seen.tagged()).collect();
        // What is sent to several channels at once may come in any order.
        heard.sort_by_key(|(_, session, channel)| (*session, *channel));
        heard
    };
    let from = |channel| Origin::Channel(ChannelId(channel));
    let manager = [(from(1), 0, 1), (from(1), 0, 1), (from(2), 1, 0), (from(4), 1, 2), (from(4), 1, 2)];
    assert_eq!(heard(2), manager, "channel 2 was left after the first round");
    assert_eq!(heard(0), [], "nobody sends to the first session's channel 1 any more");
    assert_eq!(heard(1), [(from(1), MANAGER, 0)], "the manager's channel 3 is the second session's channel 1");
}

const MANAGER: u8 = 9;

//! Congestion marks arrive as they were sent, over channels and between peers, in both directions.

use weir_core::{Action, ChannelId, Destination, Event, Origin, Packet, PeerId};
use weir_units::Ecn;

use super::script::{FIRST, packet};
use super::{Outcome, Party, Scenario, Script, Seen, Session, Setup, ms};

pub(super) const MARKS_ARRIVE: Scenario = Scenario { name: "congestion marks arrive as they were sent", setup, check };

const MARKS: [Ecn; 3] = [Ecn::NotEct, Ecn::Ect, Ecn::Ce];
const CHANNEL: Destination = Destination::Channel(ChannelId(0));

/// The first sends each mark to its peer and to a channel; the second sends to the first what came from there.
fn setup() -> Setup {
    let both = MARKS.into_iter().flat_map(|ecn| [FIRST, CHANNEL].map(|to| (to, ecn)));
    let sender = both.zip(0..).fold(Script::default(), |script, ((to, ecn), number)| {
        script.at(ms(500 + 100 * number), Action::send(to, Packet { ecn, ..packet(0, number, 0) }))
    });
    let receiver = Script::default().at(ms(0), Action::Join(ChannelId(0))).on(|event, out| {
        if let Event::Packet { packet, .. } = event {
            out.push_back(Action::send(FIRST, **packet));
        }
    });
    let parties =
        [(sender, 1), (receiver, 0)].map(|(script, peer)| Party::new(script).that_knows(&[peer]).in_sessions(&[0]));
    Setup { parties: parties.into(), sessions: vec![Session { channels: 1, root: 0 }], lasts: ms(2000) }
}

fn check(outcome: &Outcome) {
    let marks = |party: usize| {
        let seen = outcome.parties[party].seen.iter().filter_map(|(_, seen)| match seen {
            Seen::Packet(from, packet) => Some((*from, packet.ecn)),
            _ => None,
        });
        seen.collect::<Vec<_>>()
    };
    let (peer, channel) = (Origin::Peer(PeerId(0)), Origin::Channel(ChannelId(0)));
    assert_eq!(marks(1), MARKS.map(|mark| [(peer, mark), (channel, mark)]).concat(), "there");
    assert_eq!(marks(0), MARKS.map(|mark| [(peer, mark); 2]).concat(), "and back");
}

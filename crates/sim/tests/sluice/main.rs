//! A session of sluice on a link or two, alone or next to TCPs.

mod changes;
mod floods;
mod flows;
mod hosts;
mod losses;
mod parts;
mod starts;

use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session, Setting};
use weir_link::LinkConfig;
use weir_sim::{AgentId, EndpointConfig, LinkId, Membership, Network, NodeId, SessionConfig, SessionId};
use weir_units::{Bytes, Rate};
use weir_wire::CciForm;

/// Two hosts and the link from one to the other; nothing but `delay` is on the way back.
fn link(net: &mut Network, link: &str, delay: Duration) -> (NodeId, NodeId, LinkId) {
    let (root, host) = (net.add_node(), net.add_node());
    let bottleneck = net.add_link(root, host, &link.parse::<LinkConfig>().expect("a valid link"));
    net.add_link(host, root, &LinkConfig { delay, ..LinkConfig::default() });
    (root, host, bottleneck)
}

/// A session from 256 kbit/s up to this rate, in steps of this ratio, with one receiver. Gives its number of levels.
fn session(net: &mut Network, (root, host): (NodeId, NodeId), top: Rate, ratio: f64, settings: &[Setting]) -> usize {
    let (id, session) =
        open(net, root, Ladder::geometric(Rate::from_kbps(256), top, ratio).expect("a ladder"), settings);
    join(net, id, &session, host, EndpointConfig::default(), settings);
    session.ladder.levels()
}

/// A session without receivers.
fn open(net: &mut Network, root: NodeId, ladder: Ladder, settings: &[Setting]) -> (SessionId, Session) {
    let session = Session { ladder, packet_size: Bytes::new(1456), form: CciForm::Short, habitat: Habitat::Sockets };
    let scheme = registry::find("sluice").expect("registered");
    let channels = scheme.channels(&session, settings).expect("good settings").len();
    let config = SessionConfig { channels, form: session.form, membership: Membership::default() };
    let id = net.add_session(root, config).expect("a few channels");
    let sender = scheme.sender(&session, settings, net.random_for("sender")).expect("good settings");
    net.add_sender(id, sender, EndpointConfig::default());
    (id, session)
}

fn join(
    net: &mut Network,
    id: SessionId,
    session: &Session,
    host: NodeId,
    config: EndpointConfig,
    settings: &[Setting],
) -> AgentId {
    let scheme = registry::find("sluice").expect("registered");
    // Receivers draw their numbers, which must be different.
    let random = net.random_for(&format!("receiver at {host:?}"));
    let receiver = scheme.receiver(session, settings, random).expect("good settings");
    net.add_receiver(id, host, receiver, config).expect("a way")
}

//! What the parties agree on, and how they are built.

use std::time::Duration;

use weir_core::Endpoint;
use weir_core::layers::Ladder;
use weir_core::registry::{ConfigError, Habitat, Parties, Scheme, Session, Setting, Stream, Tree};
use weir_units::{Bytes, Random, Rate};
use weir_wire::CciForm;

use crate::draw::Draw;
use crate::extra;
use crate::party::{Party, Role};

/// A scheme, what its parties agree on, and settings that it accepts.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) scheme: &'static Scheme,
    pub(crate) session: Session,
    pub(crate) stream: Stream,
    /// Nobody sends what no party has sent.
    pub(crate) is_honest: bool,
    /// What the receiving application has room for at first, where that is limited.
    pub(crate) room: Option<u64>,
    /// How far the clocks of a tree's members are ahead of that of its sender, or behind.
    ahead: [Duration; 3],
    /// Whether the members of a tree know their parents.
    tree: &'static str,
    settings: Vec<Setting>,
}

/// Endpoints and their parts.
type Roles = Vec<(Role, Box<dyn Endpoint>)>;

impl Setup {
    /// What the bytes say: the habitat, the form, and a few settings.
    pub(crate) fn new(scheme: &'static Scheme, draw: &mut Draw<'_>) -> Setup {
        let kind = draw.u8();
        let habitat = if kind & 1 == 0 { Habitat::Lab } else { Habitat::Sockets };
        let form = [CciForm::Short, CciForm::Long, CciForm::Clocked][usize::from(kind >> 1) % 3];
        // 1.9 Mbit/s are 470 packets a second: a sender in the laboratory's habitat has 190 at most to send at once.
        let ladder = Ladder::geometric(Rate::from_kbps(64), Rate::from_kbps(1_900), 1.4).expect("ten levels");
        let mut setup = Setup {
            scheme,
            session: Session { ladder, packet_size: PACKET_SIZE, form, habitat },
            stream: Stream { packet_size: PACKET_SIZE, feedback_size: Bytes::new(80), habitat },
            is_honest: false,
            room: None,
            ahead: [Duration::ZERO; 3],
            tree: "given",
            settings: extra::settings(scheme),
        };
        for _ in 0..draw.u8() % 4 {
            let (which, what) = (draw.u8(), draw.u8());
            setup.try_setting(usize::from(which), usize::from(what));
        }
        if let Parties::Tree(_) = scheme.parties {
            setup.is_honest = draw.u8() & 1 == 0;
            setup.room = Some(u64::from(draw.u8())).filter(|room| room & 1 == 0);
            setup.ahead = [(); 3].map(|()| Duration::from_secs(1) * (1 << (draw.u8() % 24)));
        }
        setup
    }

    /// The same, but that members look for the node above them.
    pub(crate) fn that_is_found(mut self) -> Setup {
        self.tree = "found";
        self
    }

    /// Adds one of the scheme's settings with one of the values that its help mentions, or a usual one, if the scheme accepts it.
    fn try_setting(&mut self, which: usize, what: usize) {
        let settings = (self.scheme.settings)();
        let Some(setting) = settings.get(which % settings.len().max(1)) else { return };
        let words = setting.help.split(|c: char| !(c.is_alphanumeric() || "-_.+".contains(c)));
        let values: Vec<&str> = words.filter(|word| !word.is_empty()).chain(VALUES.iter().copied()).collect();
        let setting = Setting { key: setting.key.to_owned(), value: values[what % values.len()].to_owned() };
        // In front, so that the fixed settings stand.
        self.settings.insert(0, setting);
        if self.build().is_err() {
            self.settings.remove(0);
        }
    }

    /// The settings of a member of a tree with this number of children.
    fn of_node(&self, children: u64) -> Vec<Setting> {
        let mut settings = self.settings.clone();
        if self.scheme.settings().iter().any(|setting| setting.key == CHILDREN) {
            settings.push(Setting { key: CHILDREN.to_owned(), value: children.to_string() });
            settings.push(Setting { key: TREE.to_owned(), value: self.tree.to_owned() });
            if self.is_honest {
                // Minutes may pass without a word, and who is turned out for that comes to no end.
                settings.push(Setting { key: "evict_after".to_owned(), value: "86400s".to_owned() });
            }
        }
        settings
    }

    /// How many channels there are.
    fn channels(&self) -> u16 {
        if let Parties::Tree(_) = self.scheme.parties {
            return 1;
        }
        let channels = self.scheme.is_layered().then(|| self.scheme.channels(&self.session, &self.settings));
        channels.map_or(0, |channels| channels.expect("the settings are accepted").len() as u16)
    }

    /// The parties.
    pub(crate) fn parties(&self) -> Result<Vec<Party>, ConfigError> {
        let (channels, ahead) = (self.channels(), self.ahead);
        let party = |((role, endpoint), ahead)| Party::new(role, endpoint, channels, ahead);
        Ok(self.build()?.into_iter().zip(ahead).map(party).collect())
    }

    fn build(&self) -> Result<Roles, ConfigError> {
        let Setup { scheme, session, stream, settings, .. } = self;
        let random = || Random::new(1, "party");
        Ok(match scheme.parties {
            Parties::Layered(_) => vec![
                (Role::Sender, scheme.sender(session, settings, random())?),
                (Role::Receiver, scheme.receiver(session, settings, random())?),
            ],
            Parties::Paced(_) => vec![
                (Role::Source, scheme.source(stream, settings, random())?),
                (Role::Sink, scheme.sink(stream, settings, random())?),
            ],
            Parties::Tree(Tree { sender, agent, receiver }) => vec![
                (Role::Root, sender(stream, &self.of_node(1), random())?),
                (Role::Agent, agent(stream, &self.of_node(1), random())?),
                (Role::Leaf, receiver(stream, &self.of_node(0), random())?),
            ],
        })
    }
}

/// The setting that says for how many children a node waits.
const CHILDREN: &str = "children";
/// And the one that says where a tree comes from.
const TREE: &str = "tree";

pub(crate) const PACKET_SIZE: Bytes = Bytes::new(500);

/// Values that some settings take, besides the words of their help.
const VALUES: [&str; 8] = ["0", "1", "2", "8", "0.5", "0s", "30ms", "2s"];

//! What two parties agree on, and how they are built.

use weir_core::Endpoint;
use weir_core::layers::Ladder;
use weir_core::registry::{ConfigError, Habitat, Parties, SCHEMES, Scheme, Session, Setting, Stream};
use weir_units::{Bytes, Random, Rate};
use weir_wire::CciForm;

use crate::draw::Draw;
use crate::extra;
use crate::party::Role;

/// A scheme, what its parties agree on, and settings that it accepts.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) scheme: &'static Scheme,
    pub(crate) session: Session,
    pub(crate) stream: Stream,
    settings: Vec<Setting>,
}

/// The schemes of the registry whose parties can be a pair.
pub(crate) fn schemes() -> Vec<&'static Scheme> {
    SCHEMES.iter().copied().filter(|scheme| scheme.is_layered() || scheme.is_paced()).collect()
}

/// Two endpoints and their parts.
pub(crate) type Roles = [(Role, Box<dyn Endpoint>); 2];

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
            settings: extra::settings(scheme),
        };
        for _ in 0..draw.u8() % 4 {
            let (which, what) = (draw.u8(), draw.u8());
            setup.try_setting(usize::from(which), usize::from(what));
        }
        setup
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

    /// How many channels there are.
    pub(crate) fn channels(&self) -> u16 {
        let channels = self.scheme.is_layered().then(|| self.scheme.channels(&self.session, &self.settings));
        channels.map_or(0, |channels| channels.expect("the settings are accepted").len() as u16)
    }

    /// The two parties.
    pub(crate) fn build(&self) -> Result<Roles, ConfigError> {
        let Setup { scheme, session, stream, settings } = self;
        let random = || Random::new(1, "party");
        Ok(match scheme.parties {
            Parties::Layered(_) => [
                (Role::Sender, scheme.sender(session, settings, random())?),
                (Role::Receiver, scheme.receiver(session, settings, random())?),
            ],
            Parties::Paced(_) => [
                (Role::Source, scheme.source(stream, settings, random())?),
                (Role::Sink, scheme.sink(stream, settings, random())?),
            ],
            Parties::Tree(_) => {
                return Err(ConfigError::NotFor { scheme: scheme.name, what: "sessions of two parties" });
            }
        })
    }
}

pub(crate) const PACKET_SIZE: Bytes = Bytes::new(500);

/// Values that some settings take, besides the words of their help.
const VALUES: [&str; 8] = ["0", "1", "2", "8", "0.5", "0s", "30ms", "2s"];

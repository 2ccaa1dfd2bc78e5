//! What a scheme is: what it is called, who takes part, what these have agreed on, and how they are built.
//!
//! Not here: which schemes there are, which is [`crate::registry`]'s.

use alloc::boxed::Box;
use alloc::vec::Vec;

use weir_units::{Bytes, Random, Rate};
use weir_wire::CciForm;

use crate::endpoint::Endpoint;
use crate::error::ConfigError;
use crate::layers::Ladder;
use crate::settings::{Setting, SettingHelp};

/// A scheme: what it is called, where it is from, and how its parties are built.
#[derive(Debug)]
pub struct Scheme {
    /// The name on the command line, in scenarios and in session descriptions.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// When to take it: a few words.
    pub suits: &'static str,
    /// Authors and year.
    pub paper: &'static str,
    /// Who takes part, and how they are built.
    pub parties: Parties,
    /// Help about the settings that all of them take.
    pub settings: fn() -> Vec<SettingHelp>,
}

/// Who takes part in a scheme.
#[derive(Debug, Clone, Copy)]
pub enum Parties {
    /// One sender of channels, and any number of receivers that join and leave them.
    Layered(Layered),
    /// A source and a sink, who answers it.
    Paced(Paced),
    /// A sender of channels, and agents that store what it sends for the receivers below them.
    Tree(Tree),
}

/// The parties of a layered multicast session.
#[derive(Debug, Clone, Copy)]
pub struct Layered {
    /// Lists the channels of a session by the rate that each has at most. They need not be the ladder's.
    pub channels: fn(&Session, &[Setting]) -> Result<Vec<Rate>, ConfigError>,
    /// Lists the rates between which a receiver chooses, level 1 first.
    pub levels: fn(&Session, &[Setting]) -> Result<Vec<Rate>, ConfigError>,
    /// Whether a receiver is a member of channel 0 at all times.
    pub base_channel: bool,
    /// Whether receivers measure their round trip to the sender, for which they have to know its unicast address.
    pub probes: bool,
    /// Whether receivers need the arrival time of each packet by itself, so that drivers neither read nor send several as one.
    pub each_arrival: bool,
    /// What a sender on real sockets offers unless it is told otherwise.
    pub rates: OfferedRates,
    /// Builds the sender.
    pub sender: Build<Session>,
    /// Builds a receiver.
    pub receiver: Build<Session>,
}

/// The rates of a [`Ladder::geometric`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfferedRates {
    /// The lowest.
    pub low: Rate,
    /// The highest; of an offer, where the sender's interface does not tell its speed.
    pub high: Rate,
    /// Of each to the one below it.
    pub ratio: f64,
}

/// The parties of a paced unicast stream. The source knows the sink, and the sink the source, as its first correspondent.
#[derive(Debug, Clone, Copy)]
pub struct Paced {
    /// Builds the source.
    pub source: Build<Stream>,
    /// Builds the sink.
    pub sink: Build<Stream>,
}

/// The parties of a reliable stream over a tree. Each knows the one above it as its first correspondent, and meets those below
/// it while the session runs.
#[derive(Debug, Clone, Copy)]
pub struct Tree {
    /// Builds the sender, at the root.
    pub sender: Build<Stream>,
    /// Builds an agent.
    pub agent: Build<Stream>,
    /// Builds a receiver.
    pub receiver: Build<Stream>,
}

/// How a party is built, from what all have agreed on, the user's settings, and a random stream of the party's own. On real
/// sockets the stream's seed is from the operating system; in the laboratory it is derived from the run's.
pub type Build<Agreed> = fn(&Agreed, &[Setting], Random) -> Result<Box<dyn Endpoint>, ConfigError>;

impl Scheme {
    /// Whether it is for layered sessions.
    pub const fn is_layered(&self) -> bool {
        matches!(self.parties, Parties::Layered(_))
    }

    /// Whether it is for unicast streams.
    pub const fn is_paced(&self) -> bool {
        matches!(self.parties, Parties::Paced(_))
    }

    /// Whether receivers of a layered session measure their round trip to the sender.
    pub const fn probes(&self) -> bool {
        matches!(self.parties, Parties::Layered(Layered { probes: true, .. }))
    }

    /// Whether receivers of a layered session need the arrival time of each packet by itself.
    pub const fn needs_each_arrival(&self) -> bool {
        matches!(self.parties, Parties::Layered(Layered { each_arrival: true, .. }))
    }

    /// Whether a receiver of a layered session is a member of channel 0 at all times.
    pub const fn has_base_channel(&self) -> bool {
        matches!(self.parties, Parties::Layered(Layered { base_channel: true, .. }))
    }

    /// Help about the settings that its parties take.
    pub fn settings(&self) -> Vec<SettingHelp> {
        (self.settings)()
    }

    /// What a sender on real sockets offers unless it is told otherwise; `None` for a scheme without a ladder of rates.
    pub const fn rates(&self) -> Option<OfferedRates> {
        match self.parties {
            Parties::Layered(Layered { rates, .. }) => Some(rates),
            Parties::Paced(_) | Parties::Tree(_) => None,
        }
    }

    /// The channels of a layered session, each with the highest rate that it has.
    pub fn channels(&self, session: &Session, settings: &[Setting]) -> Result<Vec<Rate>, ConfigError> {
        (self.layered()?.channels)(session, settings)
    }

    /// The rates between which a receiver of a layered session chooses, level 1 first.
    pub fn levels(&self, session: &Session, settings: &[Setting]) -> Result<Vec<Rate>, ConfigError> {
        (self.layered()?.levels)(session, settings)
    }

    /// Builds the sender of a layered session.
    pub fn sender(
        &self,
        session: &Session,
        settings: &[Setting],
        random: Random,
    ) -> Result<Box<dyn Endpoint>, ConfigError> {
        (self.layered()?.sender)(session, settings, random)
    }

    /// Builds a receiver of a layered session.
    pub fn receiver(
        &self,
        session: &Session,
        settings: &[Setting],
        random: Random,
    ) -> Result<Box<dyn Endpoint>, ConfigError> {
        (self.layered()?.receiver)(session, settings, random)
    }

    /// Builds the source of a unicast stream.
    pub fn source(
        &self,
        stream: &Stream,
        settings: &[Setting],
        random: Random,
    ) -> Result<Box<dyn Endpoint>, ConfigError> {
        (self.paced()?.source)(stream, settings, random)
    }

    /// Builds the sink of a unicast stream.
    pub fn sink(
        &self,
        stream: &Stream,
        settings: &[Setting],
        random: Random,
    ) -> Result<Box<dyn Endpoint>, ConfigError> {
        (self.paced()?.sink)(stream, settings, random)
    }

    /// Says why the parties of a layered session cannot be built, if they cannot.
    pub fn check_session(&self, session: &Session, settings: &[Setting]) -> Result<(), ConfigError> {
        let random = Random::new(0, "check");
        self.sender(session, settings, random.clone())?;
        self.receiver(session, settings, random).map(drop)
    }

    /// Says why the parties of a unicast stream cannot be built, if they cannot.
    pub fn check_stream(&self, stream: &Stream, settings: &[Setting]) -> Result<(), ConfigError> {
        let random = Random::new(0, "check");
        self.source(stream, settings, random.clone())?;
        self.sink(stream, settings, random).map(drop)
    }

    /// Says why the parties of a stream over a tree cannot be built, if they cannot.
    pub fn check_tree(&self, stream: &Stream, settings: &[Setting]) -> Result<(), ConfigError> {
        let (tree, random) = (self.tree()?, Random::new(0, "check"));
        (tree.sender)(stream, settings, random.clone())?;
        (tree.receiver)(stream, settings, random).map(drop)
    }

    /// The parties of a reliable stream over a tree.
    pub fn tree(&self) -> Result<Tree, ConfigError> {
        match self.parties {
            Parties::Tree(tree) => Ok(tree),
            Parties::Layered(_) | Parties::Paced(_) => Err(self.not_for("streams over a tree")),
        }
    }

    /// What it is as a scheme for layered sessions.
    pub fn layered(&self) -> Result<Layered, ConfigError> {
        match self.parties {
            Parties::Layered(layered) => Ok(layered),
            Parties::Paced(_) | Parties::Tree(_) => Err(self.not_for("layered sessions")),
        }
    }

    fn paced(&self) -> Result<Paced, ConfigError> {
        match self.parties {
            Parties::Paced(paced) => Ok(paced),
            Parties::Layered(_) | Parties::Tree(_) => Err(self.not_for("unicast streams")),
        }
    }

    fn not_for(&self, what: &'static str) -> ConfigError {
        ConfigError::NotFor { scheme: self.name, what }
    }
}

/// What sender and receivers of a layered session agree on.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// The channels and their rates.
    pub ladder: Ladder,
    /// Bytes of a full packet on the network, all headers included; the rates count these.
    pub packet_size: Bytes,
    /// How wide sequence numbers and slots are.
    pub form: CciForm,
    /// Where the endpoint runs: it decides a few defaults that the papers' simulations and real networks need different.
    pub habitat: Habitat,
}

/// What the parties of a stream agree on: the two ends of a paced one, or the sender, the agents and the receivers of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// Bytes of a full data packet on the network, all headers included; the rate counts these.
    pub packet_size: Bytes,
    /// Bytes of a packet that carries no payload, such as the sink's answer, all headers included.
    pub feedback_size: Bytes,
    /// Where the endpoint runs.
    pub habitat: Habitat,
}

/// Where an endpoint runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Habitat {
    /// The laboratory: defaults are the paper's.
    Lab,
    /// Real sockets: defaults are what real networks need (each is named in the scheme's paper page).
    Sockets,
}

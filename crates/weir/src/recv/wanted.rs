//! What is to be received, and how: the session, its sockets, the folder for its files.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_core::registry::{self, Scheme};
use weir_net::Interface;
use weir_net::description::{Control, Description};
use weir_net::host::{LinkInFront, TenantConfig};
use weir_net::session::SessionConfig;
use weir_net::socket::ReceiveConfig;
use weir_object::keys::PublicKey;
use weir_object::store::{Store, StoreOptions};
use weir_units::{Bytes, Rate};

use crate::args::{Recv, SessionSource};
use crate::exit::{Exit, Failure};
use crate::trust::Trust;
use crate::{fetch, session};

/// A session that is to be received.
pub(crate) struct Wanted {
    /// Where the description is from, in words.
    pub(super) source: String,
    pub(crate) description: Description,
    /// The rates between which the receiver chooses.
    pub(crate) levels: Vec<Rate>,
    pub(crate) interface: Interface,
    /// What the user is to know of how far it can be believed.
    pub(crate) told: Vec<String>,
    /// The folder for its files, or for what is needed to go on with a file on a device.
    pub(crate) out: PathBuf,
    /// The device that its only file is written to.
    pub(crate) device: Option<PathBuf>,
}

impl Wanted {
    /// The one session that the options ask for.
    pub(crate) fn of(args: &Recv) -> Result<Wanted, Failure> {
        let trust = Trust::of(args)?;
        Wanted::fetch(&args.sessions[0], &trust, args.iface.as_deref(), out_folder(args).to_owned())
    }

    /// Reads the description of a session.
    pub(crate) fn fetch(
        source: &SessionSource,
        trust: &Trust,
        iface: Option<&str>,
        out: PathBuf,
    ) -> Result<Wanted, Failure> {
        let text = fetch::session(source)?;
        let description: Description = text.parse().map_err(Failure::of(Exit::Session, source.to_string()))?;
        let told = trust.check(source, &text, &description)?;
        Wanted::new(source.to_string(), description, told, iface, out)
    }

    /// The session of a description that is believed.
    pub(crate) fn new(
        source: String,
        description: Description,
        told: Vec<String>,
        iface: Option<&str>,
        out: PathBuf,
    ) -> Result<Wanted, Failure> {
        description.check_groups().map_err(Failure::of(Exit::Session, &source))?;
        let choice = session::interface_choice(iface);
        let group = description.channels[0].ip();
        let interface = Interface::choose(&choice, group).map_err(Failure::of(Exit::Network, "cannot receive"))?;
        let levels = description.control.as_ref().map_or(Ok(Vec::new()), Control::levels);
        let levels = levels.map_err(Failure::of(Exit::Session, &source))?;
        Ok(Wanted { source, description, levels, interface, told, out, device: None })
    }

    /// Where its files are to be.
    pub(crate) fn place(&self) -> &Path {
        self.device.as_deref().unwrap_or(&self.out)
    }

    /// The session cannot be received as it is described.
    pub(crate) fn refuse(&self, error: impl std::error::Error) -> Failure {
        Failure::of(Exit::Session, &self.source)(error)
    }
}

/// How a host receives what the options say.
pub(crate) fn session_config(args: &Recv, buffer: Bytes) -> Result<SessionConfig, Failure> {
    let seed = u64::from_be_bytes(session::random()?);
    let link = args.link.clone().map(|config| LinkInFront { config, seed });
    let sockets = ReceiveConfig { buffer, ..ReceiveConfig::default() };
    // The end of a fast transfer should not wait for a slow look at it.
    let tenant = TenantConfig { sockets, link, tick: Duration::from_millis(20), ..TenantConfig::default() };
    let (interface, capture) = (session::interface_choice(args.iface.as_deref()), args.output.pcap.clone());
    Ok(SessionConfig { interface, tenant, capture, ..SessionConfig::default() })
}

/// Whether receivers of the session measure their round trip to the sender.
pub(super) fn has_probes(description: &Description) -> bool {
    let scheme = description.control.as_ref().and_then(|control| registry::find(&control.scheme).ok());
    scheme.is_some_and(Scheme::probes)
}

/// What the highest rate brings while this process waits for its turn, within reason.
pub(crate) fn receive_buffer(description: &Description) -> Bytes {
    (highest_rate(description) * TURN).clamp(ReceiveConfig::default().buffer, LARGEST_BUFFER)
}

/// The highest rate that a receiver can choose.
pub(super) fn highest_rate(description: &Description) -> Rate {
    let rates = description.control.as_ref().map(|control| control.ladder.rates());
    rates.and_then(|rates| rates.last()).copied().unwrap_or(Rate::ZERO)
}

/// Opens the folder of a session's files.
pub(crate) fn open_store(args: &Recv, wanted: &Wanted) -> Result<Store, Failure> {
    let Wanted { source, description, .. } = wanted;
    if description.media.is_some() {
        let advice =
            "this session is of layered media, which are received one session at a time: weir recv SESSION --out FILE";
        return Err(Failure::new(Exit::Session, format!("{source}: {advice}")));
    }
    let public_key = match (&description.public_key, args.any_sender) {
        (Some(key), false) => Some(PublicKey::from_bytes(key).map_err(Failure::of(Exit::Session, source))?),
        (None, false) if description.control.is_some() => {
            let advice = "the session description holds no key of the sender, so nothing that comes could be trusted; \
                          with --any-sender it is taken all the same";
            return Err(Failure::new(Exit::Session, format!("{source}: {advice}")));
        }
        _ => None,
    };
    let options = StoreOptions {
        tsi: u64::from(description.tsi),
        key: public_key,
        least_epoch: description.epoch.unwrap_or(0),
        memory_limit: memory(args) - memory(args) / QUEUE_SHARE,
        overwrite: args.overwrite,
        device: wanted.device.clone(),
        decoding_threads: std::thread::available_parallelism().map_or(1, NonZero::get).min(MOST_DECODERS),
        ..StoreOptions::default()
    };
    Store::open(&wanted.out, options).map_err(Failure::of(Exit::Files, "cannot receive"))
}

/// Bytes of memory for a session: several share what there is.
pub(super) fn memory(args: &Recv) -> u64 {
    args.memory.count() / args.sessions.len().max(1) as u64
}

/// The folder for the files.
pub(crate) fn out_folder(args: &Recv) -> &Path {
    args.out.as_deref().unwrap_or(Path::new("."))
}

/// Longest wait for a turn on a busy machine that costs no packet.
const TURN: Duration = Duration::from_millis(500);
const LARGEST_BUFFER: Bytes = Bytes::new(64 << 20);
/// The share of the memory for symbols that wait for the disk is one in this number.
pub(super) const QUEUE_SHARE: u64 = 2;
/// More threads than this decode faster than any interface brings symbols.
const MOST_DECODERS: usize = 8;

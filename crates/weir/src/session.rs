//! From the options of `weir send` to a session: its description, its keys, where its receipts go.

use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path};

use weir_core::layers::Ladder;
use weir_core::registry::{ConfigError, OfferedRates};
use weir_net::description::{Control, Description};
use weir_net::groups;
use weir_net::interface::{Interface, InterfaceChoice, LinkSpeed};
use weir_net::socket::header_len;
use weir_object::keys::SecretKey;
use weir_units::{Bytes, Random, Rate};
use weir_wire::CciForm;
use weir_wire::alc::Profile;

use crate::args::{CciChoice, Rates, SendFile};
use crate::exit::{Exit, Failure};
use crate::standard;
use crate::{epoch, folders, key, sealing, top, trust};

/// A session that can be sent: what receivers are told, and what they are not.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) description: Description,
    pub(crate) secret: SecretKey,
    pub(crate) symbol_size: u16,
    /// Bytes that the path carries in one piece, as far as is known.
    pub(crate) packet_size: u16,
    /// What keeps the number of this start from being remembered.
    pub(crate) epoch_trouble: Option<String>,
    /// How fast the interface is, by which the highest rate goes.
    pub(crate) speed: LinkSpeed,
}

impl Offer {
    /// The rate of each channel.
    pub(crate) fn channel_rates(&self) -> Result<Vec<Rate>, Failure> {
        let control = self.description.control.as_ref().expect("an offer has congestion control");
        control.channel_rates().map_err(Failure::of(Exit::Usage, "cannot send"))
    }
}

/// Makes the session that the options ask for.
pub(crate) fn offer(args: &SendFile, interface: &Interface) -> Result<Offer, Failure> {
    let usage = |text: String| Failure::new(Exit::Usage, text);
    let secret = key::secret(args.key.as_deref())?;
    let name = args.name.clone().or_else(|| standard::name_of(args).map(str::to_owned));
    let name = name.unwrap_or_else(|| default_name(&args.paths[0]));
    let tsi = match args.tsi {
        Some(tsi) => tsi,
        None if key::file(args.key.as_deref()).is_some() => own_number(&secret, args.to, &name),
        None => u16::from_be_bytes(random()?).max(1),
    };
    let speed = interface.speed();
    let packet_size = packet_size(args.packet_size, interface.mtu());
    let (control, symbol_size) = control(args, speed, packet_size).map_err(|error| usage(advise(&error)))?;
    let channels = control.channel_rates().map_err(|error| usage(advise(&error)))?.len();
    let channels = Description::channels_from(args.to, channels).ok_or_else(|| {
        let group = args.to.ip();
        usage(format!(
            "{channels} channels from {group} on do not fit into the multicast addresses; choose a lower group"
        ))
    })?;
    let refused = channels.iter().find_map(|channel| groups::check(channel.ip(), args.source_specific).err());
    if let Some(error) = refused {
        return Err(usage(format!("cannot send to {} channels from {} on: {error}", channels.len(), args.to.ip())));
    }
    let local =
        interface.source_address(args.to.ip()).map_err(|error| Failure::new(Exit::Network, error.to_string()))?;
    let wants_receipts = args.receipts.is_some() || args.expect.is_some();
    let key_file = key::file(args.key.as_deref());
    let (epoch, epoch_trouble) = if args.describe {
        // Describing is no start: the description is of the last one, which may be sending now.
        (epoch::last(key_file.as_deref(), tsi), None)
    } else {
        let (epoch, trouble) = epoch::next(key_file.as_deref(), tsi);
        (Some(epoch), trouble)
    };
    let description = Description {
        name,
        tsi,
        flute_version: args.flute_version,
        source: args.source_specific.then_some(local),
        channels,
        ttl: args.ttl,
        control: Some(control),
        symbol_size: Some(symbol_size),
        public_key: Some(secret.public().to_bytes()),
        epoch,
        expires: None,
        control_address: (args.rates.cc.probes() || wants_receipts).then(|| control_address(local, args.to)),
        receipt_key: wants_receipts.then(|| secret.derive("weir receipt tags", &tsi.to_be_bytes())),
        priority: args.priority,
        sessions: args.sessions,
        sealing: sealing::described(&args.secrecy, &secret, tsi)?,
        media: None,
    };
    // A bad setting is told before anything is sent.
    description.check().map_err(|error| usage(advise(&error)))?;
    Ok(Offer { description, secret, symbol_size, packet_size, epoch_trouble, speed })
}

/// Writes the description that receivers need, signed.
pub(crate) fn write_description(path: &Path, description: &Description, secret: &SecretKey) -> Result<(), Failure> {
    let text = trust::signed(&description.to_string(), secret);
    // Whoever reads the key of packets can read and forge them. A receiver never reads half of it.
    let mode = if description.sealing.key.is_some() { 0o600 } else { 0o666 };
    folders::replace(path, text.as_bytes(), mode)
        .map_err(Failure::of(Exit::Files, format!("cannot write the session description {}", path.display())))
}

/// Bytes of a full packet that is sent on an interface of this MTU. What the user says is not changed.
pub(crate) fn packet_size(chosen: Option<u16>, mtu: Option<Bytes>) -> u16 {
    let carried = mtu.and_then(|mtu| u16::try_from(mtu.count()).ok()).unwrap_or(USUAL_PACKET);
    chosen.unwrap_or(USUAL_PACKET.min(carried))
}

/// The congestion control that the options ask for on an interface of this speed, and how many bytes of symbol are left in a packet.
fn control(args: &SendFile, speed: LinkSpeed, packet_size: u16) -> Result<(Control, u16), ConfigError> {
    let widest = widest(args, offered(args, speed, packet_size)?, packet_size)?;
    let form = form(args.cci, &widest.channel_rates()?, packet_size);
    let headers = header_len(args.to.ip()) as usize
        + Profile { tsi: 0, form }.overhead(false)
        + sealing::seals(&args.secrecy).overhead();
    let symbol_size = symbol_size(packet_size, headers);
    let packet_size = Bytes::new(u64::from(symbol_size) + headers as u64);
    Ok((Control { form, packet_size, ..widest }, symbol_size))
}

/// The rates that the options ask for on an interface of this speed.
fn offered(args: &SendFile, speed: LinkSpeed, packet_size: u16) -> Result<OfferedRates, ConfigError> {
    let offered = args.rates.offered();
    match speed {
        LinkSpeed::Stated(speed) if !args.rates.has_top() => top::within(speed, offered, |rates| {
            let channels = widest(args, rates, packet_size)?.channel_rates()?;
            Ok(channels.into_iter().fold(Rate::ZERO, |sum, rate| sum + rate))
        }),
        LinkSpeed::Stated(_) | LinkSpeed::Virtual | LinkSpeed::Unknown => Ok(offered),
    }
}

/// These rates, with the widest form of congestion control information and packets of the most bytes.
fn widest(
    args: &SendFile,
    OfferedRates { low, high, ratio }: OfferedRates,
    packet_size: u16,
) -> Result<Control, ConfigError> {
    let Rates { cc, cc_set, .. } = &args.rates;
    Ok(Control {
        scheme: cc.name.to_owned(),
        settings: cc_set.clone(),
        ladder: Ladder::geometric(low, high, ratio)?,
        form: CciForm::Clocked,
        packet_size: Bytes::new(packet_size.into()),
    })
}

/// The number of a session without `--tsi` of a sender whose key lasts: the same for the same group and name, so that a sender that is
/// started again goes on where it was.
pub(crate) fn own_number(secret: &SecretKey, to: SocketAddr, name: &str) -> u16 {
    let [high, low, ..] = secret.derive("weir session number", format!("{to} {name}").as_bytes());
    u16::from_be_bytes([high, low]).max(1)
}

pub(crate) fn advise(error: &ConfigError) -> String {
    format!("{error}; `weir schemes` lists schemes and their settings")
}

/// The sender's control port: the one after the session's own. It is fixed so that a description written beforehand
/// (`--describe`) and the session itself agree.
pub(crate) fn control_address(local: IpAddr, to: SocketAddr) -> SocketAddr {
    SocketAddr::new(local, to.port().checked_add(1).unwrap_or(1024))
}

/// The largest symbol that fits next to the headers, a multiple of RaptorQ's alignment.
fn symbol_size(packet_size: u16, headers: usize) -> u16 {
    let room = usize::from(packet_size) - headers;
    (room - room % ALIGNMENT) as u16
}

/// How wide sequence numbers are, as the fastest channel needs it unless the user has chosen.
fn form(choice: CciChoice, channels: &[Rate], packet_size: u16) -> CciForm {
    let fastest = channels.iter().copied().max().unwrap_or(Rate::ZERO);
    let packets_per_sec = fastest.packets_per_sec(Bytes::new(u64::from(packet_size)));
    match choice {
        CciChoice::Auto => CciForm::for_packets_per_sec(packets_per_sec),
        CciChoice::Short => CciForm::Short,
        CciChoice::Long => CciForm::Long,
        CciChoice::Clocked => CciForm::Clocked,
    }
}

/// Bytes from the operating system's generator.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(Failure::of(Exit::Internal, "the system gives no random numbers"))?;
    Ok(bytes)
}

/// A stream of random numbers whose seed is from the operating system.
pub(crate) fn random_stream(name: &str) -> Result<Random, Failure> {
    Ok(Random::new(u64::from_be_bytes(random()?), name))
}

pub(crate) fn default_name(path: &Path) -> String {
    let name = path.file_name().or_else(|| path.components().next_back().map(Component::as_os_str));
    name.map_or_else(|| "files".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The interface that the user named, or the routing table's.
pub(crate) fn interface_choice(name: Option<&str>) -> InterfaceChoice {
    name.map_or(InterfaceChoice::Routed, |name| {
        name.parse().unwrap_or_else(|never: std::convert::Infallible| match never {})
    })
}

const ALIGNMENT: usize = 8;

/// Fits an Ethernet's 1500 bytes with room for the headers of a tunnel.
pub(crate) const USUAL_PACKET: u16 = 1456;

#[cfg(test)]
mod tests {
    use super::*;

    fn channels(high_mbps: u64) -> Vec<Rate> {
        let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(high_mbps), 1.5);
        ladder.expect("a usable ladder").channel_rates().collect()
    }

    #[test]
    fn symbols_fill_the_packet_up_to_their_alignment() {
        assert_eq!([symbol_size(1456, 56), symbol_size(1456, 76), symbol_size(256, 56)], [1400, 1376, 200]);
    }

    #[test]
    fn the_form_follows_the_fastest_channel() {
        assert_eq!(form(CciChoice::Auto, &channels(100), 1428), CciForm::Short);
        assert_eq!(form(CciChoice::Auto, &channels(1000), 1428), CciForm::Clocked);
        assert_eq!(form(CciChoice::Short, &channels(1000), 1428), CciForm::Short);
    }

    #[test]
    fn packets_fit_the_interface_unless_the_user_says_how_large_they_are() {
        let mtus = [1280, 1400, 1500, 9000, 65_536].map(|mtu| packet_size(None, Some(Bytes::new(mtu))));
        assert_eq!((mtus, packet_size(None, None)), ([1280, 1400, 1456, 1456, 1456], 1456));
        assert_eq!(packet_size(Some(1500), Some(Bytes::new(1400))), 1500, "it is refused, not changed");
    }

    #[test]
    fn the_highest_rate_follows_the_interface_unless_the_user_says_it() {
        let highest = |choose: Option<OfferedRates>, speed| {
            let mut args = SendFile::new(vec!["a".into()], "239.255.0.1:5004".parse().expect("a group and a port"));
            choose.into_iter().for_each(|rates| args.rates.choose(rates));
            let (control, _) = control(&args, speed, USUAL_PACKET).expect("valid options");
            control.ladder.rates().last().copied()
        };
        let gigabit = LinkSpeed::Stated(Rate::from_mbps(1000));
        assert_eq!(highest(None, gigabit), Some(Rate::from_mbps(900)));
        for speed in [LinkSpeed::Virtual, LinkSpeed::Unknown] {
            assert_eq!(highest(None, speed), Some(Rate::from_mbps(100)));
        }
        let asked = OfferedRates { low: Rate::from_mbps(1), high: Rate::from_mbps(20), ratio: 1.5 };
        assert_eq!(highest(Some(asked), gigabit), Some(Rate::from_mbps(20)));
    }

    #[test]
    fn a_sender_s_session_has_its_number_again_and_others_have_others() {
        let number =
            |seed, to: &str, name| own_number(&SecretKey::from_seed([seed; 32]), to.parse().expect("a group"), name);
        let first = number(1, "239.255.0.1:5004", "a.iso");
        assert_eq!(number(1, "239.255.0.1:5004", "a.iso"), first);
        let others = [number(2, "239.255.0.1:5004", "a.iso"), number(1, "239.255.0.2:5004", "a.iso")];
        assert!(others.iter().chain([&number(1, "239.255.0.1:5004", "b.iso")]).all(|other| *other != first));
    }

    #[test]
    fn a_folder_given_as_a_dot_still_has_a_name() {
        assert_eq!(default_name(Path::new("/srv/maps/")), "maps");
        assert_eq!(default_name(Path::new(".")), ".");
    }
}

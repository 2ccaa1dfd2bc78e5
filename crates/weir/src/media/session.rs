//! From the options of `weir send media` and what its input turned out to be to a session: its layers' rates, its description.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use weir_core::layers::Ladder;
use weir_media::{Packing, least_channel_rates};
use weir_net::Interface;
use weir_net::description::{Control, Description, MediaFormat};
use weir_net::groups;
use weir_net::socket::header_len;
use weir_object::keys::SecretKey;
use weir_units::{Bytes, Rate};
use weir_wire::media::{FORM, Media};

use super::programme::Survey;
use super::queue::Stream;
use super::spread::{self, Shares, Turns};
use crate::args::SendMedia;
use crate::exit::{Exit, Failure};
use crate::{epoch, key, sealing, session};

/// A session that can be sent.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) description: Description,
    pub(super) format: MediaFormat,
    pub(super) secret: SecretKey,
    /// Why the number of this start could not be remembered, in words.
    pub(super) epoch_trouble: Option<String>,
    /// A number of this start of the sender, by chance.
    pub(super) start: u16,
    /// Bytes of payload in every packet.
    pub(super) room: usize,
    /// By channel.
    pub(super) carried: Vec<Carried>,
}

/// What a channel carries.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Carried {
    /// A layer: its pictures, or its repair alone.
    Layer { layer: u8, has_pictures: bool },
    /// All layers in turn, for receivers that take any channels.
    All(Turns),
}

impl Carried {
    /// The layers that it carries, of a programme with this many.
    fn layers(&self, count: u8) -> RangeInclusive<u8> {
        match self {
            Carried::Layer { layer, .. } => *layer..=*layer,
            Carried::All(_) => 0..=count - 1,
        }
    }
}

/// Makes the session that the options ask for.
pub(super) fn offer(
    args: &SendMedia,
    to: SocketAddr,
    survey: &Survey,
    interface: &Interface,
) -> Result<Offer, Failure> {
    let usage = |text: String| Failure::new(Exit::Usage, text);
    let secret = key::secret(args.key.as_deref())?;
    let name = args.name.clone().unwrap_or_else(|| args.input.to_string());
    let tsi = match args.tsi {
        Some(tsi) => tsi,
        None if key::file(args.key.as_deref()).is_some() => session::own_number(&secret, to, &name),
        None => u16::from_be_bytes(session::random()?).max(1),
    };
    let headers = header_len(to.ip()) as usize + Media::LEN + sealing::seals(&args.secrecy).overhead();
    let room = usize::from(args.packet_size) - headers;
    let rates = rates(args, survey, room, headers)?;
    let control = control(args, &rates)?;
    let advise = |error| usage(session::advise(&error));
    let channel_rates = control.channel_rates().map_err(advise)?;
    let carried = match args.cc.has_base_channel() {
        true => layers_of_channels(&channel_rates, control.ladder.rates()),
        false => {
            let shares = Shares::of(&rates);
            (0..channel_rates.len()).map(|channel| Carried::All(shares.turns(channel))).collect()
        }
    };
    let layers = carried.iter().map(|carried| carried.layers(survey.layers)).collect();
    let channels = Description::channels_from(to, channel_rates.len()).ok_or_else(|| {
        let (count, group) = (channel_rates.len(), to.ip());
        usage(format!("{count} channels from {group} on do not fit into the multicast addresses; choose a lower group"))
    })?;
    if let Some(error) = channels.iter().find_map(|channel| groups::check(channel.ip(), args.source_specific).err()) {
        return Err(usage(format!("cannot send to {} channels from {} on: {error}", channels.len(), to.ip())));
    }
    let local = interface.source_address(to.ip()).map_err(Failure::of(Exit::Network, "cannot send"))?;
    let latency_ms = u16::try_from(args.latency.as_millis()).unwrap_or(u16::MAX);
    let encoding = survey.codec.encoding_name().to_owned();
    let format = MediaFormat { encoding, payload_type: PICTURES, layers, latency_ms };
    let sealing = sealing::described(&args.secrecy, &secret, tsi)?;
    // Receivers of packets without seals have nothing to compare it with.
    let (epoch, epoch_trouble) = match sealing.seals.is_none() {
        true => (None, None),
        false => {
            let (epoch, trouble) = epoch::next(key::file(args.key.as_deref()).as_deref(), tsi);
            (Some(epoch), trouble)
        }
    };
    let description = Description {
        name,
        tsi,
        flute_version: 2,
        source: args.source_specific.then_some(local),
        channels,
        ttl: args.ttl,
        control: Some(control),
        symbol_size: None,
        public_key: Some(secret.public().to_bytes()),
        epoch,
        expires: None,
        control_address: Some(session::control_address(local, to)),
        receipt_key: None,
        priority: None,
        sessions: None,
        sealing,
        media: Some(format.clone()),
    };
    description.check().map_err(advise)?;
    let start = u16::from_be_bytes(session::random()?);
    Ok(Offer { description, format, secret, epoch_trouble, start, room, carried })
}

/// The scheme, whose receivers choose between the rates from which on they have a layer more.
fn control(args: &SendMedia, rates: &[Rate]) -> Result<Control, Failure> {
    let not_rising = || {
        let text = "the layers' rates must rise: each is that of its layer and all below it together";
        Failure::new(Exit::Usage, text)
    };
    let layers = Ladder::from_rates(rates.to_vec()).ok_or_else(not_rising)?;
    let ladder = match args.cc.has_base_channel() {
        true => layers,
        false => Ladder::from_rates(whole_multiples(&spread::least_rates(rates))).ok_or_else(not_rising)?,
    };
    Ok(Control {
        scheme: args.cc.name.to_owned(),
        settings: args.cc_set.clone(),
        ladder,
        form: FORM,
        packet_size: Bytes::new(args.packet_size.into()),
    })
}

/// The cumulative rates of the layers: as the user says, or what the pictures of each need on channels of their own within a quarter of the
/// latency, and room for repair.
fn rates(args: &SendMedia, survey: &Survey, room: usize, headers: usize) -> Result<Vec<Rate>, Failure> {
    if let Some(rates) = args.layer_rates(survey.layers)? {
        return Ok(rates.to_vec());
    }
    let payload_bytes = Stream::most_payload(room);
    let packing = Packing { payload_bytes, overhead_bytes: room + headers - payload_bytes };
    let alone = least_channel_rates(&survey.samples, survey.layers, packing, smoothing(args.latency));
    let margin = 1.0 + args.repair + if args.input.is_live() { UNSEEN } else { 0.0 };
    let with_margin = alone.into_iter().map(|rate| rate.scale(margin).max(LEAST));
    Ok(with_margin
        .scan(Rate::ZERO, |below, rate| {
            *below = *below + rate;
            Some(*below)
        })
        .collect())
}

/// The rates raised to multiples of the lowest, which are those that receivers of FGLM can have.
fn whole_multiples(rates: &[Rate]) -> Vec<Rate> {
    let unit = rates.first().map_or(1, |lowest| lowest.bps().max(1));
    let mut multiples: Vec<u64> = rates.iter().map(|rate| rate.bps().div_ceil(unit)).collect();
    multiples.dedup();
    multiples.into_iter().map(|multiple| Rate::from_bps(multiple * unit)).collect()
}

/// For how long a picture may wait at the sender at most, if all goes well.
fn smoothing(latency: Duration) -> Duration {
    latency / 4
}

/// The layer that each channel is for, and whether it carries pictures: channels fill the layers' rates from below, as receivers take
/// them. What is beyond the highest rate, such as STAIR's stairs, repairs the layers in turn.
fn layers_of_channels(channels: &[Rate], cumulative: &[Rate]) -> Vec<Carried> {
    let mut below = Rate::ZERO;
    let channel = |(number, rate): (usize, &Rate)| {
        let place = cumulative.partition_point(|top| *top <= below);
        below = below + *rate;
        match place < cumulative.len() {
            true => Carried::Layer { layer: place as u8, has_pictures: true },
            false => Carried::Layer { layer: (number % cumulative.len()) as u8, has_pictures: false },
        }
    };
    channels.iter().enumerate().map(channel).collect()
}

/// RTP payload type of pictures; that of repair is one more.
const PICTURES: u8 = 98;
/// What is added to the rates of a pipe, whose pictures to come nobody has seen.
const UNSEEN: f64 = 0.25;
/// No layer is slower: congestion control needs packets to see anything.
const LEAST: Rate = Rate::from_kbps(48);

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps<const N: usize>(rates: [u64; N]) -> Vec<Rate> {
        rates.map(Rate::from_kbps).to_vec()
    }

    #[test]
    fn each_channel_carries_the_layer_that_its_place_among_the_rates_is_of() {
        let of = |layer, has_pictures| Carried::Layer { layer, has_pictures };
        let plain = layers_of_channels(&kbps([600, 400, 500]), &kbps([600, 1000, 1500]));
        assert_eq!(plain, [of(0, true), of(1, true), of(2, true)]);
        let split = layers_of_channels(&kbps([300, 300, 400, 500, 200, 700]), &kbps([600, 1000, 1500]));
        assert_eq!(split, [of(0, true), of(0, true), of(1, true), of(2, true), of(1, false), of(2, false)]);
    }

    #[test]
    fn rates_are_raised_to_multiples_of_the_lowest_each_once() {
        assert_eq!(whole_multiples(&kbps([600, 1000, 1100, 1801])), kbps([600, 1200, 2400]));
    }
}

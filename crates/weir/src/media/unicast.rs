//! `weir send media --unicast`: serves a layered programme to viewers who ask for it, to each as many layers as its path carries. RAP's
//! layer manager says which layer the next packet is of.

mod content;
mod reader;
mod shelf;

use std::net::Ipv6Addr;
use std::time::Duration;

use weir_core::registry::{self, Setting};
use weir_core::scheme::rap;
use weir_core::scheme::rap::quality::{LayerRates, QualityConfig};
use weir_media::{Packing, least_rates};
use weir_net::socket::header_len;
use weir_units::{Bytes, Rate};
use weir_wire::rtcp::handshake::Pictures;
use weir_wire::rtp::Rtp;

use super::programme::{Survey, input_in_words};
use super::send::open;
use crate::args::{PACED_DEFAULT, SendMedia};
use crate::exit::{Exit, Failure};
use crate::key;
use crate::live::{self, LiveSenderEvent, Service};
use crate::observer::Observer;
use content::{Form, MediaContent};
use shelf::Shelf;

/// Serves a layered programme to all who ask at [`SendMedia::unicast`], until it ends.
pub fn run(args: &SendMedia, observer: &mut dyn Observer<LiveSenderEvent>) -> Result<Exit, Failure> {
    let missing = || Failure::new(Exit::Usage, "--unicast PORT is missing: where viewers ask for the programme");
    let listen = args.unicast.ok_or_else(missing)?;
    if !args.secrecy.authenticate.is_empty() || args.secrecy.readers.is_some() {
        let text = "--authenticate and --readers are for programmes to a group: viewers who ask one by one have keys of their own with \
                    --encrypt, and what these seal nobody else can forge";
        return Err(Failure::new(Exit::Usage, text.to_owned()));
    }
    let scheme = registry::find(PACED_DEFAULT).expect("it is there");
    if let Some(Setting { key, .. }) = args.cc_set.iter().find(|setting| OWN.contains(&&setting.key[..])) {
        let text = format!("--cc-set {key} cannot be set here: the layers and --latency say it");
        return Err(Failure::new(Exit::Usage, text));
    }
    let settings = settings(args);
    live::check(scheme, &settings, args.packet_size)?;
    let sealed = live::sealed(args.secrecy.encrypt);
    let headers = header_len(Ipv6Addr::UNSPECIFIED.into()) as usize + Rtp::LEN_WITH_PART + sealed;
    let room = usize::from(args.packet_size) - headers;
    let (survey, mut programme) = open(args, &|| observer.is_interrupted())?;
    programme.told.extend(survey.told.iter().cloned());
    let layers = rates(args, &survey, Packing { payload_bytes: room, overhead_bytes: headers })?;
    let pictures = pictures(&survey);
    let form = Form {
        pictures,
        payload_type: PICTURES,
        room,
        quality: quality(args, &survey, layers),
        is_live: args.input.is_live(),
    };
    let shelf = Shelf::new(survey.codec, &spans(&survey), room);
    let service = Service {
        listen,
        viewers: args.viewers,
        scheme,
        settings,
        latency: args.latency,
        identity: args.secrecy.encrypt.then(|| key::secret(args.key.as_deref())).transpose()?,
        silence: args.silence,
        capture: args.output.pcap.clone(),
        input: input_in_words(&args.input, &args.layer),
        is_endless: args.input.is_endless(),
    };
    live::serve(&service, MediaContent::new(programme, shelf, form), observer)
}

/// The settings of the scheme: the user's, and those that media want.
fn settings(args: &SendMedia) -> Vec<Setting> {
    live::with_wanted(&args.cc_set, &[(TELL, "yes"), live::QUEUED_LOSSES])
}

/// What each layer plays by itself.
fn rates(args: &SendMedia, survey: &Survey, packing: Packing) -> Result<LayerRates, Failure> {
    let alone: Vec<Rate> = match args.layer_rates(survey.layers)? {
        Some(cumulative) => {
            let below = [Rate::ZERO].into_iter().chain(cumulative.iter().copied());
            cumulative.iter().zip(below).map(|(rate, below)| rate.saturating_sub(below)).collect()
        }
        None => {
            let least = least_rates(&survey.samples, survey.layers, packing, SMOOTHED);
            // Where a key picture is most of what comes at once, nothing is left for the layers above it.
            least.into_iter().zip(0..).map(|(least, layer)| least.max(mean(survey, layer, packing))).collect()
        }
    };
    let failed = || {
        Failure::new(Exit::Usage, "the layers' rates must rise: each is that of its layer and all below it together")
    };
    LayerRates::new(&alone).ok_or_else(failed)
}

fn quality(args: &SendMedia, survey: &Survey, layers: LayerRates) -> QualityConfig {
    let stream = live::stream(Bytes::new(args.packet_size.into()), Ipv6Addr::UNSPECIFIED.into());
    let rap = rap::configure(&stream, &args.cc_set).expect("the settings were checked");
    // Of what is live there is nothing to send ahead: a viewer has what is on its way to be shown, give or take some pictures.
    let span = spans(survey).into_iter().max().unwrap_or_default();
    let live = args.input.is_live().then_some(3 * span);
    let max_buffer = live.map_or(rap.max_buffer.max(args.latency), |slack| args.latency + slack);
    QualityConfig {
        layers,
        start_up_delay: args.latency,
        k_max: rap.k_max,
        max_buffer,
        live,
        average_over: rap.average_over,
        decrease: rap.decrease,
        repair: Some(max_buffer + args.latency),
    }
}

fn pictures(survey: &Survey) -> Pictures {
    let name = survey.codec.encoding_name();
    let codec = Pictures::CODECS.iter().position(|known| *known == name).unwrap_or_default();
    Pictures { codec: codec as u8, layers: survey.layers }
}

/// The rate of a layer's packets on average.
fn mean(survey: &Survey, layer: u8, packing: Packing) -> Rate {
    let of_layer = survey.samples.iter().filter(|sample| sample.layer == layer);
    let packets: usize = of_layer.map(|sample| sample.bytes.div_ceil(packing.payload_bytes)).sum();
    let bytes = Bytes::new((packets.max(1) * (packing.payload_bytes + packing.overhead_bytes)) as u64);
    let last = survey.samples.last().map_or(USUAL_SPAN, |sample| sample.at.max(USUAL_SPAN));
    bytes.per(last)
}

/// How long the pictures of each layer last on average.
fn spans(survey: &Survey) -> Vec<Duration> {
    let of = |layer| {
        let mut times = survey.samples.iter().filter(|sample| sample.layer == layer).map(|sample| sample.at);
        let first = times.next().unwrap_or_default();
        let (count, last) = times.fold((0_u32, first), |(count, _), at| (count + 1, at));
        last.saturating_sub(first).checked_div(count).unwrap_or(USUAL_SPAN)
    };
    (0..survey.layers).map(of).collect()
}

/// How long a picture lasts that is alone.
const USUAL_SPAN: Duration = Duration::from_millis(40);
/// The setting of schemes that tell what has become of payloads.
const TELL: &str = "tell_payloads";
/// Settings that layered media have their own options for.
const OWN: [&str; 4] = [TELL, "layers", "repair", "start_up_delay"];
/// RTP payload type of pictures.
const PICTURES: u8 = 98;
/// Over how long the rates of layers are smoothed at most: what buffers even out.
const SMOOTHED: Duration = Duration::from_secs(2);

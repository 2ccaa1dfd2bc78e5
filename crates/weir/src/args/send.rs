//! What `weir send` and `weir agent` take.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use weir_core::registry::{OfferedRates, Scheme, Setting};
use weir_media::FrameRate;
use weir_object::exclude::Pattern;
use weir_units::{Bytes, Rate};

use super::values::{self, RateRange};
use super::{Output, defaults, from_words, schemes};
use crate::exit::{Exit, Failure};
use crate::live::Input;
use crate::media;
use crate::stream::{LEAST_PACKET, StreamAddress};
use crate::top;

/// `weir send stream`.
#[derive(Debug, Args)]
pub struct SendStream {
    /// Multicast group and port of the data.
    #[arg(long, value_name = "GROUP:PORT", value_parser = values::group, help_heading = "Network")]
    pub to: SocketAddr,

    /// What to send: - for standard input, or a file.
    #[arg(long = "in", value_name = "-|FILE", default_value = "-")]
    pub input: Input,

    /// Send once this many receivers have joined, wherever in the tree.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub receivers: u32,

    /// Keep this much of what all have received, for receivers that come late, such as 256MiB [default: nothing].
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "Members that come late or are slow")]
    pub keep: Option<Bytes>,

    /// Wait for no receiver that takes less than this while it could have more, such as 500k [default: wait for all].
    #[arg(long, value_name = "RATE", help_heading = "Members that come late or are slow")]
    pub min_rate: Option<Rate>,

    /// How long to wait for a receiver that is slower than --min-rate, or silent; then it may catch up, and after as long again it is turned out.
    #[arg(long, value_name = "DURATION", value_parser = values::span, default_value = "60s", help_heading = "Members that come late or are slow")]
    pub evict_after: Duration,

    /// Address and port where members join [default: this host's, and the port after the group's].
    #[arg(long, value_name = "PORT|ADDR:PORT", value_parser = values::listener, help_heading = "Network")]
    pub listen: Option<SocketAddr>,

    /// Network interface to send on, by name (eth0) or by its address [default: the one that the route to the group takes].
    #[arg(long, value_name = "NAME|ADDR", help_heading = "Network")]
    pub iface: Option<String>,

    /// How many routers the packets may pass, plus one; 1 keeps them in the local network.
    #[arg(long, value_name = "HOPS", default_value_t = 1, help_heading = "Network")]
    pub ttl: u8,

    /// Bytes of a full packet, all headers included; the most that the whole path carries in one piece is best [default: 1456, or the
    /// interface's MTU if that is less].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(i64::from(LEAST_PACKET)..=9000), help_heading = "Network")]
    pub packet_size: Option<u16>,

    /// Number of the stream, 1 to 65535 [default: a random one].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub tsi: Option<u16>,

    /// File with the secret key that signs the stream's digest (Ed25519), made if missing [default: the one of `weir key new` if it is there, or else a new key each time].
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// Change a setting of MTCP; may be given several times. `weir schemes` lists them.
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting, help_heading = "Rate")]
    pub cc_set: Vec<Setting>,

    /// What is told while it runs, and where packets are written to.
    #[command(flatten)]
    pub output: Output,
}

/// `weir agent`.
#[derive(Debug, Args)]
pub struct Agent {
    /// The address of the stream, as `weir send stream` prints it.
    #[arg(value_name = "STREAM")]
    pub stream: StreamAddress,

    /// Address and port where members join [default: this host's, any port].
    #[arg(long, value_name = "PORT|ADDR:PORT", value_parser = values::listener, help_heading = "Network")]
    pub listen: Option<SocketAddr>,

    /// Begin to look for a place in the tree at this node instead of the sender.
    #[arg(long, value_name = "HOST:PORT", help_heading = "Network")]
    pub via: Option<String>,

    /// Give up when no node has taken this one for this long.
    #[arg(long, value_name = "DURATION", value_parser = values::span, default_value = "30s")]
    pub idle_timeout: Duration,

    /// Network interface to receive on, by name (eth0) or by its address [default: the one that the route to the group takes].
    #[arg(long, value_name = "NAME|ADDR", help_heading = "Network")]
    pub iface: Option<String>,

    /// Send nothing to the group even if no multicast comes here from the sender.
    #[arg(long, help_heading = "Network")]
    pub no_forward: bool,

    /// How many routers what is sent to the group may pass, plus one; 1 keeps it in the local network.
    #[arg(long, value_name = "HOPS", default_value_t = 1, help_heading = "Network")]
    pub ttl: u8,

    /// What is told while it runs, and where packets are written to.
    #[command(flatten)]
    pub output: Output,
}

/// `weir send live`.
#[derive(Debug, Args)]
pub struct SendLive {
    /// UDP port, or address and port, where viewers ask for the stream.
    #[arg(long, value_name = "PORT|ADDR:PORT", value_parser = values::listener, help_heading = "Network")]
    pub unicast: SocketAddr,

    /// How many viewers are served at a time, each at the rate that its own path can fairly carry; others are told that the sender is busy, and ask again.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Network")]
    pub viewers: u16,

    /// What to send: - for standard input, a file, or RTP or bare datagrams that another program sends to an address of this host.
    #[arg(long = "in", value_name = "-|FILE|rtp://ADDR:PORT|udp://ADDR:PORT", default_value = "-")]
    pub input: Input,

    /// Send bytes at this rate, such as 3M [default: an MPEG transport stream in a file goes by its own clock, everything else as fast as the path allows].
    #[arg(long, value_name = "RATE", help_heading = "Rate")]
    pub pace: Option<Rate>,

    /// How long after it came in a stream is given out at the viewer. Until then lost packets are sent again, within the rate that congestion control allows; 0s gives out at once and sends nothing again.
    #[arg(long, value_name = "DURATION", default_value = "300ms", value_parser = values::latency)]
    pub latency: Duration,

    /// RTP payload type, 0 to 127 [default: 33 for an MPEG transport stream, that of RTP that comes in, else 96].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=127))]
    pub payload_type: Option<u8>,

    /// Bytes of a full packet over IPv6, all headers included (20 fewer over IPv4); the most that the path carries in one piece is best.
    #[arg(long, value_name = "BYTES", default_value_t = 1456, value_parser = clap::value_parser!(u16).range(256..=9000), help_heading = "Network")]
    pub packet_size: u16,

    /// Encrypt the stream, for each viewer by a key of its own; viewers know the sender by the public half of --key.
    #[arg(long, help_heading = "Secrecy")]
    pub encrypt: bool,

    /// File with the secret key by which viewers of an encrypted stream know the sender (Ed25519), made if missing [default: the one of `weir key new` if it is there, or else a new key each time].
    #[arg(long, value_name = "FILE", requires = "encrypt", help_heading = "Secrecy")]
    pub key: Option<PathBuf>,

    /// A viewer that has not answered for this long is gone.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::span, help_heading = "Network")]
    pub silence: Duration,

    /// Congestion control scheme; `weir schemes` tells them apart.
    #[arg(long, value_name = "SCHEME", default_value = schemes::PACED_DEFAULT, value_parser = schemes::paced(), help_heading = "Rate")]
    pub cc: &'static Scheme,

    /// Change a setting of the scheme; may be given several times. `weir schemes` lists them.
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting, help_heading = "Rate")]
    pub cc_set: Vec<Setting>,

    /// What is told while it runs, and where packets are written to.
    #[command(flatten)]
    pub output: Output,
}

/// `weir send media`.
#[derive(Debug, Args)]
pub struct SendMedia {
    /// Video with temporal layers: a file, whose pictures go at their times, or - for standard input, whose pictures go as they come; VP9 or AV1 in IVF, HEVC or H.264 as raw Annex B bytes. Or an RTP stream of it that another program sends to an address of this host.
    #[arg(long = "in", value_name = "-|FILE|rtp://ADDR:PORT", default_value = "-")]
    pub input: media::Input,

    /// What an RTP stream holds: vp9, av1, h265 or h264.
    #[arg(long, value_name = "CODEC", value_parser = media::parse_codec)]
    pub codec: Option<weir_media::Codec>,

    /// Where each layer is a file or an RTP stream of its own: that of the next layer, from the second lowest up; may be given several times. VP9 or AV1 in IVF with times of one clock, HEVC or H.264 as raw Annex B bytes, or RTP with sender reports to the next port.
    #[arg(long, value_name = "FILE|rtp://ADDR:PORT")]
    pub layer: Vec<media::Input>,

    /// Multicast group and port of the base layer; the other layers take the groups that follow it, round-trip probes come to the next port.
    #[arg(long, value_name = "GROUP:PORT", value_parser = values::group, required_unless_present = "unicast", help_heading = "Network")]
    pub to: Option<SocketAddr>,

    /// In place of --to: UDP port, or address and port, where viewers ask for the programme (weir recv HOST:PORT). Each gets as many layers as its own path carries; a file is sent ahead of its time, so that viewers get over short congestion.
    #[arg(long, value_name = "PORT|ADDR:PORT", value_parser = values::listener, conflicts_with_all = ["to", "iface", "ttl", "source_specific", "repair", "cc", "session", "name", "tsi"], help_heading = "Network")]
    pub unicast: Option<SocketAddr>,

    /// With --unicast: how many viewers are served at a time; others are told that the sender is busy, and ask again.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024), requires = "unicast", help_heading = "Network")]
    pub viewers: u16,

    /// With --unicast: a viewer that has not answered for this long is gone.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::span, requires = "unicast", help_heading = "Network")]
    pub silence: Duration,

    /// Network interface to send on, by name (eth0) or by its address [default: the one that the route to the group takes].
    #[arg(long, value_name = "NAME|ADDR", help_heading = "Network")]
    pub iface: Option<String>,

    /// How many routers the packets may pass, plus one; 1 keeps them in the local network.
    #[arg(long, value_name = "HOPS", default_value_t = 1, help_heading = "Network")]
    pub ttl: u8,

    /// Describe the session as source-specific (SSM): receivers take packets from this sender's address only.
    #[arg(long, help_heading = "Network")]
    pub source_specific: bool,

    /// Bytes of a full packet, all headers included; with --to, what a picture does not fill is padding, so that smaller ones waste less.
    #[arg(long, value_name = "BYTES", default_value_t = 1200, value_parser = clap::value_parser!(u16).range(512..=1500), help_heading = "Network")]
    pub packet_size: u16,

    /// How long after the sender got it a picture is given out at the receivers. Until then it may wait for its turn and be repaired.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = values::latency)]
    pub latency: Duration,

    /// Rates of the layers, each with all below it and all headers, such as 400k,700k,1500k [default: what the pictures need within a quarter of --latency, and --repair].
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', help_heading = "Rates")]
    pub layer_rates: Vec<Rate>,

    /// Room for repair of lost packets in the rates that are not given, as a part of what the pictures need.
    #[arg(long, value_name = "SHARE", default_value = "15%", value_parser = values::loss, help_heading = "Rates")]
    pub repair: f64,

    /// Of standard input without --layer-rates: look at this much of it for its rates; what is looked at is not sent.
    #[arg(long, value_name = "DURATION", default_value = "4s", value_parser = values::span, help_heading = "Rates")]
    pub measure: Duration,

    /// Pictures a second of raw HEVC or H.264 that does not tell, such as 25 or 30000/1001.
    #[arg(long, value_name = "N[/M]", value_parser = media::parse_frame_rate)]
    pub frame_rate: Option<FrameRate>,

    /// Congestion control scheme of --to; `weir schemes` tells them apart. With --unicast it is rap.
    #[arg(long, value_name = "SCHEME", default_value = schemes::LAYERED_DEFAULT, value_parser = schemes::layered(), help_heading = "Rates")]
    pub cc: &'static Scheme,

    /// Change a setting of the scheme; may be given several times. `weir schemes` lists them.
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting, help_heading = "Rates")]
    pub cc_set: Vec<Setting>,

    /// Stop this long after the start, such as 30s, 10m or 1h30m [default: go on until the input ends].
    #[arg(long = "for", value_name = "DURATION", value_parser = values::span)]
    pub duration: Option<Duration>,

    /// Where to write the session description that receivers need; a player of RTP takes the base layer by it.
    #[arg(long, value_name = "FILE", default_value = "weir.sdp", help_heading = "Session")]
    pub session: PathBuf,

    /// Name of the session, for people [default: the name of the input].
    #[arg(long, value_name = "TEXT", help_heading = "Session")]
    pub name: Option<String>,

    /// Number of the session, 1 to 65535; two sessions of one sender need two numbers [default: one of the key, the group and the name, or with a new key each time a random one].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Session")]
    pub tsi: Option<u16>,

    /// File with the secret key that signs the description, or by which viewers of an encrypted programme know the sender (Ed25519), made if missing [default: the one of `weir key new` if it is there, or else a new key each time].
    #[arg(long, value_name = "FILE", help_heading = "Session")]
    pub key: Option<PathBuf>,

    /// What packets bear against strangers.
    #[command(flatten)]
    pub secrecy: Secrecy,

    /// What is told while it runs, and where packets are written to.
    #[command(flatten)]
    pub output: Output,
}

/// What the packets of a session bear against strangers.
#[derive(Debug, Args)]
pub struct Secrecy {
    /// Prove that packets are of this session: group, by a key that its members share, so that strangers cannot forge them; source, by the sender's key, so that members cannot either; may be given twice.
    #[arg(long, value_enum, value_name = "BY", help_heading = "Secrecy")]
    pub authenticate: Vec<Authenticate>,

    /// Encrypt packets by a key that the session's members share; it is in the description, which is then a secret, unless --readers is given. For viewers who ask one by one (--unicast), by a key of each.
    #[arg(long, help_heading = "Secrecy")]
    pub encrypt: bool,

    /// Let only the hosts in this file have the members' key, a line each as `weir key host` prints it; the description is then no secret.
    #[arg(long, value_name = "FILE", help_heading = "Secrecy")]
    pub readers: Option<PathBuf>,
}

/// `weir send file`.
#[derive(Debug, Args)]
pub struct SendFile {
    /// Files, folders and disks (block devices) to send; a folder goes with everything in it. - is standard input, which is read to its end and kept in TMPDIR [default: /var/tmp] until the sender ends.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,

    /// What standard input is called at the receivers.
    #[arg(long, value_name = "NAME", default_value = "stdin", value_parser = crate::standard::parse_name)]
    pub stdin_name: String,

    /// Send only what has changed since the last session with this file, and remember in it what was sent when this one ends as asked (--receipts, --for). Receivers keep the rest from then.
    #[arg(long, value_name = "FILE")]
    pub changes: Option<PathBuf>,

    /// Leave out what this matches in the folders, by the rules of gitignore: *.o by name, /build by path from the folder on, build/ folders alone, !keep.o takes back; may be given several times.
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<Pattern>,

    /// Multicast group and port of the base layer; the other layers take the groups that follow it, receipts and round-trip probes come to the next port.
    #[arg(long, value_name = "GROUP:PORT", value_parser = values::group, help_heading = "Network")]
    pub to: SocketAddr,

    /// Network interface to send on, by name (eth0) or by its address [default: the one that the route to the group takes].
    #[arg(long, value_name = "NAME|ADDR", help_heading = "Network")]
    pub iface: Option<String>,

    /// How many routers the packets may pass, plus one; 1 keeps them in the local network.
    #[arg(long, value_name = "HOPS", default_value_t = 1, help_heading = "Network")]
    pub ttl: u8,

    /// Describe the session as source-specific (SSM): receivers take packets from this sender's address only.
    #[arg(long, help_heading = "Network")]
    pub source_specific: bool,

    /// Bytes of a full packet, all headers included; the most that the whole path carries in one piece is best [default: 1456, or the
    /// interface's MTU if that is less].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(256..=9000), help_heading = "Network")]
    pub packet_size: Option<u16>,

    /// The rates, and what chooses among them.
    #[command(flatten)]
    pub rates: Rates,

    /// Stop this long after the first packet, such as 30s, 10m or 1h30m [default: go on until --receipts or Ctrl-C].
    #[arg(long = "for", value_name = "DURATION", value_parser = values::span, help_heading = "When to stop")]
    pub duration: Option<Duration>,

    /// Stop as soon as this many receivers have said that they have everything; with --for, whichever comes first. While at most 32 receive, they are asked what they lack, and get that again.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "When to stop")]
    pub receipts: Option<u32>,

    /// Stop as soon as all hosts in this file have everything, a name a line and perhaps its public key; a table at the end tells of each. With --for, whichever comes first.
    #[arg(long, value_name = "FILE", conflicts_with = "receipts", help_heading = "When to stop")]
    pub expect: Option<PathBuf>,

    /// The session's priority for hosts that receive several at once, 1 to 1000: a higher number goes first, unless the receiver says otherwise.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = "Session")]
    pub priority: Option<u16>,

    /// How many sessions are meant to be received together; their priorities are 1 to this. Receivers that share by static priorities go by it.
    #[arg(long, value_name = "N", requires = "priority", value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = "Session")]
    pub sessions: Option<u16>,

    /// Memory to use for encoding, in bytes, about: sets of up to a fifth of it are encoded once; of sets up to about its size a part is, and the rest again and again, as all of larger ones.
    #[arg(long, value_name = "BYTES", default_value = "512M", value_parser = values::size)]
    pub memory: Bytes,

    /// The share of packets that receivers are expected to lose at random, such as 1%, at most 50%: repair symbols for it are sent while the files are sent for the first time.
    /// For sets too large for --memory, receivers with such losses finish sooner where they are not asked what they lack (--receipts); receivers without losses get the repair symbols all the same.
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = values::loss)]
    pub expected_loss: f64,

    /// Where to write the session description that receivers need.
    #[arg(long, value_name = "FILE", default_value = "weir.sdp", help_heading = "Session")]
    pub session: PathBuf,

    /// Write the session description and stop; a later run with the same --tsi, --key, --iface and rates sends that session.
    #[arg(long, help_heading = "Session")]
    pub describe: bool,

    /// Announce the session while it is sent, so that `weir recv --announced` takes it: at the usual group for its scope (SAP, RFC 2974), or at this one.
    #[arg(long, value_name = "GROUP:PORT", num_args = 0..=1, require_equals = true, conflicts_with = "describe", value_parser = values::announcements, help_heading = "Session")]
    pub announce: Option<Option<SocketAddr>>,

    /// Name of the session, for people [default: the name of the first file].
    #[arg(long, value_name = "TEXT", help_heading = "Session")]
    pub name: Option<String>,

    /// Number of the session, 1 to 65535; two sessions of one sender need two numbers [default: one of the key, the group and the name, or with a new key each time a random one].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Session")]
    pub tsi: Option<u16>,

    /// File with the secret key that signs what is sent (Ed25519), made if missing [default: the one of `weir key new` if it is there, or else a new key each time].
    #[arg(long, value_name = "FILE", help_heading = "Session")]
    pub key: Option<PathBuf>,

    /// What packets bear against strangers.
    #[command(flatten)]
    pub secrecy: Secrecy,

    /// Width of sequence numbers: short (every FLUTE tool takes it), long or clocked (above some 500 Mbit/s); auto chooses by rate.
    #[arg(long, value_enum, value_name = "FORM", default_value_t, help_heading = "Session")]
    pub cci: CciChoice,

    /// FLUTE version to announce, 1 or 2: some receivers take only 1.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2), help_heading = "Session")]
    pub flute_version: u8,

    /// Send what receivers of other makers need: each small file by itself, and blocks of zeros. Weir's own get 32 and more small files in bundles, much sooner, and fill in zeros themselves. --md5 and --flute-version 1 say the same.
    #[arg(long, alias = "no-bundle", help_heading = "Session")]
    pub plain_flute: bool,

    /// Add MD5 digests for receivers of other makers; Weir's own verify BLAKE3 and the signature in any case.
    #[arg(long, help_heading = "Session")]
    pub md5: bool,

    /// What is told while it runs, and where packets are written to.
    #[command(flatten)]
    pub output: Output,
}

/// The rates of a session and what chooses among them.
#[derive(Debug, Args)]
pub struct Rates {
    // The defaults in these two texts are the registry's.
    #[arg(long = "rates", value_name = "LOW..HIGH", help = schemes::rates_help(), help_heading = "Rates")]
    chosen_rates: Option<RateRange>,

    #[arg(long = "ratio", value_name = "R", value_parser = values::ratio, help = schemes::ratio_help(), help_heading = "Rates")]
    chosen_ratio: Option<f64>,

    /// Congestion control scheme; `weir schemes` tells them apart.
    #[arg(long, value_name = "SCHEME", default_value = schemes::LAYERED_DEFAULT, value_parser = schemes::layered(), help_heading = "Rates")]
    pub cc: &'static Scheme,

    /// Change a setting of the scheme; may be given several times. `weir schemes` lists them.
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting, help_heading = "Rates")]
    pub cc_set: Vec<Setting>,
}

impl SendFile {
    /// To send these files and folders to the group and port `to`, in all else as the command line does by default.
    pub fn new(paths: Vec<PathBuf>, to: SocketAddr) -> SendFile {
        SendFile { paths, ..defaults(["weir", "-", "--to", &to.to_string()]) }
    }

    /// As `weir send file` takes them, with its errors.
    pub fn from_words(words: impl IntoIterator<Item = OsString>) -> Result<SendFile, Failure> {
        from_words(words)
    }
}

impl SendStream {
    /// To send standard input to the group and port `to`, in all else as the command line does by default.
    pub fn new(to: SocketAddr) -> SendStream {
        defaults(["weir", "--to", &to.to_string()])
    }
}

impl SendMedia {
    /// The layers' rates as the user says them, each with all below it; `None` if the pictures are to tell.
    pub(crate) fn layer_rates(&self, layers: u8) -> Result<Option<&[Rate]>, Failure> {
        match self.layer_rates.len() {
            0 => Ok(None),
            count if count == usize::from(layers) => Ok(Some(&self.layer_rates)),
            count => {
                let text = format!("--layer-rates names {count} rates, and {} holds {layers} layers", self.input);
                Err(Failure::new(Exit::Usage, text))
            }
        }
    }

    /// To send `input` to the group and port `to`, in all else as the command line does by default.
    pub fn new(input: media::Input, to: SocketAddr) -> SendMedia {
        SendMedia { input, ..defaults(["weir", "--to", &to.to_string()]) }
    }

    /// Serves `input` to viewers that ask at `listen`, with the command line's defaults for everything else.
    pub fn serving(input: media::Input, listen: SocketAddr) -> SendMedia {
        SendMedia { input, ..defaults(["weir", "--unicast", &listen.to_string()]) }
    }
}

impl SendLive {
    /// Sends `input` to viewers that ask at `listen`, with the command line's defaults for everything else.
    pub fn new(input: Input, listen: SocketAddr) -> SendLive {
        SendLive { input, ..defaults(["weir", "--unicast", &listen.to_string()]) }
    }
}

impl Rates {
    /// Lets receivers choose between these rates.
    pub fn choose(&mut self, OfferedRates { low, high, ratio }: OfferedRates) {
        (self.chosen_rates, self.chosen_ratio) = (Some(RateRange { low, high: Some(high) }), Some(ratio));
    }

    /// What the user chose, and the scheme's for what he did not, as for an interface whose speed is not known.
    pub fn offered(&self) -> OfferedRates {
        let scheme = self.cc.rates().expect("the parser lets only layered schemes through");
        let ratio = self.chosen_ratio.unwrap_or(scheme.ratio);
        let RateRange { low, high } = self.chosen_rates.unwrap_or(RateRange { low: scheme.low, high: None });
        let high = high.unwrap_or_else(|| scheme.high.max(top::least(low, ratio)));
        OfferedRates { low, high, ratio }
    }

    /// Whether the user said the highest rate.
    pub(crate) fn has_top(&self) -> bool {
        self.chosen_rates.is_some_and(|rates| rates.high.is_some())
    }
}

/// What proves that a packet is of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Authenticate {
    /// A tag by a key that the members share.
    Group,
    /// A signature by the sender's key over each burst of packets.
    Source,
}

/// The form of the congestion control information, as the user may choose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CciChoice {
    /// By the highest rate.
    #[default]
    Auto,
    /// 32 bits.
    Short,
    /// 64 bits.
    Long,
    /// 96 bits, clock included.
    Clocked,
}

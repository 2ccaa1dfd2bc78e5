//! n RAP streams next to n SACK connections: the set-up of the RAP paper's Tables 1 and 2, as ns-2 and we run it.

use std::time::Duration;

use weir_core::Endpoint;
use weir_core::registry::{self, Habitat, Setting, Stream};
use weir_link::{DropReason, LinkConfig};
use weir_sim::tcp::{Config, Flavour, Timers};
use weir_sim::traffic::Supply;
use weir_sim::{FlowId, LinkId, Monitor, Network, Packet, StreamConfig, Times, topology};
use weir_units::{Bytes, Random, Time};

/// What is varied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// Flows of each kind.
    pub(crate) flows: u32,
    /// Delay of the bottleneck.
    pub(crate) delay_ms: u64,
    /// Whether RAP adapts its gap between steps too.
    pub(crate) fine_grain: bool,
    /// RED with this largest probability, or drop-tail.
    pub(crate) max_p: Option<f64>,
}

/// What comes out between 30 and 120 s.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// Bandwidth of all RAP streams over that of all SACK connections.
    pub(crate) ratio: f64,
    /// Share of RAP's packets that the bottleneck dropped.
    pub(crate) rap_loss: f64,
    /// Share of SACK's packets that the bottleneck dropped.
    pub(crate) sack_loss: f64,
}

impl Setup {
    /// The bottleneck, bit/s: 5 KByte/s a flow.
    pub(crate) fn bps(&self) -> u32 {
        80_000 * self.flows
    }

    /// The buffer of the bottleneck in packets, that in service counted: 4 round trips of it, with RED 12.
    pub(crate) fn buffer(&self) -> u32 {
        let round_trip = 2.0 * (self.delay_ms + 6) as f64 / 1000.0;
        let round_trips = if self.max_p.is_some() { 12.0 } else { 4.0 };
        (round_trips * round_trip * f64::from(self.bps()) / 800.0).round() as u32
    }

    fn bottleneck(&self) -> LinkConfig {
        let (bps, delay, buffer) = (self.bps(), self.delay_ms, self.buffer());
        let text = match self.max_p {
            None => format!("rate={bps}bit,delay={delay}ms,buffer={}p", buffer - 1),
            Some(max_p) => {
                let max = 0.5 * f64::from(buffer);
                let red = format!("red(min=5,max={max},maxp={max_p},weight=0.002,gentle=no,mean=100B)");
                format!("rate={bps}bit,delay={delay}ms,buffer={buffer}p,queue={red}")
            }
        };
        text.parse().expect("a valid link")
    }

    /// Our run with these settings of RAP.
    pub(crate) fn run(&self, settings: &[(&str, &str)], seed: u64) -> Outcome {
        let mut net = Network::new(seed);
        let back = format!("rate={}bit,delay={}ms,buffer=100000p", self.bps(), self.delay_ms);
        let bell = topology::dumbbell(&mut net, &self.bottleneck(), &back.parse().expect("a valid link"));
        let side: LinkConfig = "rate=10M,delay=3ms,buffer=100000p".parse().expect("a valid link");
        let overhead = Duration::from_secs_f64(800.0 / f64::from(self.bps()));
        let mut share = Share { link: bell.forward, rap: Vec::new(), counts: Default::default() };
        let mut random = Random::new(seed, "starts");
        for number in 0..self.flows {
            let mut hosts = || [bell.left, bell.right].map(|router| topology::add_host(&mut net, router, &side));
            let ([from, to], [tcp_from, tcp_to]) = (hosts(), hosts());
            let mut times = || Times::from(Time::ZERO + Duration::from_secs_f64(2.0 * random.unit()));
            let config = StreamConfig { times: times(), lateness: overhead, supply: Supply::Endless };
            let (source, sink) = self.ends(settings, |end| net.random_for(&format!("{end} {number}")));
            share.rap.push(net.add_stream(from, to, source, sink, config).expect("a way").flow);
            net.add_tcp(tcp_from, tcp_to, sack(overhead), times()).expect("a way");
        }
        net.run_until(Time::from_secs(30), &mut ());
        net.run_until(Time::from_secs(120), &mut share);
        share.outcome()
    }

    fn ends(
        &self,
        settings: &[(&str, &str)],
        random: impl Fn(&str) -> Random,
    ) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
        let scheme = registry::find("rap").expect("RAP is registered");
        let stream = Stream { packet_size: Bytes::new(100), feedback_size: Bytes::new(40), habitat: Habitat::Lab };
        let fine_grain = ("fine_grain", if self.fine_grain { "yes" } else { "no" });
        let settings: Vec<Setting> = settings
            .iter()
            .chain([&fine_grain])
            .map(|(key, value)| Setting { key: (*key).to_owned(), value: (*value).to_owned() })
            .collect();
        let sound = "the settings are sound";
        let source = scheme.source(&stream, &settings, random("source")).expect(sound);
        (source, scheme.sink(&stream, &settings, random("sink")).expect(sound))
    }
}

fn sack(overhead: Duration) -> Config {
    Config {
        segment_size: Bytes::new(100),
        max_window: 1000,
        timers: Timers { granularity: Duration::from_millis(100), ..Timers::NS2 },
        overhead,
        ..Config::ns2(Flavour::Sack)
    }
}

/// Counts what passes the bottleneck: RAP's packets first, then SACK's.
struct Share {
    link: LinkId,
    rap: Vec<FlowId>,
    counts: [Counts; 2],
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    came: u64,
    dropped: u64,
    left: u64,
}

impl Share {
    fn of(&mut self, link: LinkId, packet: &Packet) -> Option<&mut Counts> {
        let kind = usize::from(!self.rap.contains(&packet.flow));
        (link == self.link).then_some(&mut self.counts[kind])
    }

    fn outcome(&self) -> Outcome {
        let [rap, sack] = self.counts;
        let loss = |counts: Counts| counts.dropped as f64 / counts.came as f64;
        Outcome { ratio: rap.left as f64 / sack.left as f64, rap_loss: loss(rap), sack_loss: loss(sack) }
    }
}

impl Monitor for Share {
    fn enqueue(&mut self, _: Time, link: LinkId, packet: &Packet) {
        self.of(link, packet).into_iter().for_each(|counts| counts.came += 1);
    }

    fn drop(&mut self, _: Time, link: LinkId, packet: &Packet, _: DropReason) {
        self.of(link, packet).into_iter().for_each(|counts| counts.dropped += 1);
    }

    fn dequeue(&mut self, _: Time, link: LinkId, packet: &Packet) {
        self.of(link, packet).into_iter().for_each(|counts| counts.left += 1);
    }
}

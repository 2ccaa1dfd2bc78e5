//! One TCP connection over a chain of links each way, in virtual time: what the tests of TCP and its agreement table run
//! on. Not the simulator, whose engine is not needed to judge a sender and its sink.

use std::time::Duration;

use weir_link::{Label, Link, LinkConfig};
use weir_sim::tcp::{Config, Segment, Sender, Sink};
use weir_units::{Bytes, Ecn, Random, Time};

/// Links in a row. Everything that must be said to `weir-link` is said here.
struct Chain {
    links: Vec<Link<Segment>>,
    dropped: u64,
}

impl Chain {
    fn new(links: &[&str], seed: u64, name: &str) -> Chain {
        let link = |(i, text): (usize, &&str)| {
            let config: LinkConfig = text.parse().expect("the test describes its links rightly");
            Link::new(config, Random::new(seed, &format!("{name} {i}")))
        };
        Chain { links: links.iter().enumerate().map(link).collect(), dropped: 0 }
    }

    fn enter(&mut self, now: Time, at: usize, size: Bytes, segment: Segment) {
        let label = Label { flow: 0, ecn: if segment.ecn_capable { Ecn::Ect } else { Ecn::NotEct } };
        self.links[at].enqueue(now, size, label, segment, &mut |_| self.dropped += 1);
    }

    fn next_arrival(&self) -> Option<Time> {
        self.links.iter().filter_map(Link::next_arrival).min()
    }

    /// Moves what has come out of a link by `now` into the next; what is at the end, and whether it is marked, is given.
    fn pass(&mut self, now: Time, size: Bytes) -> Option<(Segment, bool)> {
        for at in 0..self.links.len() {
            while let Some(out) = self.links[at].dequeue(now, &mut |_| self.dropped += 1) {
                if at + 1 == self.links.len() {
                    return Some((out.packet, out.marked));
                }
                self.enter(now, at + 1, size, out.packet);
            }
        }
        None
    }
}

/// A connection and its network.
pub(crate) struct Path {
    pub(crate) now: Time,
    pub(crate) sender: Sender,
    pub(crate) sink: Sink,
    forward: Chain,
    backward: Chain,
    loss: f64,
    random: Random,
    out: Vec<Segment>,
    /// Data segments that the loss process took.
    pub(crate) lost: u64,
}

impl Path {
    /// `loss` is the probability that a data segment is lost before the first link.
    pub(crate) fn new(config: Config, forward: &[&str], backward: &[&str], loss: f64, seed: u64) -> Path {
        Path {
            now: Time::ZERO,
            sender: Sender::new(config, Random::new(seed, "sender")),
            sink: Sink::new(&config),
            forward: Chain::new(forward, seed, "forward"),
            backward: Chain::new(backward, seed, "backward"),
            loss,
            random: Random::new(seed, "loss"),
            out: Vec::new(),
            lost: 0,
        }
    }

    /// Data segments that queues dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.forward.dropped
    }

    pub(crate) fn start(&mut self, at: Time) {
        self.now = at;
        let out = &mut self.out;
        self.sender.start(at, &mut |segment| out.push(segment));
        self.flush();
    }

    fn flush(&mut self) {
        let size = self.sender.config().segment_size;
        for segment in std::mem::take(&mut self.out) {
            if self.loss > 0.0 && self.random.chance(self.loss) {
                self.lost += 1;
            } else {
                self.forward.enter(self.now, 0, size, segment);
            }
        }
    }

    /// Runs until `end`, calling `watch` after each event at the sender.
    pub(crate) fn run(&mut self, end: Time, mut watch: impl FnMut(Time, &Sender)) {
        let (data, ack) = (self.sender.config().segment_size, self.sender.config().ack_size);
        loop {
            let timers = [self.sender.deadline(), self.sink.deadline()];
            let arrivals = [self.forward.next_arrival(), self.backward.next_arrival()];
            let Some(now) = timers.into_iter().chain(arrivals).flatten().min().filter(|at| *at <= end) else { break };
            assert!(now >= self.now, "time went back");
            self.now = now;
            while let Some((segment, marked)) = self.forward.pass(now, data) {
                let backward = &mut self.backward;
                self.sink.receive(now, &segment, marked, &mut |segment| backward.enter(now, 0, ack, segment));
            }
            let backward = &mut self.backward;
            self.sink.expire(now, &mut |segment| backward.enter(now, 0, ack, segment));
            while let Some((segment, _)) = self.backward.pass(now, ack) {
                let out = &mut self.out;
                self.sender.receive(now, &segment, &mut |segment| out.push(segment));
                watch(now, &self.sender);
                self.flush();
            }
            if self.sender.deadline().is_some_and(|at| at <= now) {
                let out = &mut self.out;
                self.sender.expire(now, &mut |segment| out.push(segment));
                watch(now, &self.sender);
                self.flush();
            }
        }
        self.now = end;
    }
}

/// ns-2's reference, alone: 1.5 Mbit/s and 50 ms behind 10 Mbit/s links, and a queue that holds 19 next to the one in service.
pub(crate) fn solo(config: Config, seed: u64) -> Path {
    let bottleneck = "rate=1.5M,delay=50ms,buffer=19p";
    let access = "rate=10M,delay=0.1ms,buffer=1000000p";
    let plain = "rate=1.5M,delay=50ms,buffer=1000000p";
    Path::new(config, &[access, bottleneck, access], &[access, plain, access], 0.0, seed)
}

/// ns-2's reference against loss: 10 Mbit/s and 50 ms without a queue limit.
pub(crate) fn lossy(config: Config, loss: f64, seed: u64) -> Path {
    let link = "rate=10M,delay=50ms,buffer=1000000p";
    Path::new(config, &[link], &[link], loss, seed)
}

/// What a run came to, in segments per second and segments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) goodput: f64,
    /// Averaged over the time from 10 s on.
    pub(crate) mean_cwnd: f64,
}

/// Starts at 0.1 s, as ns-2's reference does, and runs until `secs`.
pub(crate) fn run(path: &mut Path, secs: u64) -> Outcome {
    let begin = Time::from_millis(100);
    let settled = Time::from_secs(10);
    path.start(begin);
    let (mut area, mut last, mut cwnd) = (0.0, settled, 0.0);
    path.run(Time::from_secs(secs), |now, sender| {
        if now > settled {
            area += cwnd * seconds(now.since(last));
            last = now;
        }
        cwnd = sender.cwnd();
    });
    let end = Time::from_secs(secs);
    area += cwnd * seconds(end.since(last));
    Outcome {
        goodput: path.sender.acknowledged() as f64 / seconds(end.since(begin)),
        mean_cwnd: area / seconds(end.since(settled)),
    }
}

fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

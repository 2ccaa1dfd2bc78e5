//! A user of the web: request, response, thought, and again, on one connection that is kept (AVMRC §4.3).
//!
//! Only the server's side is a machine. The request is not sent: in a network whose upstream is not congested it takes as
//! long as the acknowledgement of the response's last segment did, so the server begins the next response one think time
//! after that acknowledgement has come. Responses are whole segments, the last one too.

use weir_units::{Random, Time, math};

use crate::tcp::{Config, Segment, Sender};

use super::Distribution;

/// What an HTTP user and its server are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HttpConfig {
    /// The connection. What it has to send at the start is the responses', whatever `supply` says.
    pub tcp: Config,
    /// Bytes of a response that a segment carries.
    pub segment_payload: u32,
    /// Sizes of responses, bytes.
    pub response: Distribution,
    /// Think times, seconds.
    pub think: Distribution,
    /// The window at the start of each response, segments.
    pub initial_cwnd: u32,
    /// The threshold at the start of each response, segments.
    pub initial_ssthresh: u32,
}

impl HttpConfig {
    /// AVMRC §4.3: sizes Pareto of mean 48 kB and shape 1.2, think times exponential of mean 0.5 s; each response begins
    /// with slow start, from 2 segments up to 64, as on a new connection.
    pub fn avmrc(tcp: Config) -> HttpConfig {
        HttpConfig {
            tcp,
            segment_payload: 1000,
            response: Distribution::Pareto { mean: 48_000.0, shape: 1.2 },
            think: Distribution::Exponential { mean: 0.5 },
            initial_cwnd: 2,
            initial_ssthresh: 64,
        }
    }
}

/// The server of one user. It is driven as a [`Sender`] is.
#[derive(Debug, Clone)]
pub struct HttpServer {
    config: HttpConfig,
    sender: Sender,
    random: Random,
    /// While the user thinks: when the next response begins.
    next_response: Option<Time>,
    responses: u64,
}

impl HttpServer {
    /// A server whose user has not asked yet. `random` decides on sizes and thoughts, `sender_random` is the sender's.
    pub fn new(config: HttpConfig, random: Random, sender_random: Random) -> HttpServer {
        let sender = Sender::new(Config { supply: Some(0), ..config.tcp }, sender_random);
        HttpServer { config, sender, random, next_response: None, responses: 0 }
    }

    /// The first request comes.
    pub fn start(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        self.sender.start(now, out);
        self.respond(now, out);
    }

    /// An acknowledgement has come.
    #[inline]
    pub fn receive(&mut self, now: Time, segment: &Segment, out: &mut impl FnMut(Segment)) {
        self.sender.receive(now, segment, out);
        let waits_for_a_thought = self.sender.is_idle() && !self.sender.is_finished();
        if waits_for_a_thought && self.next_response.is_none() && self.responses > 0 {
            self.next_response = Some(now + self.config.think.draw_span(&mut self.random));
        }
    }

    /// A deadline may have passed.
    pub fn expire(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        if self.next_response.is_some_and(|at| at <= now) {
            self.next_response = None;
            self.respond(now, out);
        }
        self.sender.expire(now, out);
    }

    /// The user goes away: there is no next response, and the one that is under way is brought to its end.
    pub fn stop(&mut self) {
        self.next_response = None;
        self.sender.close();
    }

    /// When [`HttpServer::expire`] is wanted, if nothing else happens.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        self.next_response.or_else(|| self.sender.deadline())
    }

    /// Responses begun.
    pub fn responses(&self) -> u64 {
        self.responses
    }

    /// The sender.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    fn respond(&mut self, now: Time, out: &mut impl FnMut(Segment)) {
        self.responses += 1;
        let bytes = self.config.response.draw(&mut self.random);
        let segments = math::ceil(bytes / f64::from(self.config.segment_payload.max(1))).max(1.0);
        self.sender.restart(self.config.initial_cwnd, self.config.initial_ssthresh);
        self.sender.supply(now, segments as u64, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Flavour, Sink};
    use std::time::Duration;

    #[test]
    fn the_next_response_begins_a_think_time_after_the_last_acknowledgement() {
        let tcp = Config { max_window: 64, ..Config::ns2(Flavour::NewReno) };
        let config = HttpConfig {
            response: Distribution::Fixed(2500.0),
            think: Distribution::Fixed(0.5),
            ..HttpConfig::avmrc(tcp)
        };
        let mut server = HttpServer::new(config, Random::new(1, "user"), Random::new(1, "sender"));
        let mut sink = Sink::new(&tcp);
        let mut sent = Vec::new();
        server.start(Time::ZERO, &mut |segment| sent.push(segment));
        assert_eq!(sent.len(), 2, "2500 bytes are three segments, and the window begins at two");
        let mut acks = Vec::new();
        while let Some(segment) = sent.pop() {
            sink.receive(Time::from_millis(50), &segment, false, &mut |ack| acks.push(ack));
            while let Some(ack) = acks.pop() {
                server.receive(Time::from_millis(100), &ack, &mut |segment| sent.push(segment));
            }
        }
        assert_eq!((server.sender().acknowledged(), server.responses()), (3, 1));
        assert_eq!(server.deadline(), Some(Time::from_millis(100) + Duration::from_millis(500)));
        server.expire(Time::from_millis(600), &mut |segment| sent.push(segment));
        assert_eq!((sent.len(), server.responses()), (2, 2));
        assert_eq!((sent[0].seq, server.sender().cwnd(), server.sender().ssthresh()), (3, 2.0, 64.0));
    }
}

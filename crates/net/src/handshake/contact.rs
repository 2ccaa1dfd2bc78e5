//! The client's side of the handshake: asks until it is answered, starts the stream, and notices when the server is gone. A
//! state machine without clock or socket.

use std::time::Duration;

use weir_units::Time;
use weir_wire::rtcp::handshake::{COOKIE_LEN, KEY_LEN, Kind, Message, Terms};

use crate::profile::Ids;

/// A client's dealings with a server, from the first question to the end.
#[derive(Debug, Clone)]
pub struct Contact {
    ssrc: u32,
    /// This host's public key for the stream; zeros without one.
    key: [u8; KEY_LEN],
    silence: Duration,
    stage: Stage,
    /// When to say something next.
    next: Time,
    interval: Duration,
    /// Questions since the server last said something.
    unanswered: u32,
    /// When the server last said something.
    heard: Time,
    /// Since when it is doubtful that the stream goes on, and why; `None` since the server last said that it does.
    doubt: Option<(Time, Doubt)>,
}

/// Why a stream may be over. Anyone can forge these, so they only shorten the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// The server's host says that nobody listens there.
    Refused,
    /// The server answers as to somebody whom it does not know: it may have been started again.
    Forgotten,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Asking,
    /// An offer came, and this was given back.
    Starting {
        cookie: [u8; COOKIE_LEN],
        stream_ssrc: u32,
    },
    /// Data came, or the server said that it would.
    Running {
        cookie: [u8; COOKIE_LEN],
        stream_ssrc: u32,
    },
}

/// What has become known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The server offers a stream on these terms.
    Offered(Terms),
    /// The server serves as many peers as it can.
    Busy,
    /// The server does not know yet what its stream is like.
    Later,
}

impl Contact {
    /// Begins at `now`. Once the stream runs, a server that says nothing for `silence` is gone.
    pub fn new(ssrc: u32, silence: Duration, now: Time) -> Contact {
        Contact {
            ssrc,
            key: [0; KEY_LEN],
            silence,
            stage: Stage::Asking,
            next: now,
            interval: FIRST_INTERVAL,
            unanswered: 0,
            heard: now,
            doubt: None,
        }
    }

    /// Brings this public key for streams that are encrypted.
    #[must_use]
    pub fn with_key(self, key: [u8; KEY_LEN]) -> Contact {
        Contact { key, ..self }
    }

    /// This host's SSRC.
    pub fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// When [`Contact::poll`] wants to be called.
    pub fn deadline(&self) -> Time {
        self.gone_at().map_or(self.next, |gone| gone.min(self.next))
    }

    /// The message to send at `now`, if it is time.
    pub fn poll(&mut self, now: Time) -> Option<Message> {
        if now < self.next {
            return None;
        }
        if matches!(self.stage, Stage::Starting { .. }) && self.unanswered >= START_TRIES {
            self.stage = Stage::Asking;
        }
        self.next = now + self.interval;
        self.interval = (self.interval * 2).min(LAST_INTERVAL);
        self.unanswered = self.unanswered.saturating_add(1);
        Some(match self.stage {
            Stage::Asking => Message::plain(Kind::Hello, self.ssrc),
            Stage::Starting { cookie, .. } => self.start(cookie),
            Stage::Running { cookie, .. } => {
                self.next = now + if self.doubt.is_some() { FIRST_INTERVAL } else { KEEP_ALIVE };
                self.start(cookie)
            }
        })
    }

    fn start(&self, cookie: [u8; COOKIE_LEN]) -> Message {
        let terms = Terms { ephemeral: self.key, ..Terms::default() };
        Message { cookie, terms, ..Message::plain(Kind::Start, self.ssrc) }
    }

    /// A message of the server came.
    pub fn on_message(&mut self, now: Time, message: &Message) -> Option<News> {
        match (message.kind, self.stage) {
            (Kind::Offer, Stage::Asking | Stage::Starting { .. }) => {
                self.stage = Stage::Starting { cookie: message.cookie, stream_ssrc: message.ssrc };
                (self.next, self.interval) = (now, FIRST_INTERVAL);
                self.note_sign_of_life(now);
                Some(News::Offered(message.terms))
            }
            (Kind::Busy, Stage::Asking | Stage::Starting { .. }) => {
                self.stage = Stage::Asking;
                (self.next, self.interval) = (now + LAST_INTERVAL, LAST_INTERVAL);
                self.note_sign_of_life(now);
                Some(News::Busy)
            }
            (Kind::Later, Stage::Asking | Stage::Starting { .. }) => {
                self.stage = Stage::Asking;
                (self.next, self.interval) = (now + FIRST_INTERVAL, FIRST_INTERVAL);
                self.note_sign_of_life(now);
                Some(News::Later)
            }
            (Kind::Offer | Kind::Busy | Kind::Later, Stage::Running { .. }) => {
                if self.doubt.is_none() {
                    // If it knows this host, it says so.
                    self.next = now;
                }
                self.doubt = Some((self.doubt.map_or(now, |(since, _)| since), Doubt::Forgotten));
                None
            }
            (Kind::Alive, stage) if stage.stream_ssrc() == Some(message.ssrc) => {
                self.run(now);
                None
            }
            _ => None,
        }
    }

    /// Data of the stream came.
    pub fn on_data(&mut self, now: Time) {
        self.run(now);
        self.next = now + KEEP_ALIVE;
    }

    /// The host of the server says that nobody listens there. Anyone can forge this, so it only shortens the wait.
    pub fn on_refusal(&mut self, now: Time) {
        self.doubt = self.doubt.or(Some((now, Doubt::Refused)));
    }

    /// The numbers that were agreed on, once an offer came.
    pub fn ids(&self) -> Option<Ids> {
        let local_ssrc = self.ssrc;
        self.stage.stream_ssrc().map(|remote_ssrc| Ids { local_ssrc, remote_ssrc, first_sequence: 0 })
    }

    /// Whether the stream runs.
    pub fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running { .. })
    }

    /// Whether nobody has answered the last questions.
    pub fn is_unanswered(&self) -> bool {
        self.unanswered >= UNANSWERED
    }

    /// Whether the server's host says that nobody listens there.
    pub fn is_refused(&self) -> bool {
        matches!(self.doubt, Some((_, Doubt::Refused)))
    }

    /// Whether the server answers as to somebody whom it does not know, while the stream runs.
    pub fn is_forgotten(&self) -> bool {
        matches!(self.doubt, Some((_, Doubt::Forgotten)))
    }

    /// Whether the stream ran and the server is gone.
    pub fn is_over(&self, now: Time) -> bool {
        self.gone_at().is_some_and(|gone| gone <= now)
    }

    fn gone_at(&self) -> Option<Time> {
        let silent = self.heard + self.silence;
        let doubtful = self.doubt.map(|(since, _)| since + AFTER_REFUSAL);
        self.is_running().then(|| doubtful.map_or(silent, |doubtful| doubtful.min(silent)))
    }

    fn run(&mut self, now: Time) {
        if let Stage::Starting { cookie, stream_ssrc } = self.stage {
            self.stage = Stage::Running { cookie, stream_ssrc };
            self.next = now + KEEP_ALIVE;
        }
        self.note_sign_of_life(now);
    }

    fn note_sign_of_life(&mut self, now: Time) {
        (self.heard, self.unanswered, self.doubt) = (now, 0, None);
    }
}

impl Stage {
    fn stream_ssrc(self) -> Option<u32> {
        match self {
            Stage::Asking => None,
            Stage::Starting { stream_ssrc, .. } | Stage::Running { stream_ssrc, .. } => Some(stream_ssrc),
        }
    }
}

/// The first wait for an answer; it doubles up to the last.
const FIRST_INTERVAL: Duration = Duration::from_millis(250);
const LAST_INTERVAL: Duration = Duration::from_secs(4);
/// A server that has nothing to send is asked for a sign of life this often, and so knows that the client is there.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// After this number of starts without data or an answer the cookie counts as too old.
const START_TRIES: u32 = 4;
/// Questions without an answer after which the user is told.
const UNANSWERED: u32 = 3;
/// How long a sign of life may take after the peer's host said that nobody listens there.
pub(crate) const AFTER_REFUSAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        payload_type: 33,
        packet_size: 1_400,
        latency_ms: 0,
        pictures: None,
        scheme: [0; 16],
        ephemeral: [0; 32],
        identity: [0; 32],
    };

    fn contact() -> Contact {
        Contact::new(7, Duration::from_secs(10), Time::ZERO)
    }

    fn sent_until(contact: &mut Contact, end: Time) -> Vec<(u64, Kind)> {
        let mut sent = Vec::new();
        while contact.deadline() <= end {
            let now = contact.deadline();
            let Some(message) = contact.poll(now) else { break };
            sent.push((now.as_micros() / 1_000, message.kind));
        }
        sent
    }

    fn offer() -> Message {
        Message { kind: Kind::Offer, ssrc: 9, cookie: [3; 16], terms: TERMS }
    }

    #[test]
    fn it_asks_ever_more_slowly_and_never_stops() {
        let mut contact = contact();
        let times: Vec<u64> = sent_until(&mut contact, Time::from_secs(16)).iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [0, 250, 750, 1_750, 3_750, 7_750, 11_750, 15_750]);
        assert!(contact.is_unanswered() && !contact.is_over(Time::from_secs(1_000)));
    }

    #[test]
    fn an_offer_is_taken_at_once_and_asked_for_again_when_nothing_comes_of_it() {
        let mut contact = contact();
        assert_eq!(contact.poll(Time::ZERO).map(|message| message.kind), Some(Kind::Hello));
        assert_eq!(contact.on_message(Time::from_millis(20), &offer()), Some(News::Offered(TERMS)));
        let first = contact.poll(Time::from_millis(20)).expect("it is time");
        assert_eq!((first.kind, first.cookie, first.ssrc), (Kind::Start, [3; 16], 7));
        let kinds: Vec<Kind> = sent_until(&mut contact, Time::from_secs(4)).iter().map(|(_, kind)| *kind).collect();
        assert_eq!(kinds, [Kind::Start, Kind::Start, Kind::Start, Kind::Hello]);
    }

    #[test]
    fn a_stream_without_data_is_kept_alive_by_messages() {
        let mut contact = contact();
        contact.on_message(Time::ZERO, &offer());
        contact.on_data(Time::ZERO);
        assert_eq!(sent_until(&mut contact, Time::from_secs(4)), [(2_000, Kind::Start), (4_000, Kind::Start)]);
        contact.on_message(Time::from_secs(4), &Message::plain(Kind::Alive, 9));
        assert!(!contact.is_over(Time::from_secs(13)) && contact.is_over(Time::from_secs(14)));
    }

    #[test]
    fn a_refusal_shortens_the_wait_and_a_message_takes_it_back() {
        let mut contact = contact();
        contact.on_message(Time::ZERO, &offer());
        contact.on_data(Time::ZERO);
        contact.on_refusal(Time::from_millis(500));
        assert!(!contact.is_over(Time::from_millis(1_400)) && contact.is_over(Time::from_millis(1_500)));
        contact.on_data(Time::from_millis(1_400));
        assert!(!contact.is_over(Time::from_secs(11)));
    }

    #[test]
    fn a_server_that_offers_a_stream_that_runs_is_asked_at_once_and_gone_unless_it_knows_better() {
        for kind in [Kind::Offer, Kind::Busy, Kind::Later] {
            let mut contact = contact();
            contact.on_message(Time::ZERO, &offer());
            contact.on_data(Time::ZERO);
            let other = Message { kind, ssrc: 11, cookie: [4; 16], terms: TERMS };
            assert_eq!(contact.on_message(Time::from_millis(500), &other), None);
            assert_eq!(contact.deadline(), Time::from_millis(500));
            contact.on_message(Time::from_millis(510), &Message::plain(Kind::Alive, 11));
            assert!(contact.is_forgotten(), "that is another stream");
            contact.on_message(Time::from_millis(520), &Message::plain(Kind::Alive, 9));
            assert!(!contact.is_forgotten() && !contact.is_over(Time::from_secs(10)), "anybody can say {kind:?}");
            contact.on_message(Time::from_millis(600), &other);
            let asked = sent_until(&mut contact, Time::from_millis(1_590));
            let starts = [600, 850, 1_100, 1_350].map(|at| (at, Kind::Start));
            assert_eq!(asked, starts);
            contact.on_message(Time::from_millis(1_400), &other);
            assert!(!contact.is_over(Time::from_millis(1_599)) && contact.is_over(Time::from_millis(1_600)));
        }
    }

    #[test]
    fn a_busy_server_is_asked_again_later() {
        let mut contact = contact();
        assert_eq!(contact.on_message(Time::ZERO, &Message::plain(Kind::Busy, 9)), Some(News::Busy));
        assert_eq!(sent_until(&mut contact, Time::from_secs(5)), [(4_000, Kind::Hello)]);
    }

    #[test]
    fn a_server_without_a_stream_yet_is_asked_again_soon() {
        let mut contact = contact();
        assert_eq!(contact.on_message(Time::ZERO, &Message::plain(Kind::Later, 9)), Some(News::Later));
        let soon = Time::ZERO + FIRST_INTERVAL;
        assert_eq!(sent_until(&mut contact, soon).len(), 1);
    }

    #[test]
    fn messages_of_another_stream_do_not_count() {
        let mut contact = contact();
        contact.on_message(Time::ZERO, &offer());
        contact.on_message(Time::ZERO, &Message::plain(Kind::Alive, 8));
        assert!(!contact.is_running());
        contact.on_message(Time::ZERO, &Message::plain(Kind::Alive, 9));
        assert!(contact.is_running());
    }
}

use super::*;

const SILENCE: Duration = Duration::from_secs(10);

/// A client that has been admitted at 0 s, and what it says to keep its place.
fn admitted() -> (Peers<()>, PeerId, Message) {
    let mut peers = Peers::new(SILENCE);
    peers.admit(Admission::new([1; 32]), 1);
    let hello = Message::plain(Kind::Hello, 7);
    assert!(peers.on_message(Time::ZERO, 0, client(), &hello, Some(Terms::default())));
    let answer = peers.next_outbound().expect("an answer").bytes;
    let offer = weir_wire::rtcp::packets(&answer).next().expect("one").expect("a packet");
    let offer = Message::decode(&offer).expect("an offer");
    let start = Message { cookie: offer.cookie, ..Message::plain(Kind::Start, 7) };
    assert!(peers.on_message(Time::ZERO, 0, client(), &start, Some(Terms::default())));
    let (id, news) = peers.next_news().expect("it is admitted");
    assert_eq!(news, News::Changed(PeerChange::Up));
    (peers, id, start)
}

fn client() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 9))
}

/// The second at which the client is gone that says this each second, to which data is sent from 5 s on if it `gets` any, and
/// that answers until `answers`.
fn gone_at(gets: bool, answers: u64) -> Option<u64> {
    let (mut peers, id, start) = admitted();
    (1..60).find(|second| {
        let now = Time::from_secs(*second);
        peers.on_message(now, 0, client(), &start, Some(Terms::default()));
        if gets && *second >= 5 {
            peers.on_sent(now, id);
        }
        if *second < answers {
            peers.on_heard(now, id);
        }
        peers.on_time(now);
        peers.next_news() == Some((id, News::Changed(PeerChange::Down(Departure::Silent))))
    })
}

#[test]
fn what_is_due_first_is_due_whatever_puts_others_off() {
    let (mut peers, id, _) = admitted();
    peers.on_time(Time::from_secs(1));
    assert_eq!(peers.deadline(), Some(Time::from_secs(10)));
    peers.on_heard(Time::from_secs(4), id);
    assert!(peers.deadline() <= Some(Time::from_secs(14)), "it may be early, and not late");
    peers.on_refused(Time::from_secs(5), client());
    assert_eq!(peers.deadline(), Some(Time::from_secs(5) + AFTER_REFUSAL));
    peers.on_time(Time::from_secs(6));
    assert_eq!(peers.next_news(), Some((id, News::Changed(PeerChange::Down(Departure::Refused)))));
}

#[test]
fn a_server_that_is_contacted_again_is_another_peer_with_another_number_of_this_host() {
    let mut peers: Peers<()> = Peers::new(SILENCE);
    peers.add_contact(0, client(), 7, Time::ZERO);
    let first = peers.find(client()).expect("it is there");
    let offer = Message { kind: Kind::Offer, ssrc: 9, cookie: [3; 16], terms: Terms::default() };
    assert!(peers.on_message(Time::ZERO, 0, client(), &offer, None));
    peers.contact_again(Time::from_secs(1), first, 8);
    let again = peers.find(client()).expect("it is there");
    assert!(again != first && peers.was_there(first) && peers.address(first).is_none());
    peers.on_time(Time::from_secs(1));
    let sent: Vec<Outbound> = std::iter::from_fn(|| peers.next_outbound()).collect();
    let hello = weir_wire::rtcp::packets(&sent[1].bytes).next().expect("one").expect("a packet");
    assert!(sent[0].is_goodbye, "the old stream is over");
    assert_eq!(Message::decode(&hello).map(|hello| (hello.kind, hello.ssrc)), Ok((Kind::Hello, 8)));
}

#[test]
fn who_asked_before_the_stream_was_known_is_answered_once_it_is() {
    let mut peers: Peers<()> = Peers::new(SILENCE);
    peers.admit(Admission::new([5; 32]), 9);
    let hello = Message::plain(Kind::Hello, 7);
    let others = [10, 11].map(|port| SocketAddr::new(client().ip(), port));
    assert!(peers.on_message(Time::ZERO, 0, others[0], &hello, None));
    assert!(peers.on_message(Time::from_millis(900), 0, client(), &hello, None));
    assert!(peers.on_message(Time::from_millis(900), 0, client(), &hello, None));
    let said = |peers: &mut Peers<()>| -> Vec<(SocketAddr, Kind)> {
        let all = std::iter::from_fn(|| peers.next_outbound());
        let kind = |bytes: &[u8]| {
            Message::decode(&weir_wire::rtcp::packets(bytes).next().expect("one").expect("a packet"))
                .expect("ours")
                .kind
        };
        all.map(|outbound| (outbound.to, kind(&outbound.bytes))).collect()
    };
    assert_eq!(said(&mut peers), [(others[0], Kind::Later), (client(), Kind::Later), (client(), Kind::Later)]);
    peers.answer_early(Time::from_secs(1), |_| None);
    assert_eq!(said(&mut peers), []);
    peers.answer_early(Time::from_secs(1), |_| Some(Terms::default()));
    assert_eq!(said(&mut peers), [(client(), Kind::Offer)], "the other one asked a second ago");
    peers.answer_early(Time::from_secs(1), |_| Some(Terms::default()));
    assert_eq!(said(&mut peers), []);
}

#[test]
fn who_gets_data_and_does_not_answer_loses_his_place_whatever_else_he_says() {
    assert_eq!(gone_at(false, 0), None, "there is nothing to answer");
    assert_eq!(gone_at(true, 0), Some(15));
    assert_eq!(gone_at(true, 20), Some(30), "what was sent at 20 s is not answered");
    assert_eq!(gone_at(true, 60), None);
}

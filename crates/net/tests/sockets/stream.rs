//! A paced stream over the loopback: what arrives, how the two ends meet, and what strangers cannot do.

mod parties;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use crate::common::stranger::{self, Stranger, flood};
use parties::{Screen, config, free_port, run_sink, run_source, run_source_for, silent_after};
use weir_net::host::{Departure, PeerChange};
use weir_wire::Feedback;
use weir_wire::rtcp::handshake::{self, Kind, Message};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

#[test]
fn a_stream_arrives_whole_in_order_and_marked_over_both_families() {
    for host in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
        let source = run_source(ANY, &config(), 500);
        let (ending, screen, got) = run_sink(SocketAddr::new(host, source.port()), &config(), Screen::default());
        let (sent, board) = source.join();
        assert_eq!((ending, &board.left[..]), (Departure::Bye, &[Departure::Complete][..]));
        assert_eq!(screen.payloads, (0..500).collect::<Vec<_>>());
        assert_eq!((sent.sent.packets, got.received.packets, got.delivered, screen.missing()), (500, 500, 500, 0));
        assert_eq!((sent.control_received, got.control_sent, got.marked), (500, 500, 0));
        assert_eq!((sent.ignored.total(), got.ignored.total(), sent.starved, sent.refused), (0, 0, 0, 0));
        assert_eq!(sent.sent.bytes, got.received.bytes);
        // IP and UDP, RTP, payload.
        let headers = if host.is_ipv4() { 28 } else { 48 };
        assert_eq!(sent.sent.bytes.count(), 500 * (headers + 12 + 100));
        assert_eq!(board.packet_size, headers + 12 + 100);
        assert_eq!(board.heard, 500, "the endpoint is told of every answer");
    }
}

#[test]
fn who_asks_before_the_sender_is_there_is_told_so_and_served_when_it_is() {
    let port = free_port();
    let at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    let viewer = std::thread::spawn(move || run_sink(at, &config(), Screen::default()));
    std::thread::sleep(Duration::from_millis(600));
    let source = run_source(at, &config(), 10);
    let (ending, screen, _) = viewer.join().expect("no panic");
    source.join();
    assert_eq!((ending, screen.payloads.len()), (Departure::Bye, 10));
    assert_eq!(screen.stages, [PeerChange::Unanswered { is_refused: true }, PeerChange::Up]);
}

#[test]
fn a_second_viewer_is_told_that_the_sender_is_busy_until_the_first_has_left() {
    let source = run_source(ANY, &config(), u64::MAX);
    let at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), source.port());
    let watching = |stop_at| std::thread::spawn(move || run_sink(at, &config(), Screen::of(stop_at)));
    let first = watching(300);
    source.until(|board| board.came == 1);
    let second = watching(10);
    let (ending, ..) = first.join().expect("no panic");
    assert_eq!(ending, Departure::Stopped);
    let (_, screen, _) = second.join().expect("no panic");
    assert_eq!(screen.stages, [PeerChange::Busy, PeerChange::Up]);
    source.stop();
    let (sent, board) = source.join();
    assert_eq!(board.left, [Departure::Bye, Departure::Bye]);
    assert!(sent.turned_away >= 1 && sent.peers == 2, "{sent:?}");
}

#[test]
fn each_of_several_viewers_has_an_endpoint_and_what_one_says_or_does_not_say_is_nothing_to_the_others() {
    let source = run_source_for(3, ANY, &silent_after(Duration::from_secs(2)), u64::MAX);
    let at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), source.port());
    let mut silent = Stranger::new(source.port());
    silent.become_viewer();
    let viewers = [400, 100].map(|stop_at| std::thread::spawn(move || run_sink(at, &config(), Screen::of(stop_at))));
    source.until(|board| board.came == 3);
    let [long, short] = viewers.map(|viewer| viewer.join().expect("no panic"));
    assert!(long.1.payloads.len() >= 400 && short.1.payloads.len() >= 100);
    assert!(long.1.payloads.iter().all(|payload| !short.1.payloads.contains(payload)), "each payload went to one");
    assert_eq!((long.2.ignored.total(), short.2.ignored.total()), (0, 0), "{:?} {:?}", long.2.ignored, short.2.ignored);
    source.until(|board| board.left.len() == 3);
    source.stop();
    let (sent, board) = source.join();
    assert_eq!(board.left, [Departure::Bye, Departure::Bye, Departure::Silent], "{board:?}");
    let answered = long.2.control_sent + short.2.control_sent;
    assert!(sent.control_received.abs_diff(answered) <= 4, "{} of {answered}", sent.control_received);
    assert_eq!((sent.peers, sent.turned_away, sent.sent_to.len()), (3, 0, 0), "all have gone");
}

#[test]
fn a_source_that_is_started_again_in_the_same_place_is_found_out_and_its_new_stream_taken() {
    let old = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let at = old.local_addr().expect("it is bound");
    let viewer = std::thread::spawn(move || run_sink(at, &config(), Screen::again_until(100)));
    // It begins a stream, and vanishes without a word.
    let stream = stranger::serve(&old);
    stream.send_data(1_000);
    drop((stream, old));
    let source = run_source(at, &config(), 100);
    let (ending, screen, got) = viewer.join().expect("no panic");
    source.join();
    assert_eq!(ending, Departure::Bye, "{screen:?}");
    // Where an answer of the viewer meets the moment in which nobody listens there, its host hears of that first.
    let why = screen.asked_again.as_slice();
    assert!(matches!(why, [Departure::Forgotten | Departure::Refused]), "long before the silence is over: {why:?}");
    let whole: Vec<u64> = [1_000].into_iter().chain(0..100).collect();
    assert_eq!(screen.payloads, whole);
    assert_eq!(got.peers, 2, "the old stream and the new one");
}

#[test]
fn a_viewer_that_falls_silent_is_gone_after_the_silence_and_one_that_closes_its_port_sooner() {
    for (closes, why) in [(false, Departure::Silent), (true, Departure::Refused)] {
        let silence = Duration::from_secs(if closes { 60 } else { 1 });
        let source = run_source(ANY, &silent_after(silence), u64::MAX);
        let mut stranger = Stranger::new(source.port());
        stranger.become_viewer();
        let kept = (!closes).then_some(stranger);
        source.until(|board| board.left == [why]);
        drop(kept);
        source.stop();
        source.join();
    }
}

#[test]
fn a_viewer_that_asks_to_start_again_and_again_and_answers_nothing_loses_its_place() {
    let source = run_source(ANY, &silent_after(Duration::from_secs(1)), u64::MAX);
    let mut stranger = Stranger::new(source.port());
    let start = stranger.start().encode();
    source.until(|board| {
        stranger.send(&start);
        board.left == [Departure::Silent]
    });
    source.stop();
    source.join();
}

#[test]
fn answers_to_what_was_never_sent_or_by_others_or_of_other_streams_do_not_reach_the_endpoint() {
    let source = run_source(ANY, &config(), u64::MAX);
    let mut viewer = Stranger::new(source.port());
    let newest = viewer.become_viewer();
    let answer = |newest: u16| Feedback { newest, reports: 1, arrived: 1, marked: 0, held: 0 };
    // 20 000 numbers ahead; and behind the first one.
    viewer.answer(viewer.ssrc, viewer.stream, &answer(newest.wrapping_add(20_000)));
    viewer.answer(viewer.ssrc, viewer.stream, &answer(newest.wrapping_sub(20_000)));
    source.until(|board| board.statistics.ignored.impossible == 2);
    // Of another stream, by another viewer's number, and from another address.
    viewer.answer(viewer.ssrc, viewer.stream ^ 1, &answer(newest));
    viewer.answer(viewer.ssrc ^ 1, viewer.stream, &answer(newest));
    let spoofer = Stranger::new(source.port());
    spoofer.answer(viewer.ssrc, viewer.stream, &answer(newest));
    source.until(|board| board.statistics.ignored.foreign == 3);
    // A farewell that is not the viewer's.
    spoofer.say_bye(viewer.ssrc);
    source.until(|board| board.statistics.ignored.foreign == 4);
    viewer.answer(viewer.ssrc, viewer.stream, &answer(newest));
    source.until(|board| board.heard == 1);
    viewer.say_bye(viewer.ssrc);
    source.until(|board| board.left == [Departure::Bye]);
    source.stop();
    assert_eq!(source.join().0.control_received, 1);
}

#[test]
fn nothing_is_sent_to_who_has_not_given_the_cookie_back_but_answers_no_longer_than_the_question() {
    let source = run_source(ANY, &config(), u64::MAX);
    let stranger = Stranger::new(source.port());
    for kind in [Kind::Hello, Kind::Start] {
        stranger.send(&Message::plain(kind, stranger.ssrc).encode());
        let answer = stranger.receive().expect("an offer");
        assert_eq!(answer.len(), handshake::LEN);
        assert!(stranger.receive().is_none(), "one answer, and no data");
    }
    source.stop();
    let (sent, board) = source.join();
    assert_eq!((sent.sent.packets, board.came), (0, 0));
}

#[test]
fn a_flood_of_rubbish_ends_neither_end_and_gets_no_answer() {
    let source = run_source(ANY, &config(), u64::MAX);
    let mut viewer = Stranger::new(source.port());
    let newest = viewer.become_viewer();
    let flooder = Stranger::new(source.port());
    flood(|rubbish| flooder.send(rubbish));
    flood(|rubbish| viewer.send(rubbish));
    source.until(|board| board.statistics.ignored.undecodable > 1_000);
    assert!(flooder.receive().is_none(), "rubbish gets no answer");
    viewer.answer(viewer.ssrc, viewer.stream, &Feedback { newest, reports: 1, arrived: 1, ..Feedback::default() });
    source.until(|board| board.heard == 1);
    source.stop();
    source.join();

    // The other end: a sender that says anything.
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let at = sender.local_addr().expect("it is bound");
    let config = silent_after(Duration::from_secs(2));
    let viewer = std::thread::spawn(move || run_sink(at, &config, Screen::default()));
    let stream = stranger::serve(&sender);
    flood(|rubbish| stream.send(rubbish));
    stream.send_data(7);
    stream.say_bye();
    let (ending, screen, got) = viewer.join().expect("no panic");
    assert_eq!((ending, screen.payloads), (Departure::Bye, vec![7]));
    assert!(got.ignored.undecodable > 1_000, "{got:?}");
}

#[test]
fn a_sender_that_vanishes_is_noticed() {
    for (closes, ending) in [(false, Departure::Silent), (true, Departure::Refused)] {
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let at = sender.local_addr().expect("it is bound");
        let silence = Duration::from_secs(if closes { 60 } else { 1 });
        let viewer = std::thread::spawn(move || run_sink(at, &silent_after(silence), Screen::default()));
        let stream = stranger::serve(&sender);
        stream.send_data(7);
        let stream = (!closes).then_some(stream);
        drop(sender);
        let (got, screen, _) = viewer.join().expect("no panic");
        assert_eq!((got, screen.payloads), (ending, vec![7]));
        drop(stream);
    }
}

#[test]
fn a_source_that_has_stopped_takes_no_new_viewer_and_ends() {
    let source = run_source(ANY, &config(), u64::MAX);
    let mut silent = Stranger::new(source.port());
    silent.become_viewer();
    source.stop();
    source.until(|board| board.left == [Departure::Stopped]);
    // The source says goodbye again and again, and is not answered. Meanwhile somebody asks, and asks.
    let begin = std::time::Instant::now();
    let asking = Stranger::new(source.port());
    while !source.is_over() && begin.elapsed() < Duration::from_secs(5) {
        asking.send(&Message::plain(Kind::Hello, asking.ssrc).encode());
        let answer = asking.receive().and_then(|answer| stranger::message(&answer));
        if let Some(offer) = answer.filter(|answer| answer.kind == Kind::Offer) {
            asking.send(&Message { cookie: offer.cookie, ..Message::plain(Kind::Start, asking.ssrc) }.encode());
        }
    }
    assert!(source.is_over(), "it still runs after {:?}", begin.elapsed());
    let (sent, board) = source.join();
    assert_eq!((sent.peers, board.came), (1, 1));
}

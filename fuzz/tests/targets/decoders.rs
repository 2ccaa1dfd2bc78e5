//! Any bytes at all, to every decoder: they are refused or understood.

use weir_net::seal::{MasterKey, Members, Opener, Verify};
use weir_wire::alc::{Alc, Content, FdtInstance, Profile};
use weir_wire::auth::{self, Authenticated};
use weir_wire::extension::{self, Question};
use weir_wire::fec::{NO_CODE, Oti, PayloadId, RAPTORQ};
use weir_wire::lack;
use weir_wire::lct::Lct;
use weir_wire::media::{self, Media, PicturePlace};
use weir_wire::mtcp::join::{Join, Node};
use weir_wire::mtcp::{self, Data};
use weir_wire::receipt::{self, Answer, Receipt};
use weir_wire::rtcp::handshake::{Kind, Message};
use weir_wire::rtcp::{self, App, Bye, congestion};
use weir_wire::rtp::Rtp;
use weir_wire::{CciForm, Feedback, Layered, Locator, Probe, probe};

#[test]
fn any_bytes_are_decoded_or_refused() {
    weir_fuzz::check!(50_000, seeds(), decode);
}

#[test]
fn the_seeds_are_decoded() {
    let all = seeds();
    let decoded = |is_it: fn(&[u8]) -> bool| all.iter().filter(|seed| is_it(seed)).count();
    assert_eq!(decoded(|seed| Alc::decode(seed).is_ok_and(|alc| alc.content.is_some())), 8);
    assert_eq!(decoded(|seed| Authenticated::decode(seed).is_ok()), 2);
    assert_eq!(decoded(|seed| Receipt::decode(seed).is_ok()), 1);
    assert_eq!(decoded(|seed| Answer::decode(seed).is_ok()), 1);
    assert_eq!(decoded(|seed| lack::Message::decode(seed).is_ok_and(|answer| answer.lacks().count() == 2)), 1);
    assert_eq!(decoded(|seed| rtcp::packets(seed).flatten().any(|packet| Message::decode(&packet).is_ok())), 1);
    assert_eq!(decoded(|seed| mtcp::Message::decode(seed).is_ok()), 2);
    assert_eq!(decoded(|seed| Media::decode(seed).is_ok_and(|(_, media, _)| media.picture.is_some())), 1);
}

fn decode(bytes: &[u8]) {
    if let Ok((header, rest)) = Lct::decode(bytes) {
        assert!(header.extensions.len() + header.cci.len() + rest.len() <= bytes.len());
    }
    if let Ok(alc) = Alc::decode(bytes) {
        for form in [CciForm::Short, CciForm::Long, CciForm::Clocked] {
            if let Ok(layered) = alc.layered(form) {
                assert!(u64::from(layered.sequence) >> form.sequence_bits() == 0);
                assert!(usize::from(layered.channel) < form.channels());
            }
        }
    }
    // Each extension takes at least a word, so that there are no more of them than words.
    assert!(extension::iter(bytes).count() <= bytes.len() / 4 + 1);
    if let Ok(sealed) = Authenticated::decode(bytes) {
        let mut stripped = vec![0; sealed.stripped_len()];
        assert_eq!(sealed.strip(&mut stripped), bytes.len() - auth::len(sealed.body.len()));
    }
    // Whoever has no key makes nothing that is opened.
    for members in [None, Some((Members::Tag, KEY)), Some((Members::Encrypt, KEY))] {
        let verify: Verify = Box::new(|_, _| false);
        assert!(Opener::new(7, 0, members, Some(verify)).open(0, bytes).is_err());
    }
    let _ = Receipt::decode(bytes);
    if let Ok(answer) = lack::Message::decode(bytes) {
        // A block takes eight bytes, and what follows the first that is malformed is not read.
        assert!(answer.lacks().filter(Result::is_ok).count() <= bytes.len() / 8);
    }
    let _ = Answer::decode(bytes);
    if let Ok((probe, tsi)) = Probe::decode(bytes) {
        assert_eq!(probe.encode(tsi), bytes);
    }
    match mtcp::Message::decode(bytes) {
        Ok((mtcp::Message::Data(_, payload), _)) => assert_eq!(mtcp::DATA_LEN + payload.len(), bytes.len()),
        Ok((mtcp::Message::Ack(ack), _)) => {
            assert!(bytes.len() == mtcp::ACK_LEN && ack.reported <= mtcp::MAX_REPORTED);
            assert!(ack.received & 1 == 0 && ack.received.checked_shr(ack.reported.into()).unwrap_or(0) == 0);
        }
        Ok((mtcp::Message::Join(join), tsi)) => {
            let mut again = [0; mtcp::join::MAX_JOIN_LEN];
            let len = join.encode(tsi, &mut again);
            assert_eq!(mtcp::Message::decode(&again[..len]), Ok((mtcp::Message::Join(join), tsi)));
        }
        Err(_) => {}
    }
    if let Ok((layered, _, payload)) = Media::decode(bytes) {
        assert!(usize::from(layered.channel) < media::FORM.channels() && payload.len() < bytes.len());
    }
    if let Ok((header, payload)) = Rtp::decode(bytes) {
        assert!(Rtp::LEN + payload.len() <= bytes.len() && header.payload_type < 128);
    }
    for packet in rtcp::packets(bytes).flatten() {
        let _ = (App::decode(&packet), Bye::decode(&packet), Message::decode(&packet));
        let Ok(report) = congestion::Report::decode(&packet) else { continue };
        for feedback in report.streams().flatten().filter_map(|stream| stream.feedback()) {
            assert!((1..=Feedback::MAX_REPORTS).contains(&feedback.reports) && feedback.arrived & 1 == 1);
            assert!(feedback.marked & !feedback.arrived == 0 && feedback.held <= Feedback::MAX_HELD);
            assert!(u64::from(feedback.arrived) >> feedback.reports == 0);
        }
    }
    for encoding_id in [NO_CODE, RAPTORQ] {
        if let Ok(oti) = Oti::decode(bytes, encoding_id) {
            assert_eq!(Oti::decode(&oti.encode(), encoding_id), Ok(oti));
        }
        if let Some(id) = bytes.first_chunk() {
            assert_eq!(PayloadId::decode(*id, encoding_id).encode(encoding_id), *id);
        }
    }
}

/// A message of each kind.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = packets();
    seeds.extend(sealed(&seeds[0]));
    let receipt = Receipt {
        kind: receipt::Kind::Receipt,
        tsi: 7,
        receiver: [1; 32],
        received_bytes: 1 << 40,
        elapsed_millis: 1_000,
        share: 10_000,
        proof: [2; 32],
        name: receipt::name_bytes("host"),
    };
    // What an answer begins with, in the place of a receipt's kind its own.
    let mut answer = receipt.encode_body()[..40].to_vec();
    answer[5] = 4;
    answer.resize(receipt::ANSWER_LEN, 0);
    let seals = [3; receipt::SIGNATURE_LEN + receipt::TAG_LEN];
    seeds.push([&receipt.encode_body()[..], &seals].concat());
    seeds.push(answer);
    let mut lacking = lack::Writer::new(7, &[1; 32], 2);
    for runs in [&[(3, 2), (9, 1)][..], &[]] {
        assert!(lacking.push(&lack::Lack { toi: 1, block: 2, needed: 3, runs }));
    }
    seeds.push([lacking.finish(true), &[3; receipt::TAG_LEN]].concat());
    seeds.push(Probe { kind: probe::Kind::Probe, clock_micros: 9 }.encode(7).to_vec());
    seeds.push([&Rtp { sequence: 1, ssrc: 2, ..Rtp::default() }.encode()[..], b"payload"].concat());
    let feedback = Feedback { newest: 9, reports: 8, arrived: 0b1011_0111, marked: 1, held: 3 };
    let mut report = [0; congestion::MAX_LEN];
    let length = congestion::encode(1, 2, &feedback, 3, &mut report);
    let hello = Message::plain(Kind::Hello, 7).encode();
    seeds.push([&report[..length], &hello, &Bye { ssrc: 7 }.encode()].concat());
    seeds.push(Data { number: 1, sent_micros: 2, is_repair: true, is_end: false }.encode(7).to_vec());
    let mut join = [0; mtcp::join::MAX_JOIN_LEN];
    let length = Join::Node(Node { at: Locator([1; 18]), level: 2, is_above: true }).encode(7, &mut join);
    seeds.push(join[..length].to_vec());
    let mut media = [8; Media::LEN + 9];
    let fill = media::filled(b"picture", 9, &mut media[Media::LEN..]);
    Media { rtp: Rtp::default(), picture: Some(PicturePlace::default()), fill }.encode(&Layered::default(), &mut media);
    seeds.push(media.to_vec());
    seeds
}

/// A packet with seals that nobody made.
fn sealed(packet: &[u8]) -> Vec<Vec<u8>> {
    let readable = [(1, &[5; 32][..]), (2, &[5; 80])].map(|(scheme, body)| {
        let mut out = vec![0; packet.len() + auth::len(body.len())];
        auth::insert(packet, scheme, 0, body, &mut out).expect("it fits");
        out
    });
    let encrypted = [&[0x5e, 1, 0, 7][..], &[5; 16], packet, &[6; 16]].concat();
    readable.into_iter().chain([encrypted]).collect()
}

/// Packets of a file and of a table, in each form.
fn packets() -> Vec<Vec<u8>> {
    let oti = Oti::RaptorQ { transfer_length: 100, symbol_size: 16, blocks: 2, sub_blocks: 1, alignment: 8 };
    let payload_id = PayloadId { block: 1, symbol: 2 };
    let file = Content { toi: 1 << 20, encoding_id: RAPTORQ, payload_id, fdt: None, oti: None, ask: None };
    let fdt = Some(FdtInstance { version: 2, id: 9, content_encoding: 3 });
    let ask = Some(Question { number: 4, receivers: 5 });
    let table = Content { toi: 0, fdt, oti: Some(oti), ask, ..file };
    let forms = [CciForm::Short, CciForm::Long, CciForm::Clocked].into_iter();
    let each = forms.flat_map(|form| [(form, file), (form, table)]);
    let encoded = each.map(|(form, content)| {
        let mut packet = [4; 200];
        let length = Profile { tsi: 7, form }.encode(&Layered::default(), &content, &mut packet);
        packet[..length + 16].to_vec()
    });
    encoded.collect()
}

/// A key that nobody has who sends.
const KEY: MasterKey = MasterKey::new([9; 32]);

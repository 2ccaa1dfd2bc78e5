//! Both sides of every seal, and what attackers do to packets.

use weir_wire::alc::{Alc, Content, MAX_OVERHEAD, Profile};
use weir_wire::fec::{PayloadId, RAPTORQ};
use weir_wire::{CciForm, Layered};

use super::*;

const TSI: u16 = 7;
const CHANNEL: u16 = 3;

/// Which seals: by members, by the source.
const KINDS: [(Option<Members>, bool); 5] = [
    (Some(Members::Tag), false),
    (Some(Members::Encrypt), false),
    (None, true),
    (Some(Members::Tag), true),
    (Some(Members::Encrypt), true),
];

/// Stands for Ed25519: nobody without the secret byte makes it.
fn sign(secret: u8) -> Sign {
    Box::new(move |message| signature(secret, message))
}

fn signature(secret: u8, message: &[u8]) -> [u8; 64] {
    let mut out = [0; 64];
    blake3::Hasher::new_keyed(&[secret; 32]).update(message).finalize_xof().fill(&mut out);
    out
}

fn master(byte: u8) -> MasterKey {
    MasterKey::new([byte; 32])
}

fn sealer((members, source): (Option<Members>, bool), start: Start) -> Sealer {
    Sealer::new(TSI, start, members.map(|how| (how, master(1))), source.then(|| sign(2)))
}

fn opener(kind: (Option<Members>, bool), epoch: u64) -> Opener {
    opener_of(TSI, kind, epoch)
}

fn opener_of(tsi: u16, (members, source): (Option<Members>, bool), epoch: u64) -> Opener {
    let verify = || -> Verify { Box::new(|message, given| signature(2, message) == *given) };
    Opener::new(tsi, epoch, members.map(|how| (how, master(1))), source.then(verify))
}

fn start(epoch: u64) -> Start {
    Start { epoch, salt: 9 }
}

fn packet(number: u32, symbol: usize) -> Vec<u8> {
    let layered = Layered { sequence: number, channel: CHANNEL, ..Layered::default() };
    let payload_id = PayloadId { block: 0, symbol: number };
    let content = Content { toi: 1, encoding_id: RAPTORQ, payload_id, fdt: None, oti: None, ask: None };
    let mut packet = vec![0; MAX_OVERHEAD];
    let len = Profile { tsi: TSI, form: CciForm::Short }.encode(&layered, &content, &mut packet);
    packet.truncate(len);
    packet.resize(len + symbol, number as u8);
    packet
}

/// Packets one behind the other, the last one shorter, and the length of the others.
fn batch(packets: u32) -> (Vec<u8>, usize) {
    let all: Vec<Vec<u8>> =
        (0..packets).map(|number| packet(number, if number + 1 < packets { 100 } else { 60 })).collect();
    (all.concat(), all[0].len())
}

fn sealed(sealer: &mut Sealer, packets: u32) -> Vec<Vec<u8>> {
    let ((batch, len), mut out) = (batch(packets), Vec::new());
    assert!(sealer.seal(CHANNEL, &batch, len, &mut out));
    out.chunks(len + sealer.overhead(packets as usize)).map(<[u8]>::to_vec).collect()
}

#[test]
fn what_was_sealed_is_opened_packet_by_packet_in_any_order() {
    for kind in KINDS {
        for packets in [1, 2, 3, 33, 64] {
            let (mut sealer, mut opener) = (sealer(kind, start(5)), opener(kind, 0));
            for round in 0..3 {
                let ((plain, len), sealed) = (batch(packets), sealed(&mut sealer, packets));
                assert_eq!(sealed.len(), packets as usize);
                for (packet, plain) in sealed.iter().zip(plain.chunks(len)).rev() {
                    assert_eq!(opener.open(CHANNEL, packet), Ok(plain), "{kind:?}, {packets} packets, round {round}");
                }
            }
        }
    }
}

#[test]
fn a_packet_with_any_one_bit_changed_is_refused() {
    for kind in KINDS {
        let mut sealer = sealer(kind, start(5));
        let packet = sealed(&mut sealer, 3).remove(1);
        let mut opener = opener(kind, 0);
        for bit in 0..packet.len() * 8 {
            let mut changed = packet.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let opened = opener.open(CHANNEL, &changed);
            assert!(opened.is_err(), "{kind:?}: bit {bit} of {}", packet.len() * 8);
        }
        assert!(opener.open(CHANNEL, &packet).is_ok(), "{kind:?}: what was refused left no trace");
    }
}

#[test]
fn a_packet_cut_short_or_without_a_seal_is_refused() {
    for kind in KINDS {
        let mut opener = opener(kind, 0);
        let packet = sealed(&mut sealer(kind, start(5)), 2).remove(0);
        (0..packet.len())
            .for_each(|len| assert!(opener.open(CHANNEL, &packet[..len]).is_err(), "{kind:?}: {len} bytes"));
        assert_eq!(opener.open(CHANNEL, &self::packet(0, 100)), Err(Refusal::Unsealed), "{kind:?}");
    }
}

#[test]
fn a_packet_counts_once_and_on_its_own_channel_and_session() {
    for kind in KINDS {
        let packets = sealed(&mut sealer(kind, start(5)), 2);
        let mut first = opener(kind, 0);
        assert!(first.open(CHANNEL + 1, &packets[0]).is_err(), "{kind:?}: another channel");
        assert!(first.open(CHANNEL, &packets[0]).is_ok());
        assert_eq!(first.open(CHANNEL, &packets[0]), Err(Refusal::Repeated), "{kind:?}");
        assert!(opener_of(TSI + 1, kind, 0).open(CHANNEL, &packets[0]).is_err(), "{kind:?}: another session");
    }
}

#[test]
fn an_earlier_start_counts_no_more_once_a_later_one_has_come_or_is_described() {
    for kind in KINDS {
        let old = sealed(&mut sealer(kind, start(5)), 3);
        let new = sealed(&mut sealer(kind, start(6)), 2);
        let mut opener = opener(kind, 5);
        assert!(opener.open(CHANNEL, &old[0]).is_ok() && opener.open(CHANNEL, &new[0]).is_ok(), "{kind:?}");
        assert_eq!(opener.open(CHANNEL, &old[1]), Err(Refusal::Old), "{kind:?}");
        assert_eq!(self::opener(kind, 6).open(CHANNEL, &old[2]), Err(Refusal::Old), "{kind:?}");
    }
}

#[test]
fn a_forged_later_start_does_not_displace_the_sender() {
    for kind in KINDS {
        let mut opener = opener(kind, 0);
        let packets = sealed(&mut sealer(kind, start(5)), 2);
        assert!(opener.open(CHANNEL, &packets[0]).is_ok());
        let (members, source) = (kind.0.map(|how| (how, master(66))), kind.1.then(|| sign(66)));
        let forged = sealed(&mut Sealer::new(TSI, start(1 << 40), members, source), 2);
        assert_eq!(opener.open(CHANNEL, &forged[0]), Err(Refusal::Forged), "{kind:?}");
        assert!(opener.open(CHANNEL, &packets[1]).is_ok(), "{kind:?}");
    }
}

#[test]
fn a_member_that_is_not_the_sender_cannot_sign_for_it() {
    let kind = (Some(Members::Tag), true);
    let mut member = Sealer::new(TSI, start(5), Some((Members::Tag, master(1))), Some(sign(66)));
    assert_eq!(opener(kind, 0).open(CHANNEL, &sealed(&mut member, 2)[0]), Err(Refusal::Forged));
}

#[test]
fn two_starts_of_one_epoch_never_seal_alike() {
    for kind in [(Some(Members::Tag), false), (Some(Members::Encrypt), false)] {
        let of = |salt| sealed(&mut sealer(kind, Start { epoch: 5, salt }), 1).remove(0);
        let (first, second) = (of(1), of(2));
        let tail = |packet: &[u8]| packet[packet.len() - 40..].to_vec();
        match kind.0 {
            Some(Members::Encrypt) => assert_ne!(tail(&first), tail(&second)),
            _ => assert_ne!(first[..60], second[..60]),
        }
    }
}

#[test]
fn tools_that_do_not_know_the_seals_read_what_is_not_encrypted() {
    for kind in KINDS.into_iter().filter(|(members, _)| *members != Some(Members::Encrypt)) {
        let packets = sealed(&mut sealer(kind, start(5)), 64);
        let alc = Alc::decode(&packets[9]).expect("an ALC packet");
        assert_eq!((alc.tsi, alc.symbol), (u64::from(TSI), &[9; 100][..]), "{kind:?}");
        assert_eq!(alc.layered(CciForm::Short).map(|layered| layered.sequence), Ok(9), "{kind:?}");
    }
}

#[test]
fn an_encrypted_packet_shows_nothing_of_what_it_holds() {
    let mut sealer = sealer((Some(Members::Encrypt), true), start(5));
    let packets = sealed(&mut sealer, 4);
    assert!(packets.iter().all(|packet| Alc::decode(packet).is_err()));
    assert!(packets[1..].iter().all(|packet| !packet.windows(8).any(|bytes| bytes == [1; 8])));
}

#[test]
fn messages_to_the_control_port_count_with_their_tag_alone() {
    let key = ControlKey::new(&master(1), TSI);
    let mut message = b"WRTT....".to_vec();
    key.seal(&mut message);
    assert_eq!((message.len(), key.open(&message)), (8 + ControlKey::LEN, Some(&b"WRTT...."[..])));
    for other in [ControlKey::new(&master(2), TSI), ControlKey::new(&master(1), TSI + 1)] {
        assert_eq!(other.open(&message), None);
    }
    message[3] ^= 1;
    assert_eq!((key.open(&message), key.open(b"short")), (None, None));
}

//! A receiver of layered video whose layers' packets and repair a stranger makes up: what comes out was sent, or the counts say that
//! something was wrong.

use weir_media::{Arrival, Assembler, Codec, Gate, Packetizer, Picture, PictureInfo, Protector, Recovery};

use crate::Draw;

const CODECS: [Codec; 3] = [Codec::Vp9, Codec::Hevc, Codec::H264];

#[test]
fn any_packets_of_pictures_and_repair_are_taken_or_refused() {
    weir_fuzz::check!(5_000, seeds(), |input: &[u8]| {
        receive(input);
    });
}

#[test]
fn the_seeds_bring_pictures_and_lost_packets() {
    let brought: Vec<_> = seeds().iter().map(|seed| receive(seed)).collect();
    assert_eq!(brought, [(4, 0), (4, 0), (4, 0), (0, 3)]);
}

/// How many pictures and lost packets come out of what an input says arrived.
fn receive(input: &[u8]) -> (usize, usize) {
    let mut draw = Draw(input);
    let mut assembler = Assembler::new(CODECS[usize::from(draw.u8() % 3)]);
    let (mut gate, mut recovery) = (Gate::default(), Recovery::default());
    let (mut pictures, mut recovered) = (0, 0);
    while !draw.is_empty() {
        let kind = draw.u8();
        let length = usize::from(draw.u16());
        let bytes = draw.bytes(length.min(1500));
        match kind % 3 {
            0 => {
                let picture = assemble(&mut assembler, bytes);
                pictures += usize::from(picture.is_some_and(|picture| gate.admit(&picture.info)));
            }
            1 => {
                let sequence = Draw(bytes).u16();
                recovered += recovery.source(sequence, &bytes[bytes.len().min(2)..]).len();
            }
            _ => recovered += recovery.repair(bytes).len(),
        }
    }
    let counts = assembler.counts();
    assert!(counts.pictures >= pictures as u64 && recovery.counts().recovered == recovered as u64);
    (pictures, recovered)
}

fn assemble(assembler: &mut Assembler, bytes: &[u8]) -> Option<Picture> {
    let mut draw = Draw(bytes);
    let (sequence, number, needs, flags) = (draw.u16(), draw.u16(), draw.u8(), draw.u8());
    let info = PictureInfo { number, needs, layer: flags & 7, is_key: flags & 8 != 0, is_leading: flags & 16 != 0 };
    let (starts, marker) = (flags & 32 != 0, flags & 64 != 0);
    assembler.push(Arrival { sequence, timestamp: number.into(), marker, starts, info, payload: draw.0 })
}

/// Four pictures of each codec, and a block of which three packets are lost.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<_> =
        (0..3_u8).zip(CODECS).map(|(index, codec)| [vec![index], stream_of(codec)].concat()).collect();
    let mut protector = Protector::default();
    let packets: Vec<_> = (0..10_u16).map(|n| vec![n as u8; 40 + usize::from(n)]).collect();
    (0..).zip(&packets).for_each(|(sequence, packet)| assert!(protector.push(sequence, packet)));
    let block = protector.close().expect("ten packets");
    let sources = (0_u16..)
        .zip(&packets)
        .skip(3)
        .map(|(sequence, packet)| framed(1, &[&sequence.to_be_bytes()[..], packet].concat()));
    let repairs = (0..3).map(|n| framed(2, &block.repair(n)));
    seeds.push([0].into_iter().chain(sources.chain(repairs).flatten()).collect());
    seeds
}

fn framed(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind][..], &(bytes.len() as u16).to_be_bytes(), bytes].concat()
}

fn stream_of(codec: Codec) -> Vec<u8> {
    let mut packetizer = Packetizer::new(codec, 64);
    let mut sequence = 0_u16;
    let packets = (0..4_u16).flat_map(|number| {
        let info =
            PictureInfo { number, needs: u8::from(number > 0), layer: 0, is_key: number == 0, is_leading: false };
        let data = [&[0, 0, 0, 1, 0x02, 1][..], &[7; 90], &[0, 0, 0, 1, 0x02, 1, 9]].concat();
        packetizer
            .packetize(&Picture { info, timestamp: number.into(), data })
            .into_iter()
            .map(move |payload| (info, payload))
    });
    let framed = packets.flat_map(|(info, payload)| {
        let flags = u8::from(info.is_key) << 3 | u8::from(payload.starts) << 5 | u8::from(payload.marker) << 6;
        sequence += 1;
        let head = [&sequence.to_be_bytes()[..], &info.number.to_be_bytes(), &[info.needs, flags]].concat();
        framed(0, &[head, payload.data].concat())
    });
    framed.collect()
}

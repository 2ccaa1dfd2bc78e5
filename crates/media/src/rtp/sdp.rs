//! How a session description tells a standard receiver what the payloads are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::split::av1::Profile;
use crate::{Codec, ParameterSets};

/// The `a=` lines of a session description that tell a standard receiver how to read a stream: `rtpmap`, and `fmtp` with the
/// parameter sets where the codec has such (RFC 7798 §7.1, RFC 6184 §8.1), or what a decoder must be able to do (AV1). Without line
/// ends.
pub fn sdp_lines(codec: Codec, payload_type: u8, parameter_sets: &ParameterSets) -> Vec<String> {
    let map = format!("a=rtpmap:{payload_type} {}/90000", codec.encoding_name());
    let ParameterSets { vps, sps, pps } = parameter_sets;
    let parameters: Vec<String> = match codec {
        Codec::Vp9 => Vec::new(),
        Codec::Av1 => av1_parameters(parameter_sets).into_iter().collect(),
        Codec::Hevc => [("vps", vps), ("sps", sps), ("pps", pps)]
            .into_iter()
            .filter(|(_, sets)| !sets.is_empty())
            .map(|(name, sets)| format!("sprop-{name}={}", text(sets.iter())))
            .collect(),
        Codec::H264 => {
            let profile = sps.first().and_then(|sps| sps.get(1..4));
            let profile =
                profile.map(|bytes| format!("profile-level-id={:02x}{:02x}{:02x}", bytes[0], bytes[1], bytes[2]));
            let sets = (!sps.is_empty()).then(|| format!("sprop-parameter-sets={}", text(sps.iter().chain(pps))));
            [Some("packetization-mode=1".into()), profile, sets].into_iter().flatten().collect()
        }
    };
    if parameters.is_empty() {
        return vec![map];
    }
    vec![map, format!("a=fmtp:{payload_type} {}", parameters.join(";"))]
}

/// RTP payload format for AV1, §7.1.
fn av1_parameters(parameter_sets: &ParameterSets) -> Option<String> {
    let Profile { profile, level, tier } = Profile::of_unit(parameter_sets.sps.first()?)?;
    Some(format!("profile={profile};level-idx={level};tier={tier}"))
}

fn text<'a>(sets: impl Iterator<Item = &'a Vec<u8>>) -> String {
    sets.map(|set| STANDARD.encode(set)).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_sets_stand_in_fmtp() {
        let sets = ParameterSets { vps: vec![vec![0x40, 1]], sps: vec![vec![0x67, 100, 0, 31]], pps: vec![vec![0x68]] };
        let lines = |codec| sdp_lines(codec, 96, &sets);
        assert_eq!(lines(Codec::Vp9), ["a=rtpmap:96 VP9/90000"]);
        let hevc = "a=fmtp:96 sprop-vps=QAE=;sprop-sps=Z2QAHw==;sprop-pps=aA==";
        assert_eq!(lines(Codec::Hevc), ["a=rtpmap:96 H265/90000", hevc]);
        let h264 = "a=fmtp:96 packetization-mode=1;profile-level-id=64001f;sprop-parameter-sets=Z2QAHw==,aA==";
        assert_eq!(lines(Codec::H264), ["a=rtpmap:96 H264/90000", h264]);
        assert_eq!(sdp_lines(Codec::Hevc, 97, &ParameterSets::default()), ["a=rtpmap:97 H265/90000"]);
    }
}

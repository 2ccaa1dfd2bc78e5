//! The keys that a tenant shares with peers, as their handshakes agree on them: an encrypted stream's sender with each viewer.

use std::collections::BTreeMap;

use weir_core::PeerId;
use weir_wire::rtcp::handshake::Terms;

use crate::profile::Ids;
use crate::seal::PairConfig;
use crate::seal::pair::{self, About, Pair, PairOpener, PairSealer};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// What this host brings; `None` if it shares none.
    own: Option<PairConfig>,
    shared: BTreeMap<PeerId, Shared>,
}

/// Keys that are shared with a peer.
#[derive(Debug)]
struct Shared {
    about: About,
    opener: PairOpener,
    /// Until the sending side takes it.
    sealer: Option<PairSealer>,
}

/// What a datagram is before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened {
    /// In the clear, of a host with which this one shares no keys.
    Clear,
    /// In the clear, of one with which it does: only the handshake is.
    Handshake,
    /// It was sealed, and has been opened.
    Sealed,
    /// It is not sealed as it should be.
    Forged,
}

impl Keys {
    /// Shares keys with peers from now on.
    pub(super) fn bring(&mut self, own: PairConfig) {
        self.own = Some(own);
    }

    /// This host's public key for the run.
    pub(super) fn public(&self) -> Option<[u8; 32]> {
        self.own.as_ref().map(PairConfig::public)
    }

    /// What a sender offers, with its keys if it encrypts.
    pub(super) fn terms(&self, terms: Terms) -> Terms {
        match self.own.as_ref().and_then(|own| Some((own, own.identity.as_ref()?))) {
            Some((own, identity)) => Terms { ephemeral: own.public(), identity: identity.public, ..terms },
            None => terms,
        }
    }

    /// Whether an offer may be from the sender that this host expects.
    pub(super) fn may_be_from(&self, offered: &Terms) -> bool {
        let expected = self.own.as_ref().and_then(|own| own.expected);
        expected.is_none_or(|expected| expected == offered.identity)
    }

    /// A sender offers a stream on these terms; if it is encrypted, this host has the keys, too. Whether the offer can be taken: one with keys
    /// that are of no use cannot, and a receiver that has begun with a sender's keys takes neither another sender's nor none.
    pub(super) fn agree_with_sender(&mut self, peer: PeerId, offered: &Terms, ids: Ids) -> bool {
        let known = self.shared.get(&peer).map(|shared| &shared.about);
        let Some(own) = self.own.as_ref().filter(|_| offered.is_encrypted()) else { return known.is_none() };
        let about = About {
            ephemeral: offered.ephemeral,
            identity: offered.identity,
            viewer: own.public(),
            viewer_ssrc: ids.local_ssrc,
            stream_ssrc: ids.remote_ssrc,
        };
        match known {
            // The same offer again changes nothing, as the numbers of packets go on.
            Some(known) if *known == about => true,
            Some(known) if known.identity != about.identity => false,
            _ => {
                let pair = own.with_sender(&about);
                self.share(peer, about, pair)
            }
        }
    }

    /// A viewer starts a stream that was offered on these terms, with a key of its own. Whether it can be taken.
    pub(super) fn agree_with_viewer(&mut self, peer: PeerId, offered: &Terms, started: &Terms, ids: Ids) -> bool {
        let Some(own) = self.own.as_ref().filter(|_| offered.is_encrypted()) else { return true };
        let about = About {
            ephemeral: offered.ephemeral,
            identity: offered.identity,
            viewer: started.ephemeral,
            viewer_ssrc: ids.remote_ssrc,
            stream_ssrc: ids.local_ssrc,
        };
        let pair = own.with_viewer(&about);
        self.share(peer, about, pair)
    }

    /// Keeps keys; those of some peers are of no use, and change nothing. Whether they are kept.
    fn share(&mut self, peer: PeerId, about: About, pair: Option<Pair>) -> bool {
        let Some(Pair { sealer, opener }) = pair else { return false };
        self.shared.insert(peer, Shared { about, opener, sealer: Some(sealer) });
        true
    }

    /// What a datagram of a peer is; `out` is what was in it, if it was sealed.
    pub(super) fn open(&mut self, peer: PeerId, datagram: &[u8], out: &mut Vec<u8>) -> Opened {
        let Some(shared) = self.shared.get_mut(&peer) else { return Opened::Clear };
        if !pair::is_sealed(datagram) {
            Opened::Handshake
        } else if shared.opener.open(datagram, out) {
            Opened::Sealed
        } else {
            Opened::Forged
        }
    }

    /// What seals packets to a peer, once.
    pub(super) fn take_sealer(&mut self, peer: PeerId) -> Option<PairSealer> {
        self.shared.get_mut(&peer)?.sealer.take()
    }

    /// A sender has gone, and is to be found again: only one with the same lasting key, if it had one.
    pub(super) fn expect_again(&mut self, peer: PeerId) {
        if let (Some(own), Some(shared)) = (&mut self.own, self.shared.get(&peer)) {
            own.expected = Some(shared.about.identity);
        }
    }

    /// The peer has gone.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.shared.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::Identity;
    use ed25519_dalek::SigningKey;

    const PEER: PeerId = PeerId(0);

    fn config(secret: u8, identity: Option<u8>) -> PairConfig {
        let identity = identity.map(|seed| {
            let key = SigningKey::from_bytes(&[seed; 32]);
            Identity { public: key.verifying_key().to_bytes(), agreement: key.to_scalar_bytes() }
        });
        PairConfig { secret: [secret; 32], identity, expected: None }
    }

    fn keys(secret: u8, identity: Option<u8>) -> Keys {
        Keys { own: Some(config(secret, identity)), ..Keys::default() }
    }

    fn ids(remote_ssrc: u32) -> Ids {
        Ids { local_ssrc: 1, remote_ssrc, first_sequence: 0 }
    }

    #[test]
    fn an_offer_whose_keys_are_of_no_use_is_not_taken_and_opens_no_way_in_the_clear() {
        let (sender, mut viewer) = (keys(1, Some(3)), keys(2, None));
        let offered = sender.terms(Terms::default());
        for bad in [Terms { ephemeral: [0; 32], ..offered }, Terms { identity: [2; 32], ..offered }] {
            assert!(!viewer.agree_with_sender(PEER, &bad, ids(9)));
        }
        assert!(viewer.agree_with_sender(PEER, &offered, ids(9)));
        assert!(!viewer.agree_with_sender(PEER, &Terms { ephemeral: [0; 32], ..offered }, ids(9)), "it comes too late");
        assert_eq!(viewer.open(PEER, b"in the clear", &mut Vec::new()), Opened::Handshake);
    }

    #[test]
    fn who_has_begun_with_a_sender_takes_neither_another_s_offer_nor_one_without_keys() {
        let (sender, other, mut viewer) = (keys(1, Some(3)), keys(4, Some(5)), keys(2, None));
        let offered = sender.terms(Terms::default());
        assert!(viewer.agree_with_sender(PEER, &offered, ids(9)) && viewer.take_sealer(PEER).is_some());
        assert!(!viewer.agree_with_sender(PEER, &other.terms(Terms::default()), ids(9)));
        assert!(!viewer.agree_with_sender(PEER, &Terms::default(), ids(9)));
        assert!(
            viewer.agree_with_sender(PEER, &offered, ids(9)) && viewer.take_sealer(PEER).is_none(),
            "the same again"
        );
        assert!(
            viewer.agree_with_sender(PEER, &offered, ids(8)) && viewer.take_sealer(PEER).is_some(),
            "another stream"
        );
    }

    #[test]
    fn a_sender_that_is_looked_for_again_is_known_by_the_key_that_it_had() {
        let (sender, other, mut viewer) = (keys(1, Some(3)), keys(4, Some(5)), keys(2, None));
        assert!(viewer.agree_with_sender(PEER, &sender.terms(Terms::default()), ids(9)));
        viewer.expect_again(PEER);
        viewer.forget(PEER);
        let started_again = keys(6, Some(3));
        assert!(viewer.may_be_from(&started_again.terms(Terms::default())));
        assert!(!viewer.may_be_from(&other.terms(Terms::default())) && !viewer.may_be_from(&Terms::default()));
    }

    #[test]
    fn a_host_that_shares_no_keys_takes_offers_as_they_are() {
        let mut plain = Keys::default();
        assert!(plain.agree_with_sender(PEER, &Terms::default(), ids(9)));
        assert_eq!(plain.open(PEER, b"data", &mut Vec::new()), Opened::Clear);
    }
}

//! The seals of a session to groups: which ones the sender's options ask for, and where a receiver has the key for them from.
//!
//! The members' key is made of the sender's, so that a sender started again with its key needs no new description. It stands in the
//! description, which is then a secret; or the description holds it for the hosts of a list alone, encrypted for each (HPKE, RFC 9180: X25519,
//! HKDF-SHA256, AES-128-GCM), and is none.

use std::path::Path;

use hpke::aead::AesGcm128;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable, single_shot_open, single_shot_seal};
use weir_net::Tenant;
use weir_net::description::{Description, Sealing, WrappedKey};
use weir_net::profile::Profile;
use weir_net::seal::{ControlKey, MasterKey, Members, Opener, Sealer, Seals, Sign, Start, Verify};
use weir_object::keys::{PublicKey, SecretKey};

use crate::args::{Authenticate, Secrecy};
use crate::exit::{Exit, Failure};
use crate::{hosts, identity, session};

/// The seals that the options ask for.
pub(crate) fn seals(args: &Secrecy) -> Seals {
    let members = match args.encrypt {
        true => Some(Members::Encrypt),
        false => args.authenticate.contains(&Authenticate::Group).then_some(Members::Tag),
    };
    Seals { members, source: args.authenticate.contains(&Authenticate::Source) }
}

/// What receivers are told of them.
pub(crate) fn described(args: &Secrecy, secret: &SecretKey, tsi: u16) -> Result<Sealing, Failure> {
    let seals = seals(args);
    let mut sealing = Sealing { seals, ..Sealing::default() };
    match (&args.readers, seals.members) {
        (Some(_), None) => {
            let message = "--readers says who may have the key of packets, and there is none: add --encrypt or --authenticate group";
            return Err(Failure::new(Exit::Usage, message.to_owned()));
        }
        (Some(path), Some(_)) => sealing.wrapped = wrapped(path, secret, tsi)?,
        (None, Some(_)) => sealing.key = Some(members_key(secret, tsi)),
        (None, None) => {}
    }
    Ok(sealing)
}

fn members_key(secret: &SecretKey, tsi: u16) -> MasterKey {
    MasterKey::new(secret.derive("weir 2026 key of the members of a session", &tsi.to_be_bytes()))
}

/// The members' key for each host of a list.
fn wrapped(path: &Path, secret: &SecretKey, tsi: u16) -> Result<Vec<WrappedKey>, Failure> {
    let key = members_key(secret, tsi);
    let about = about(&secret.public(), tsi);
    let refuse = |name: &str, why: &str| {
        let path = path.display();
        Failure::new(Exit::Usage, format!("--readers {path}: {name} {why}"))
    };
    let wrap = |host: &hosts::Expected| {
        let receiver = host
            .key()
            .ok_or_else(|| refuse(host.name(), "has no public key; `weir key host` there prints the line"))?;
        wrap(&key, &receiver, &about).ok_or_else(|| refuse(host.name(), "has a public key that is of no use"))
    };
    hosts::read("--readers", path)?.iter().map(wrap).collect()
}

fn wrap(key: &MasterKey, receiver: &PublicKey, about: &[u8]) -> Option<WrappedKey> {
    let public = <X25519HkdfSha256 as Kem>::PublicKey::from_bytes(&receiver.agreement()).ok()?;
    let (ephemeral, text) = single_shot_seal::<AesGcm128, HkdfSha256, X25519HkdfSha256>(
        &OpModeS::Base,
        &public,
        PURPOSE,
        key.as_bytes(),
        about,
    )
    .ok()?;
    let bytes: Vec<u8> = ephemeral.to_bytes().iter().copied().chain(text).collect();
    Some(WrappedKey { receiver: receiver.to_bytes(), key: bytes.try_into().ok()? })
}

fn unwrap(wrapped: &WrappedKey, secret: &SecretKey, about: &[u8]) -> Option<MasterKey> {
    let secret = <X25519HkdfSha256 as Kem>::PrivateKey::from_bytes(&secret.agreement()).ok()?;
    let (ephemeral, text) = wrapped.key.split_at(32);
    let ephemeral = <X25519HkdfSha256 as Kem>::EncappedKey::from_bytes(ephemeral).ok()?;
    let key = single_shot_open::<AesGcm128, HkdfSha256, X25519HkdfSha256>(
        &OpModeR::Base,
        &secret,
        &ephemeral,
        PURPOSE,
        text,
        about,
    );
    Some(MasterKey::new(key.ok()?.try_into().ok()?))
}

/// What a wrapped key is bound to.
fn about(sender: &PublicKey, tsi: u16) -> Vec<u8> {
    sender.to_bytes().into_iter().chain(tsi.to_be_bytes()).collect()
}

/// Seals what a sender sends.
pub(crate) fn seal<P: Profile>(
    tenant: &mut Tenant<P>,
    description: &Description,
    secret: &SecretKey,
) -> Result<(), Failure> {
    let Description { sealing, tsi, .. } = description;
    if sealing.seals.is_none() {
        return Ok(());
    }
    let master = members_key(secret, *tsi);
    let secret = secret.clone();
    let sign: Option<Sign> = sealing.seals.source.then(|| -> Sign { Box::new(move |bytes| secret.sign(bytes)) });
    let epoch = description.epoch.expect("a start has an epoch");
    let start = Start { epoch, salt: u32::from_be_bytes(session::random()?) };
    tenant.seal(0, Sealer::new(*tsi, start, sealing.seals.members.map(|how| (how, master)), sign));
    if sealing.seals.members.is_some() {
        tenant.tag(0, &ControlKey::new(&master, *tsi));
    }
    Ok(())
}

/// Opens what comes of a session, the tenant's by this number, for the receiver of this name: packets of starts of the sender that are not
/// before `least_epoch`.
pub(crate) fn open<P: Profile>(
    tenant: &mut Tenant<P>,
    number: usize,
    description: &Description,
    least_epoch: u64,
    name: Option<&str>,
) -> Result<(), Failure> {
    let Description { sealing, tsi, .. } = description;
    let Seals { members, source } = sealing.seals;
    if sealing.seals.is_none() {
        return Ok(());
    }
    let sender = description.public_key.and_then(|key| PublicKey::from_bytes(&key).ok());
    let members = members.map(|how| Ok((how, key(sealing, sender, *tsi, name)?))).transpose()?;
    let verify = source.then(|| -> Verify {
        Box::new(move |bytes, signature| sender.is_some_and(|sender| sender.verifies(bytes, signature)))
    });
    if let Some((_, master)) = &members {
        tenant.tag(number, &ControlKey::new(master, *tsi));
    }
    tenant.open(number, Opener::new(*tsi, least_epoch, members, verify));
    Ok(())
}

/// The members' key as the description has it for everybody, or for this receiver.
fn key(sealing: &Sealing, sender: Option<PublicKey>, tsi: u16, name: Option<&str>) -> Result<MasterKey, Failure> {
    if let Some(key) = sealing.key {
        return Ok(key);
    }
    let refuse = |message: String| Failure::new(Exit::Session, message);
    let own = identity::known(name)?;
    let public = own.key.public();
    let wrapped = sealing.wrapped.iter().find(|wrapped| wrapped.receiver == public.to_bytes()).ok_or_else(|| {
        refuse(format!(
            "the session is sealed, and its description has no key for this receiver: have the sender add it to the file of its --readers:\n\
             {} {public}",
            own.name
        ))
    })?;
    let sender = sender.ok_or_else(|| refuse("the description holds no key of the sender".to_owned()))?;
    unwrap(wrapped, &own.key, &about(&sender, tsi)).ok_or_else(|| {
        refuse("the key that the description has for this receiver cannot be opened: it was changed, or made for another session".to_owned())
    })
}

const PURPOSE: &[u8] = b"weir 2026 key of the members of a session, for one of them";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_key_is_for_one_receiver_and_one_session_of_one_sender() {
        let [sender, receiver, other] = [1, 2, 3].map(|seed| SecretKey::from_seed([seed; 32]));
        let (key, bound) = (members_key(&sender, 7), about(&sender.public(), 7));
        let wrapped = wrap(&key, &receiver.public(), &bound).expect("a good key");
        assert_eq!(unwrap(&wrapped, &receiver, &bound), Some(key));
        assert_eq!(unwrap(&wrapped, &other, &bound), None);
        assert_eq!(unwrap(&wrapped, &receiver, &about(&sender.public(), 8)), None);
        assert_eq!(unwrap(&wrapped, &receiver, &about(&other.public(), 7)), None);
        let mut changed = wrapped;
        changed.key[40] ^= 1;
        assert_eq!(unwrap(&changed, &receiver, &bound), None);
        assert_ne!(
            wrap(&key, &receiver.public(), &bound).expect("a good key").key,
            wrapped.key,
            "each time with another ephemeral key"
        );
    }

    #[test]
    fn the_members_key_is_the_same_after_a_restart_and_another_for_each_session() {
        let key = |seed, tsi| members_key(&SecretKey::from_seed([seed; 32]), tsi);
        assert_eq!(key(1, 7), key(1, 7));
        assert!(key(1, 7) != key(1, 8) && key(1, 7) != key(2, 7));
    }
}

//! Who this receiver is: a key of its own that lasts, and a name. A sender that asks for receipts counts it once, however often it is
//! started.

use std::fs;
use std::io;
use std::path::Path;

use weir_net::description::Description;
use weir_net::receipts::{Answering, Identity, ReceiptSender};
use weir_object::keys::{PublicKey, SecretKey};
use weir_units::Time;

use crate::exit::{Exit, Failure};
use crate::{folders, session};

/// What tells the sender how far this receiver is, if it asks; and what the user is to know of it.
pub(crate) fn reporter(
    name: Option<&str>,
    description: &Description,
    now: Time,
) -> Result<(Option<ReceiptSender>, Option<String>), Failure> {
    let Some(key) = description.receipt_key else { return Ok((None, None)) };
    let (identity, told) = of(name)?;
    let sender = description.public_key.and_then(|key| PublicKey::from_bytes(&key).ok());
    let is_sender_s = Box::new(move |bytes: &[u8], signature: &[u8; 64]| {
        sender.is_none_or(|sender| sender.verifies(bytes, signature))
    });
    let random = session::random_stream("receipt")?;
    Ok((Some(ReceiptSender::new(identity, description.tsi, key, is_sender_s, now, random)), told))
}

/// What tells the sender what this receiver lacks, if it asks.
pub(crate) fn answering(description: &Description, receipt: Option<&ReceiptSender>) -> Option<Answering> {
    Some(Answering::new(description.tsi, description.receipt_key?, *receipt?.key()))
}

/// A receiver: its name, and the key by which senders know it.
pub(crate) struct Receiver {
    pub(crate) name: String,
    pub(crate) key: SecretKey,
    /// Why the key will be another next time, if it will.
    not_kept: Option<String>,
}

/// The receiver of this name, or else of this host's, by a key that lasts.
pub(crate) fn known(name: Option<&str>) -> Result<Receiver, Failure> {
    let receiver = receiver(name)?;
    match receiver.not_kept {
        None => Ok(receiver),
        Some(error) => Err(Failure::new(Exit::Files, format!("this receiver cannot keep its key: {error}"))),
    }
}

/// The receiver of this name, or else of this host's; and what the user is to know.
fn of(name: Option<&str>) -> Result<(Identity, Option<String>), Failure> {
    let Receiver { name, key, not_kept } = receiver(name)?;
    let told = not_kept
        .map(|error| format!("this receiver cannot keep its key, so that a sender counts it again next time: {error}"));
    let identity = Identity { key: key.public().to_bytes(), name, sign: Box::new(move |bytes| key.sign(bytes)) };
    Ok((identity, told))
}

fn receiver(name: Option<&str>) -> Result<Receiver, Failure> {
    let host = || fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    let name = name.map(str::to_owned).or_else(host).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "localhost".to_owned());
    let file = folders::state().map(|state| state.join("receiver.key"));
    let kept = file.as_deref().map_or_else(|| Err("neither XDG_STATE_HOME nor HOME is set".to_owned()), kept);
    let (own, not_kept) = match kept {
        Ok(own) => (own, None),
        Err(error) => (SecretKey::from_seed(session::random()?), Some(error)),
    };
    // Of one user there may be several receivers on a host, each by a name of its own.
    let key = SecretKey::from_seed(own.derive("weir receiver by name", name.as_bytes()));
    Ok(Receiver { name, key, not_kept })
}

/// The key in this file, which is made if it is missing.
fn kept(path: &Path) -> Result<SecretKey, String> {
    if !path.try_exists().map_err(|error| failed(path, &error))? {
        make(path)?;
    }
    SecretKey::load(path).map_err(|error| error.to_string())
}

/// Another receiver may do the same at the same moment: the first has made it, whole.
fn make(path: &Path) -> Result<(), String> {
    folders::make_for(path).map_err(|error| failed(path, &error))?;
    let random = session::random::<32>().map_err(|failure| failure.message)?;
    match folders::create(path, SecretKey::from_seed(random).to_text().as_bytes(), 0o600) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(path, &error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_that_is_made_is_the_same_the_next_time_and_its_owner_s_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("weir").join("receiver.key");
        let first = kept(&path).expect("it can be made").public();
        assert_eq!(kept(&path).expect("it is there").public(), first);
        make(&path).expect("somebody was first");
        assert_eq!(kept(&path).expect("it is there").public(), first);
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path().join("weir")).expect("a folder").count(), 1);
        assert!(kept(Path::new("/proc/nowhere/receiver.key")).is_err());
    }
}

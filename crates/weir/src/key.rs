//! `weir key`: the sender's key, and what receivers have to know of it.

use std::fs;
use std::path::{Path, PathBuf};

use weir_net::description::Description;
use weir_object::keys::{KeyError, PublicKey, SecretKey};

use crate::args::{Key, KeyHost, KeyNew, KeyShow};
use crate::exit::{Exit, Failure};
use crate::{folders, identity, session};

/// Makes a key or shows one; gives what is printed.
pub(crate) fn run(what: &Key) -> Result<String, Failure> {
    match what {
        Key::New(args) => new(args),
        Key::Show(args) => show(args),
        Key::Host(args) => host(args),
    }
}

fn new(args: &KeyNew) -> Result<String, Failure> {
    let path = args.file.clone().map_or_else(usual, Ok)?;
    let public_path = public_path(&path);
    let files = |error: KeyError| Failure::new(Exit::Files, error.to_string());
    let cannot = |path: &Path| Failure::of(Exit::Files, format!("cannot write {}", path.display()));
    if !args.force
        && let Some(there) = [&path, &public_path].into_iter().find(|path| path.exists())
    {
        let message = format!(
            "{} is there already: receivers that know its key would refuse another; --force replaces it",
            there.display()
        );
        return Err(Failure::new(Exit::Files, message));
    }
    folders::make_for(&path).map_err(cannot(&path))?;
    let key = SecretKey::from_seed(session::random()?);
    // Next to its place and then there, so that no moment is without a key.
    let fresh = path.with_extension("new");
    remove(&fresh)?;
    key.save(&fresh).map_err(files)?;
    fs::rename(&fresh, &path).map_err(cannot(&path))?;
    fs::write(&public_path, format!("{}\n", key.public())).map_err(cannot(&public_path))?;
    let (path, public_path) = (path.display(), public_path.display());
    Ok(format!(
        "the secret key is in {path}: whoever has it can send in your name\n\
         receivers need the public one, from {public_path} or here: weir recv --sender-key {}\n",
        key.public()
    ))
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::new(Exit::Files, format!("cannot remove {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

fn show(args: &KeyShow) -> Result<String, Failure> {
    let path = args.file.clone().map_or_else(usual, Ok)?;
    read_public(&path).map(|key| format!("{key}\n"))
}

fn host(args: &KeyHost) -> Result<String, Failure> {
    let receiver = identity::known(args.name.as_deref())?;
    Ok(format!("{} {}\n", receiver.name, receiver.key.public()))
}

/// The public key in a file: a secret key's, a public key's, or a session description.
pub(crate) fn read_public(path: &Path) -> Result<PublicKey, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        let advice = if error.kind() == std::io::ErrorKind::NotFound { "; `weir key new` makes one" } else { "" };
        Failure::new(Exit::Files, format!("cannot read the key {}: {error}{advice}", path.display()))
    })?;
    let of_description = || {
        let key = text.parse::<Description>().ok()?.public_key?;
        PublicKey::from_bytes(&key).ok()
    };
    let of_secret = || SecretKey::load(path).ok().map(|key| key.public());
    let key = text.trim().parse().ok().or_else(of_secret).or_else(of_description);
    key.ok_or_else(|| {
        let message =
            "it holds no key: expected a public key, a secret key of `weir key new`, or a signed session description";
        Failure::new(Exit::Usage, format!("{}: {message}", path.display()))
    })
}

/// The file of the sender's key, if it has one.
pub(crate) fn file(path: Option<&Path>) -> Option<PathBuf> {
    path.map(Path::to_owned).or_else(|| folders::usual_key().filter(|path| path.exists()))
}

/// The sender's secret key: the named file's, made if missing; or else the usual one's if it is there; or else a new one for this run.
pub(crate) fn secret(path: Option<&Path>) -> Result<SecretKey, Failure> {
    let files = |error: KeyError| Failure::new(Exit::Files, error.to_string());
    match file(path) {
        Some(path) if path.exists() => SecretKey::load(&path).map_err(files),
        Some(path) => {
            let key = SecretKey::from_seed(session::random()?);
            key.save(&path).map_err(files)?;
            Ok(key)
        }
        None => Ok(SecretKey::from_seed(session::random()?)),
    }
}

fn usual() -> Result<PathBuf, Failure> {
    folders::usual_key().ok_or_else(|| {
        Failure::new(Exit::Usage, "neither XDG_CONFIG_HOME nor HOME says where the usual key is: name a file")
    })
}

/// The public key's file next to the secret key's.
fn public_path(secret: &Path) -> PathBuf {
    let mut name = secret.as_os_str().to_owned();
    name.push(".pub");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_its_owner_s_alone_and_is_replaced_only_when_told() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("sub").join("sender.key");
        let make = |force| new(&KeyNew { file: Some(path.clone()), force });
        let said = make(false).expect("nothing is there");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
        let first = read_public(&path).expect("a secret key");
        assert!(said.contains(&first.to_string()), "{said}");
        assert_eq!(read_public(&public_path(&path)).expect("a public key"), first);
        let refused = make(false).expect_err("it is there");
        assert!(refused.exit == Exit::Files && refused.message.contains("--force"), "{refused}");
        assert_eq!(read_public(&path).expect("a secret key"), first);
        make(true).expect("it was told");
        assert_ne!(read_public(&path).expect("a secret key"), first);
        assert_eq!(
            (mode(&path), secret(Some(&path)).expect("a key").public()),
            (0o600, read_public(&path).expect("a key"))
        );
    }

    #[test]
    fn what_holds_no_key_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        assert!(read_public(&path).expect_err("missing").message.contains("weir key new"));
        fs::write(&path, "hello").expect("written");
        assert_eq!(read_public(&path).expect_err("no key").exit, Exit::Usage);
    }
}

//! `weir key`: the sender's key, and what receivers have to know of it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
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
    let public_path = folders::beside(&path, ".pub");
    let there = |path: &Path| {
        let message = format!(
            "{} is there already: receivers that know its key would refuse another; --force replaces it",
            path.display()
        );
        Failure::new(Exit::Files, message)
    };
    let cannot = |path: &Path, error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => there(path),
        _ => Failure::new(Exit::Files, format!("cannot write {}: {error}", path.display())),
    };
    // Not one without the other.
    if !args.force && folders::is_there(&public_path).map_err(|error| cannot(&public_path, error))? {
        return Err(there(&public_path));
    }
    folders::make_for(&path).map_err(|error| cannot(&path, error))?;
    let key = SecretKey::from_seed(session::random()?);
    let put = if args.force { folders::replace } else { folders::create };
    put(&path, key.to_text().as_bytes(), 0o600).map_err(|error| cannot(&path, error))?;
    let public = format!("{}\n", key.public());
    put(&public_path, public.as_bytes(), 0o644).map_err(|error| cannot(&public_path, error))?;
    let (path, public_path) = (path.display(), public_path.display());
    Ok(format!(
        "the secret key is in {path}: whoever has it can send in your name\n\
         receivers need the public one, from {public_path} or here: weir recv --sender-key {}\n",
        key.public()
    ))
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

/// The file of the sender's key, if it has one. The usual one counts also if it cannot be looked at: then nobody should be sent what another
/// key signs.
pub(crate) fn file(path: Option<&Path>) -> Option<PathBuf> {
    let is_there = |path: &PathBuf| path.try_exists().unwrap_or(true);
    path.map(Path::to_owned).or_else(|| folders::usual_key().filter(is_there))
}

/// The sender's secret key: the named file's, made if missing; or else the usual one's if it is there; or else a new one for this run.
pub(crate) fn secret(path: Option<&Path>) -> Result<SecretKey, Failure> {
    let Some(path) = file(path) else { return Ok(SecretKey::from_seed(session::random()?)) };
    match SecretKey::load(&path) {
        Err(KeyError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            let key = SecretKey::from_seed(session::random()?);
            folders::create(&path, key.to_text().as_bytes(), 0o600)
                .map_err(Failure::of(Exit::Files, format!("cannot make the key {}", path.display())))?;
            Ok(key)
        }
        loaded => loaded.map_err(|error| Failure::new(Exit::Files, error.to_string())),
    }
}

/// What to tell of a key's file that is not its owner's alone.
pub(crate) fn exposed(path: Option<&Path>) -> Option<String> {
    let path = file(path)?;
    let mode = fs::metadata(&path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        let path = path.display();
        format!("others on this host may read or change the key {path} (mode {mode:o}), and so send in your name: chmod 600 {path}")
    })
}

fn usual() -> Result<PathBuf, Failure> {
    folders::usual_key().ok_or_else(|| {
        Failure::new(Exit::Usage, "neither XDG_CONFIG_HOME nor HOME says where the usual key is: name a file")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(read_public(&folders::beside(&path, ".pub")).expect("a public key"), first);
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
    fn a_key_that_others_can_read_is_told_of_and_one_that_cannot_be_read_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("sender.key");
        let made = secret(Some(&path)).expect("it is made").public();
        assert_eq!(exposed(Some(&path)), None);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("ours");
        let told = exposed(Some(&path)).expect("others can read it");
        assert!(told.contains("mode 644") && told.contains("chmod 600"), "{told}");
        assert_eq!(secret(Some(&path)).expect("it is taken all the same").public(), made);
        fs::remove_file(&path).expect("ours");
        fs::create_dir(&path).expect("room");
        assert_eq!(secret(Some(&path)).expect_err("no file").exit, Exit::Files);
        assert!(secret(Some(&path.join("below").join("sender.key"))).is_err(), "no folder to make it in");
    }

    /// What somebody else put next to it stays, and what he put in its place is not followed.
    #[test]
    fn a_new_key_touches_no_other_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["sender.new", "others"] {
            fs::write(path(name), "theirs").expect("room");
        }
        std::os::unix::fs::symlink("others", path("sender.key.pub")).expect("room");
        let make = |force| new(&KeyNew { file: Some(path("sender.key")), force });
        assert!(make(false).expect_err("a public key is there").message.contains("sender.key.pub is there already"));
        assert!(!path("sender.key").exists(), "not one without the other");
        make(true).expect("it was told");
        for name in ["sender.new", "others"] {
            assert_eq!(fs::read_to_string(path(name)).expect("it is there"), "theirs", "{name}");
        }
        assert_eq!(
            read_public(&path("sender.key")).expect("a key"),
            read_public(&path("sender.key.pub")).expect("a key")
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

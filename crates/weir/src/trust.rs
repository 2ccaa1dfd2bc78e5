//! Whom a receiver believes: descriptions are signed, a key can be pinned, and the key of an address on the web is remembered.
//!
//! A description ends with `a=weir-signature:` and 128 hexadecimal digits, Ed25519 by the key that it holds, over the text
//! `weir description 1`, a zero byte, and all lines before that one that are not empty, each without spaces at its end and with a line feed.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use weir_net::description::Description;
use weir_object::keys::{PublicKey, SecretKey};
use weir_units::{Hex, parse_hex};

use crate::args::{Recv, SessionSource};
use crate::exit::{Exit, Failure};
use crate::stream::StreamAddress;
use crate::{folders, key};

/// Whom a receiver believes, by its options.
#[derive(Debug, Clone)]
pub(crate) struct Trust {
    /// The only key that counts.
    pinned: Option<PublicKey>,
    /// Nothing is asked of anyone.
    takes_all: bool,
    /// Where keys of addresses are remembered.
    known: Option<PathBuf>,
}

/// The description with its signature.
pub(crate) fn signed(text: &str, key: &SecretKey) -> String {
    let signature = key.sign(&under_signature(text));
    format!("{text}{SIGNATURE}{}\r\n", Hex(&signature))
}

/// Whether a text bears `key`'s signature; `None` if it bears none.
pub(crate) fn is_signed(text: &str, key: &PublicKey) -> Option<bool> {
    let at = text.find(&format!("\n{SIGNATURE}"))? + 1;
    let (before, line) = text.split_at(at);
    let mut lines = line.lines();
    let hex = lines.next()?.trim_end().strip_prefix(SIGNATURE)?;
    // Nothing may be added behind it.
    let is_last = lines.all(|line| line.trim_end().is_empty());
    Some(is_last && parse_hex(hex).is_some_and(|signature| key.verifies(&under_signature(before), &signature)))
}

fn under_signature(text: &str) -> Vec<u8> {
    let mut out = b"weir description 1\0".to_vec();
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        out.extend(line.as_bytes());
        out.push(b'\n');
    }
    out
}

impl Trust {
    /// What the options say.
    pub(crate) fn of(args: &Recv) -> Result<Trust, Failure> {
        let pinned = only_pinned(args)?;
        let known = folders::state().map(|state| state.join("known_senders"));
        Ok(Trust { pinned, takes_all: args.any_sender, known })
    }

    /// Checks a description that came from `source`; gives what the user is to know.
    pub(crate) fn check(
        &self,
        source: &SessionSource,
        text: &str,
        description: &Description,
    ) -> Result<Vec<String>, Failure> {
        if self.takes_all {
            return Ok(Vec::new());
        }
        let key = description.public_key.and_then(|key| PublicKey::from_bytes(&key).ok());
        let told = signer(text, key).and_then(|signer| match (self.pinned, source) {
            (Some(pinned), _) => held_to(pinned, key, signer),
            (None, SessionSource::Url(url)) => {
                signer.map_or_else(|| Err(self.unsigned(url)), |key| self.known_as(url, key))
            }
            // The user has it from somewhere, and believes it as that.
            _ => Ok(Vec::new()),
        });
        told.map_err(|message| Failure::new(Exit::Unverified, format!("{source}: {message}")))
    }

    /// Holds the key of an address to the one that it had the first time.
    fn known_as(&self, url: &str, key: PublicKey) -> Result<Vec<String>, String> {
        let in_the_open = is_open(url).then(|| in_the_open(url));
        let Some(path) = &self.known else {
            let forgotten = format!(
                "the key of {url}, {key}, cannot be remembered, as neither XDG_STATE_HOME nor HOME says where: another one will be taken the \
                 next time. --sender-key pins it"
            );
            return Ok(std::iter::once(forgotten).chain(in_the_open).collect());
        };
        let there = match remembered(path, url)? {
            Some(there) => Some(there),
            None => remember(path, url, key)?,
        };
        match there {
            Some((known, _)) if known == key => Ok(Vec::new()),
            Some((known, line)) => Err(format!(
                "it is signed with another key than before: now {key}, and {known} until now. Either the sender lost its key and has a \
                 new one, or somebody answers in its place. Ask the sender for its key; if it is the new one, remove line {line} of {}, \
                 or give --sender-key {key}",
                path.display()
            )),
            None => {
                let known = format!("from now on {url} is known by the key {key} ({})", path.display());
                Ok(std::iter::once(known).chain(in_the_open).collect())
            }
        }
    }

    /// The key of the sender of an encrypted stream at this address, where the user names it or it has had one before.
    pub(crate) fn expected(&self, address: &str) -> Result<Option<PublicKey>, Failure> {
        if self.pinned.is_some() {
            return Ok(self.pinned);
        }
        let known = self.known.as_deref().map(|path| remembered(path, address)).transpose();
        let known = known.map_err(|message| Failure::new(Exit::Files, message))?;
        Ok(known.flatten().map(|(key, _)| key))
    }

    /// Remembers the key of the sender of an encrypted stream; gives what the user is to know.
    pub(crate) fn of_stream_at(&self, address: &str, key: PublicKey) -> Result<Vec<String>, String> {
        match self.pinned {
            Some(pinned) if pinned == key => Ok(Vec::new()),
            Some(pinned) => Err(other_key(Some(key), pinned)),
            None => self.known_as(address, key),
        }
    }

    /// Why what nobody signed is not taken from an address: it is anybody's word.
    fn unsigned(&self, url: &str) -> String {
        match self.known.as_deref().map(|path| (path, remembered(path, url))) {
            Some((_, Err(error))) => error,
            Some((path, Ok(Some((known, line))))) => format!(
                "it is not signed, and was with the key {known} until now: somebody may answer in the sender's place. If the sender says \
                 that it does not sign any more, remove line {line} of {} and take it with --any-sender",
                path.display()
            ),
            _ => "it is not signed, so that whoever answers there, or is on the way, says what comes. With --any-sender it is taken all \
                  the same"
                .to_owned(),
        }
    }
}

/// Who has signed a description that holds this key; nobody, if it bears no signature.
fn signer(text: &str, key: Option<PublicKey>) -> Result<Option<PublicKey>, String> {
    match key.and_then(|key| is_signed(text, &key)) {
        Some(true) => Ok(key),
        None => Ok(None),
        Some(false) => {
            Err("the description was changed after the sender signed it: get it again from the sender".to_owned())
        }
    }
}

/// A description of the key that the user gives: all that it says must be that sender's word.
fn held_to(pinned: PublicKey, key: Option<PublicKey>, signer: Option<PublicKey>) -> Result<Vec<String>, String> {
    match signer {
        _ if key != Some(pinned) => Err(other_key(key, pinned)),
        Some(_) => Ok(Vec::new()),
        None => Err("the sender did not sign the description: get it again from the sender".to_owned()),
    }
}

/// Who has to have sealed a stream over a tree: the sender of its address, which has to be the one that the user names, if he names one.
pub(crate) fn of_stream(args: &Recv, address: &StreamAddress) -> Result<Option<PublicKey>, Failure> {
    let pinned = only_pinned(args)?;
    match (pinned, address.sender_key) {
        (Some(pinned), Some(key)) if key != pinned => {
            Err(Failure::new(Exit::Unverified, format!("{address}: {}", other_key(Some(key), pinned))))
        }
        (pinned, of_address) => Ok(pinned.or(of_address)),
    }
}

/// The key that the user gives, where there is one sender.
fn only_pinned(args: &Recv) -> Result<Option<PublicKey>, Failure> {
    match &args.sender_key[..] {
        [] => Ok(None),
        [only] => pinned(only).map(Some),
        _ => Err(Failure::new(Exit::Usage, "several --sender-key are for --announced: a session is of one sender")),
    }
}

/// The keys of the senders whose announcements are taken.
pub(crate) fn all_pinned(args: &Recv) -> Result<Vec<PublicKey>, Failure> {
    if args.sender_key.is_empty() {
        let message = "--announced takes what the senders of --sender-key announce, and of nobody else: anybody can announce. Ask the \
                       sender for its key (`weir key show`) and give it with --sender-key";
        return Err(Failure::new(Exit::Usage, message));
    }
    args.sender_key.iter().map(|key| pinned(key)).collect()
}

/// The key that the user gives: as text, or a file that holds it.
fn pinned(text: &str) -> Result<PublicKey, Failure> {
    text.parse().or_else(|_| key::read_public(Path::new(text))).map_err(|failure| {
        let message =
            "--sender-key takes a public key, 44 characters of base64 or 64 of hexadecimal, or a file that holds one";
        Failure::new(Exit::Usage, format!("{message}: {failure}"))
    })
}

fn other_key(key: Option<PublicKey>, pinned: PublicKey) -> String {
    match key {
        Some(key) => format!(
            "it is of another sender: its key is {key}, and --sender-key says {pinned}. Get it from your sender, or ask for the sender's key"
        ),
        None => format!("it holds no key, and --sender-key says {pinned}: get the description from your sender"),
    }
}

fn in_the_open(url: &str) -> String {
    format!(
        "{url} came over plain http, so anybody on the way may have put another description in its place, and this first time nothing \
         else vouches for it. --sender-key pins the sender's key, and https guards the way"
    )
}

/// Whether anybody on the way may change what this address says.
pub(crate) fn is_open(url: &str) -> bool {
    url.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("http:"))
}

/// The key of an address, and the line that it stands in.
fn remembered(path: &Path, url: &str) -> Result<Option<(PublicKey, usize)>, String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read the known senders, {}: {error}", path.display())),
    };
    find(&text, path, url)
}

fn find(text: &str, path: &Path, url: &str) -> Result<Option<(PublicKey, usize)>, String> {
    let mut found = None;
    for (number, line) in (1..).zip(text.lines()) {
        let Some((of, key)) = line.split_once(' ').filter(|(of, _)| *of == url) else { continue };
        let key =
            key.trim().parse().map_err(|_| format!("line {number} of {}, of {of}, holds no key", path.display()))?;
        found = Some((key, number));
    }
    Ok(found)
}

/// Remembers the key of an address, unless another receiver was first: then it gives what that has remembered.
fn remember(path: &Path, url: &str, key: PublicKey) -> Result<Option<(PublicKey, usize)>, String> {
    let failed = |error: io::Error| format!("cannot remember its key in {}: {error}", path.display());
    let open = || {
        folders::make_for(path)?;
        fs::OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
    };
    let locked = Flock::lock(open().map_err(failed)?, FlockArg::LockExclusive);
    let file = locked.map_err(|(_, error)| failed(error.into()))?;
    let (mut file, mut text) = (&*file, String::new());
    file.read_to_string(&mut text).map_err(failed)?;
    if let Some(there) = find(&text, path, url)? {
        return Ok(Some(there));
    }
    // Whatever the last line is, it ends here.
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    file.write_all(format!("{end}{url} {key}\n").as_bytes()).map_err(failed)?;
    Ok(None)
}

const SIGNATURE: &str = "a=weir-signature:";

#[cfg(test)]
mod tests;

//! Whom a receiver believes: descriptions are signed, a key can be pinned, and the key of an address on the web is remembered.
//!
//! A description ends with `a=weir-signature:` and 128 hexadecimal digits, Ed25519 by the key that it holds, over the text
//! `weir description 1`, a zero byte, and all lines before that one that are not empty, each without spaces at its end and with a line feed.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use weir_net::description::Description;
use weir_object::keys::{PublicKey, SecretKey};

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
    let hex: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{text}{SIGNATURE}{hex}\r\n")
}

/// Whether a text bears `key`'s signature; `None` if it bears none.
pub(crate) fn is_signed(text: &str, key: &PublicKey) -> Option<bool> {
    let at = text.find(&format!("\n{SIGNATURE}"))? + 1;
    let (before, line) = text.split_at(at);
    let mut lines = line.lines();
    let hex = lines.next()?.trim_end().strip_prefix(SIGNATURE)?;
    // Nothing may be added behind it.
    let is_last = lines.all(|line| line.trim_end().is_empty());
    Some(is_last && bytes(hex).is_some_and(|signature| key.verifies(&under_signature(before), &signature)))
}

fn under_signature(text: &str) -> Vec<u8> {
    let mut out = b"weir description 1\0".to_vec();
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        out.extend(line.as_bytes());
        out.push(b'\n');
    }
    out
}

fn bytes(hex: &str) -> Option<[u8; 64]> {
    let digit = |c: u8| char::from(c).to_digit(16);
    let pairs = hex.as_bytes().chunks_exact(2);
    let bytes: Vec<u8> =
        pairs.map(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)).collect::<Option<_>>()?;
    if hex.len() == 128 { bytes.try_into().ok() } else { None }
}

impl Trust {
    /// What the options say.
    pub(crate) fn of(args: &Recv) -> Result<Trust, Failure> {
        let pinned = args.sender_key.as_deref().map(pinned).transpose()?;
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
        let refuse = |message: String| Failure::new(Exit::Unverified, format!("{source}: {message}"));
        let key = description.public_key.and_then(|key| PublicKey::from_bytes(&key).ok());
        let signed = key.and_then(|key| is_signed(text, &key));
        if self.takes_all {
            return Ok(Vec::new());
        }
        if signed == Some(false) {
            return Err(refuse(
                "the description was changed after the sender signed it: get it again from the sender".to_owned(),
            ));
        }
        let believed = match (key, self.pinned, source) {
            (_, Some(pinned), _) if key != Some(pinned) => return Err(refuse(other_key(key, pinned))),
            (_, Some(_), _) => Vec::new(),
            (Some(key), None, SessionSource::Url(url)) if signed.is_some() => {
                self.known_as(url, key).map_err(refuse)?
            }
            (_, None, SessionSource::Url(url)) => self.unsigned(url).map_err(refuse)?,
            _ => return Ok(Vec::new()),
        };
        // Of a key that is held to, all that the description says must be the sender's word.
        match signed {
            None if self.pinned.is_some() => {
                Err(refuse("the sender did not sign the description: get it again from the sender".to_owned()))
            }
            _ => Ok(believed),
        }
    }

    /// Holds the key of an address to the one that it had the first time.
    fn known_as(&self, url: &str, key: PublicKey) -> Result<Vec<String>, String> {
        let Some(path) = &self.known else {
            return Ok(vec![in_the_open(url, "nothing says where to remember its key")]);
        };
        match remembered(path, url)? {
            Some((known, _)) if known == key => Ok(Vec::new()),
            Some((known, line)) => Err(format!(
                "it is signed with another key than before: now {key}, and {known} until now. Either the sender lost its key and has a \
                 new one, or somebody answers in its place. Ask the sender for its key; if it is the new one, remove line {line} of {}, \
                 or give --sender-key {key}",
                path.display()
            )),
            None => {
                remember(path, url, key)?;
                let mut told = vec![format!("from now on {url} is known by the key {key} ({})", path.display())];
                told.extend(is_open(url).then(|| in_the_open(url, "this first time nothing else vouches for it")));
                Ok(told)
            }
        }
    }

    /// An address whose description nobody signed must not have had one that somebody did.
    fn unsigned(&self, url: &str) -> Result<Vec<String>, String> {
        if let Some((known, line)) = self.known.as_deref().map(|path| remembered(path, url)).transpose()?.flatten() {
            return Err(format!(
                "it is not signed, and was with the key {known} until now: somebody may answer in the sender's place. If the sender says \
                 that it does not sign any more, remove line {line} of {}",
                self.known.as_deref().unwrap_or(Path::new("")).display()
            ));
        }
        Ok(if is_open(url) { vec![in_the_open(url, "nobody signed it")] } else { Vec::new() })
    }
}

/// Who has to have sealed a stream over a tree: the sender of its address, which has to be the one that the user names, if he names one.
pub(crate) fn of_stream(args: &Recv, address: &StreamAddress) -> Result<Option<PublicKey>, Failure> {
    let pinned = args.sender_key.as_deref().map(pinned).transpose()?;
    match (pinned, address.sender_key) {
        (Some(pinned), Some(key)) if key != pinned => {
            Err(Failure::new(Exit::Unverified, format!("{address}: {}", other_key(Some(key), pinned))))
        }
        (pinned, of_address) => Ok(pinned.or(of_address)),
    }
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

fn in_the_open(url: &str, why: &str) -> String {
    format!(
        "{url} came over plain http, so anybody on the way may have put another description in its place, and {why}. --sender-key pins \
         the sender's key, and https guards the way"
    )
}

fn is_open(url: &str) -> bool {
    url.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("http:"))
}

/// The key of an address, and the line that it stands in.
fn remembered(path: &Path, url: &str) -> Result<Option<(PublicKey, usize)>, String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read the known senders, {}: {error}", path.display())),
    };
    let mut found = None;
    for (number, line) in (1..).zip(text.lines()) {
        let Some((of, key)) = line.split_once(' ').filter(|(of, _)| *of == url) else { continue };
        let key =
            key.trim().parse().map_err(|_| format!("line {number} of {}, of {of}, holds no key", path.display()))?;
        found = Some((key, number));
    }
    Ok(found)
}

fn remember(path: &Path, url: &str, key: PublicKey) -> Result<(), String> {
    let write = || {
        folders::make_for(path)?;
        let mut file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        // In one go, as another receiver may do the same.
        file.write_all(format!("{url} {key}\n").as_bytes())
    };
    write().map_err(|error| format!("cannot remember its key in {}: {error}", path.display()))
}

const SIGNATURE: &str = "a=weir-signature:";

#[cfg(test)]
mod tests;

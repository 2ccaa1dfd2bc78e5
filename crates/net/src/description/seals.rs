//! What a description says of seals.

use std::fmt;

use weir_units::{Hex, parse_hex};

use crate::seal::{MasterKey, Members, Seals};

use super::read::Expected;

/// The seals of a session's packets, and the key for them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sealing {
    /// Which there are.
    pub seals: Seals,
    /// The members' key, where the description holds it for all who read it.
    pub key: Option<MasterKey>,
    /// The members' key for single receivers, where it does not.
    pub wrapped: Vec<WrappedKey>,
}

/// The members' key, encrypted for one receiver. How, callers know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrappedKey {
    /// The receiver's public key.
    pub receiver: [u8; 32],
    /// The encrypted key.
    pub key: [u8; WrappedKey::LEN],
}

impl WrappedKey {
    /// Bytes of an encrypted key: 32 of an ephemeral public key, 32 of the key, 16 of its tag.
    pub const LEN: usize = 80;
}

impl Sealing {
    /// Reads an attribute; says whether it is one of these.
    pub(super) fn read(&mut self, name: &str, value: &str) -> Result<bool, Expected> {
        match name {
            "weir-seal" => self.seals = seals(value).ok_or("a=weir-seal: and group or encrypt, source, or both")?,
            "weir-seal-key" => {
                let key = parse_hex(value).map(MasterKey::new);
                self.key = Some(key.ok_or("a=weir-seal-key: and 64 hexadecimal digits")?);
            }
            "weir-seal-for" => {
                let wrapped = value.split_once(' ').and_then(|(receiver, key)| {
                    Some(WrappedKey { receiver: parse_hex(receiver)?, key: parse_hex(key.trim())? })
                });
                self.wrapped.push(wrapped.ok_or("a=weir-seal-for: and 64 and 160 hexadecimal digits")?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What is missing, if anything is.
    pub(super) fn missing(&self, has_public_key: bool) -> Option<&'static str> {
        let has_key = self.key.is_some() || !self.wrapped.is_empty();
        if self.seals.members.is_some() && !has_key {
            Some("key for the seals that a=weir-seal announces: a=weir-seal-key or a=weir-seal-for")
        } else if self.seals.members.is_none() && has_key {
            Some("seal of the members whose key it holds: a=weir-seal:group or encrypt")
        } else if self.seals.source && !has_public_key {
            Some("key of the sender, whose signature a=weir-seal announces: a=weir-key")
        } else {
            None
        }
    }
}

impl fmt::Display for Sealing {
    /// The lines, none if there are no seals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.seals.is_none() {
            return Ok(());
        }
        let members = self.seals.members.map(|how| match how {
            Members::Tag => GROUP,
            Members::Encrypt => ENCRYPT,
        });
        let words: Vec<&str> = members.into_iter().chain(self.seals.source.then_some(SOURCE)).collect();
        write!(f, "a=weir-seal:{}\r\n", words.join(" "))?;
        if let Some(key) = &self.key {
            write!(f, "a=weir-seal-key:{}\r\n", Hex(key.as_bytes()))?;
        }
        let mut wrapped = self.wrapped.iter();
        wrapped.try_for_each(|one| write!(f, "a=weir-seal-for:{} {}\r\n", Hex(&one.receiver), Hex(&one.key)))
    }
}

/// `group` or `encrypt`, and `source`: each once, and one at least.
fn seals(value: &str) -> Option<Seals> {
    let mut seals = Seals::default();
    for word in value.split_ascii_whitespace() {
        let is_new = match word {
            GROUP => seals.members.replace(Members::Tag).is_none(),
            ENCRYPT => seals.members.replace(Members::Encrypt).is_none(),
            SOURCE => !std::mem::replace(&mut seals.source, true),
            _ => false,
        };
        if !is_new {
            return None;
        }
    }
    (!seals.is_none()).then_some(seals)
}

const GROUP: &str = "group";
const ENCRYPT: &str = "encrypt";
const SOURCE: &str = "source";

#[cfg(test)]
mod tests {
    use super::super::{Description, DescriptionError};
    use super::*;
    use proptest::prelude::*;

    const PLAIN: &str = "v=0\r\ns=x\r\na=flute-tsi:7\r\na=weir-key:ed25519 \
                         0101010101010101010101010101010101010101010101010101010101010101\r\n\
                         m=application 5004 FLUTE/UDP 0\r\nc=IN IP4 239.255.0.1/1\r\n";

    fn with(lines: &str) -> Result<Description, DescriptionError> {
        PLAIN.replace("a=flute-tsi", &format!("{lines}a=flute-tsi")).parse()
    }

    prop_compose! {
        fn sealings()(
            members in proptest::option::of(prop_oneof![Just(Members::Tag), Just(Members::Encrypt)]), source in any::<bool>(),
            key in any::<[u8; 32]>(), receivers in proptest::collection::vec(any::<[u8; 32]>(), 0..4), byte in any::<u8>(),
        ) -> Sealing {
            let wrapped: Vec<WrappedKey> =
                receivers.into_iter().map(|receiver| WrappedKey { receiver, key: [byte; WrappedKey::LEN] }).collect();
            let seals = Seals { members, source };
            match members {
                None => Sealing { seals, ..Sealing::default() },
                Some(_) => Sealing { seals, key: wrapped.is_empty().then_some(MasterKey::new(key)), wrapped },
            }
        }
    }

    proptest! {
        #[test]
        fn reading_written_seals_gives_them_back(sealing in sealings()) {
            let described = with(&sealing.to_string()).expect("our own");
            prop_assert_eq!(&described.sealing, &sealing);
            prop_assert_eq!(described.to_string().parse::<Description>().map(|again| again.sealing), Ok(sealing));
        }
    }

    #[test]
    fn seals_that_cannot_be_checked_or_read_are_refused_in_words() {
        let table = [
            ("a=weir-seal:group\r\n", "a=weir-seal-key or a=weir-seal-for"),
            (&format!("a=weir-seal-key:{}\r\n", "12".repeat(32)), "a=weir-seal:group or encrypt"),
            ("a=weir-seal:rot13\r\n", "group or encrypt, source"),
            ("a=weir-seal:\r\n", "group or encrypt, source"),
            ("a=weir-seal:group encrypt\r\n", "group or encrypt, source"),
            ("a=weir-seal-key:12\r\n", "64 hexadecimal digits"),
            ("a=weir-seal-for:12 34\r\n", "64 and 160 hexadecimal digits"),
        ];
        for (lines, words) in table {
            let told = with(lines).map(drop).expect_err(lines).to_string();
            assert!(told.contains(words), "{lines}: {told}");
        }
        let unsigned: String =
            PLAIN.lines().filter(|line| !line.contains("weir-key")).map(|line| line.to_owned() + "\r\n").collect();
        let told =
            unsigned.replace("a=flute", "a=weir-seal:source\r\na=flute").parse::<Description>().expect_err("no key");
        assert!(told.to_string().contains("a=weir-key"), "{told}");
    }
}

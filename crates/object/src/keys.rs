//! The sender's key pair: Ed25519 (RFC 8032), its text forms and its files.
//!
//! Not here: randomness. Whoever makes a key brings the random bytes.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use weir_units::{Hex, parse_hex};

/// The sender's secret key. It never shows itself in debug output.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// The key of 32 random bytes, which must come from the operating system's generator.
    pub fn from_seed(random: [u8; 32]) -> SecretKey {
        SecretKey(SigningKey::from_bytes(&random))
    }

    /// The public half, which receivers need.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Reads the key from a file that holds [`SecretKey::to_text`].
    ///
    /// # Errors
    /// [`KeyError`] if the file cannot be read or holds no key.
    pub fn load(path: &Path) -> Result<SecretKey, KeyError> {
        let text = std::fs::read_to_string(path).map_err(|source| KeyError::Io { path: path.to_owned(), source })?;
        let body = text.trim().strip_prefix(SECRET_PREFIX).ok_or(KeyError::NotASecretKey)?;
        Ok(SecretKey::from_seed(decode_32(body).ok_or(KeyError::NotASecretKey)?))
    }

    /// The key as a line of text, for a file that only its owner can read.
    pub fn to_text(&self) -> String {
        format!("{SECRET_PREFIX}{}\n", STANDARD.encode(self.0.to_bytes()))
    }

    /// 32 secret bytes for another `purpose`, the same each time, from which the key cannot be told.
    pub fn derive(&self, purpose: &str, detail: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        hasher.update(&self.0.to_bytes());
        hasher.update(detail);
        *hasher.finalize().as_bytes()
    }

    /// The secret half for key agreement (X25519): the scalar with which the key signs, on the curve's other form.
    pub fn agreement(&self) -> [u8; 32] {
        self.0.to_scalar_bytes()
    }

    /// Signs `message`.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretKey(of {})", self.public())
    }
}

/// The key by which receivers know the sender. Its text form is base64; hexadecimal is read too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// The key of these 32 bytes.
    ///
    /// # Errors
    /// [`KeyError::NotAPublicKey`] if they are no point of the curve.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<PublicKey, KeyError> {
        VerifyingKey::from_bytes(bytes).map(PublicKey).map_err(|_| KeyError::NotAPublicKey)
    }

    /// The 32 bytes of the key.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The public half for key agreement (X25519), that of [`SecretKey::agreement`].
    pub fn agreement(&self) -> [u8; 32] {
        self.0.to_montgomery().to_bytes()
    }

    /// Whether `signature` is this key's over `message`. Strict: no key of small order, no malleable signature.
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

impl std::fmt::Display for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&STANDARD.encode(self.0.to_bytes()))
    }
}

impl std::str::FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<PublicKey, KeyError> {
        PublicKey::from_bytes(&decode_32(text.trim()).ok_or(KeyError::NotAPublicKey)?)
    }
}

/// A key that cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The key's file cannot be read.
    #[error("key file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The text holds no secret key.
    #[error("this is not a secret key: expected one line, {SECRET_PREFIX} and 44 characters of base64")]
    NotASecretKey,
    /// The text holds no public key.
    #[error("this is not a public key: expected 44 characters of base64 or 64 of hexadecimal")]
    NotAPublicKey,
}

fn decode_32(text: &str) -> Option<[u8; 32]> {
    parse_hex(text).or_else(|| STANDARD.decode(text).ok()?.try_into().ok())
}

/// Bytes as hexadecimal digits.
pub(crate) fn encode_hex(bytes: &[u8]) -> String {
    Hex(bytes).to_string()
}

const SECRET_PREFIX: &str = "weir-secret-key-1:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_text() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("key");
        let key = SecretKey::from_seed([7; 32]);
        std::fs::write(&path, key.to_text()).expect("written");
        assert_eq!(SecretKey::load(&path).expect("loaded").public(), key.public());
        std::fs::write(&path, "nothing").expect("written");
        assert!(matches!(SecretKey::load(&path), Err(KeyError::NotASecretKey)));
        assert!(!format!("{key:?}").contains("BwcH"), "the secret must not show");
    }

    #[test]
    fn a_public_key_is_read_in_both_text_forms() {
        let key = SecretKey::from_seed([7; 32]).public();
        assert_eq!(key.to_string().parse::<PublicKey>().expect("base64"), key);
        assert_eq!(encode_hex(&key.to_bytes()).parse::<PublicKey>().expect("hexadecimal"), key);
        assert!("".parse::<PublicKey>().is_err() && "zz".repeat(32).parse::<PublicKey>().is_err());
    }

    #[test]
    fn only_the_right_key_and_message_verify() {
        let key = SecretKey::from_seed([7; 32]);
        let signature = key.sign(b"message");
        assert!(key.public().verifies(b"message", &signature));
        assert!(!key.public().verifies(b"massage", &signature));
        assert!(!SecretKey::from_seed([8; 32]).public().verifies(b"message", &signature));
    }
}

//! The schemes by name. Everything that lists schemes walks [`SCHEMES`].

use alloc::string::String;
use alloc::vec::Vec;

pub use crate::definition::{Build, Habitat, Layered, OfferedRates, Paced, Parties, Scheme, Session, Stream, Tree};
pub use crate::error::ConfigError;
use crate::scheme::{avmrc, mtcp, plm, rap, sluice, stair};
pub use crate::settings::{Accepted, Range, Setting, SettingHelp, Word};

/// All schemes. A new one is a folder under `scheme/` and a line here.
pub const SCHEMES: &[&Scheme] = &[
    &avmrc::AVMRC,
    &avmrc::RMRC,
    &avmrc::VMRC,
    &mtcp::MTCP,
    &plm::PLM,
    &rap::RAP,
    &sluice::SLUICE,
    &stair::STAIR,
    &stair::FGLM,
];

/// The scheme called `name`.
pub fn find(name: &str) -> Result<&'static Scheme, ConfigError> {
    SCHEMES.iter().copied().find(|scheme| scheme.name == name).ok_or_else(|| {
        let known: Vec<&str> = SCHEMES.iter().map(|scheme| scheme.name).collect();
        ConfigError::UnknownScheme { name: String::from(name), known: known.join(", ") }
    })
}

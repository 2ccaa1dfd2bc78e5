//! placeholder
use crate::registry::{ConfigError, Scheme};
/// placeholder
pub const AVMRC: Scheme = Scheme {
    name: "avmrc",
    summary: "",
    paper: "",
    sender: |_, _| Err(todo()),
    receiver: |_, _| Err(todo()),
    settings: &[],
};
/// placeholder
pub const RMRC: Scheme = Scheme { name: "rmrc", ..AVMRC };
/// placeholder
pub const VMRC: Scheme = Scheme { name: "vmrc", ..AVMRC };
fn todo() -> ConfigError {
    ConfigError::UnknownScheme { name: alloc::string::String::new() }
}

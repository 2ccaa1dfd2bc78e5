//! Why a capture cannot be written.

use std::io;
use std::path::PathBuf;

/// The capture cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the capture {} cannot be written: {source}", path.display())]
pub struct CaptureError {
    /// The file.
    pub path: PathBuf,
    /// What the system said, or what is wrong with the packet.
    pub source: io::Error,
}

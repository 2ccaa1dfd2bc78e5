//! What a store tells of its files.

use std::io;

use super::incoming::SpecError;
use super::journal::Unusable;
use crate::bundle::BundleError;
use crate::manifest::ManifestError;
use crate::name::Name;

/// Something that a user may want to know.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The sender offers other files than before; what was incomplete stays on disk.
    NewSet,
    /// A partial file of an earlier run is continued.
    Resumed {
        /// The file.
        name: Name,
        /// Bytes that are there already.
        bytes: u64,
        /// Whether the machine went down while it was written: then the blocks' digests tell which of them are right, or the file's
        /// where it has no others.
        after_power_loss: bool,
    },
    /// A partial file was of no use and is begun afresh.
    Restarted {
        /// The file.
        name: Name,
        /// Why.
        reason: RestartReason,
    },
    /// A block of a file was not what the sender signed: symbols of it were forged or damaged. It is collected again.
    BadBlock {
        /// The file.
        name: Name,
        /// The block's number in the file.
        block: u32,
        /// Symbols that are thrown away at once; none while it is found out which are wrong.
        discarded: u32,
    },
    /// A signed table of an earlier start of the sender came, and is ignored. Told once.
    OldTable,
    /// A signed table came that has expired, and is ignored. Told once.
    ExpiredTable {
        /// How long ago, by this host's clock, seconds.
        ago_secs: u32,
    },
    /// A file is complete and has its name.
    Done {
        /// The file.
        name: Name,
        /// Its length.
        bytes: u64,
        /// BLAKE3 over its content, where the manifest has it.
        digest: Option<[u8; 32]>,
        /// Whether it was there before.
        already_there: bool,
    },
    /// A file or folder is there, and the file system does not take its permissions or its time.
    AttributesRefused {
        /// Its name.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// A file will not be received.
    Refused {
        /// Its name, as the manifest has it.
        name: String,
        /// Why, and what to do.
        reason: RefuseReason,
    },
}

/// Why a file is begun afresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestartReason {
    /// The partial file cannot be continued.
    #[error("its partial file is of no use: {0}")]
    Partial(#[from] Unusable),
    /// The file was complete, and its digest wrong.
    #[error("its digest was wrong; what was received is thrown away")]
    WrongDigest,
}

/// Why a file is not received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefuseReason {
    /// There is a file of this name with other content.
    #[error("there is another file of this name; move it away, or allow overwriting")]
    TargetExists,
    /// The manifest's entry cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The manifest's entry contradicts itself.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The bundle that it is in, or that it is, contradicts itself.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The manifest names the file twice.
    #[error("the manifest has two files of this name")]
    NamedTwice,
    /// The sender uses the file's object for another now.
    #[error("the sender now sends another file in its place")]
    Replaced,
    /// There are too many files.
    #[error("it is one more than the limit of {limit} files; raise the limit")]
    TooManyFiles {
        /// The limit.
        limit: usize,
    },
    /// A block is too large to decode within the memory limit.
    #[error("a block of it takes {needed} bytes to decode, more than the memory limit; raise the limit")]
    TooLittleMemory {
        /// Bytes of memory needed.
        needed: u64,
    },
    /// There is no memory left to keep account of it.
    #[error("the account of its blocks takes {needed} bytes, more than is left of the memory limit; raise the limit")]
    TooManyBlocks {
        /// Bytes of memory needed.
        needed: u64,
    },
    /// Another process receives the same file.
    #[error("another receiver is writing it; wait for that one, or choose another folder")]
    InUse,
    /// The system refuses the file.
    #[error("it cannot be written: {0}")]
    Io(io::Error),
}

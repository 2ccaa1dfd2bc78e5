//! The file delivery table (RFC 6726 §3.4) as Weir writes it and as it reads its own and other senders': what is sent,
//! under which TOI, cut how, with which digests.
//!
//! # Weir's own attributes
//!
//! They live in the namespace `urn:weir:manifest:1`, which other receivers skip. On the root: `tsi`, `epoch` (a number that
//! grows with every start of a sender), `set` (16 bytes in hexadecimal, equal in all instances of one set of files), `objects`,
//! `folders`, `links` and `bytes` (totals of the set, so that a receiver knows when it has seen every instance). On a `File`:
//! `digest` (BLAKE3 of the whole file), `blocks` (the digests of the object's source blocks, 16 bytes each, in base64; not where
//! one block is the whole file; zeros in place of a digest stand for a block of zeros that is not sent), `offset` and `file-length` (where an object is one part of a file), `mode` (permissions, octal),
//! `modified` (seconds since 1970, nine decimals). A bundle of small files ([`crate::bundle`]) is a `weir:Bundle` element with the
//! attributes of a `File`, and `files` (how many are in it) and `index` (bytes of its index). A folder that is empty, or of other permissions than 755, is a `weir:Folder`
//! element with a `weir:mode`, a symbolic link a `weir:Link` element with a `weir:target`, all after the `File` elements.
//!
//! [`crate::pieces`] defines the digest of a block, [`crate::signed`] the signature over an instance.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quick_xml::escape::escape;
use weir_units::{Hex, parse_hex};
use weir_wire::fec::{NO_CODE, Oti, RAPTORQ};

use crate::attributes::Attributes;
use crate::bundle::BundleEntry;
use crate::limits;
use crate::links::{FolderEntry, LinkEntry, LinkError};
use crate::name::{self, Name, NameError};
use crate::pieces::BlockDigest;

/// One FDT instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Session; `None` from other senders.
    pub tsi: Option<u64>,
    /// Which start of the sender it is of: a later one has a higher number. `None` from other senders.
    pub epoch: Option<u64>,
    /// When it expires, seconds of the NTP era.
    pub expires: u32,
    /// Whether the sender says that no further instance will come.
    pub complete: bool,
    /// The set that the instance belongs to; `None` from other senders.
    pub set: Option<SetTotals>,
    /// The objects.
    pub files: Vec<FileEntry>,
    /// Folders without anything in them, or of other permissions than most.
    pub folders: Vec<FolderEntry>,
    /// Symbolic links.
    pub links: Vec<LinkEntry>,
    /// Entries that could not be used.
    pub refused: Vec<Refused>,
}

/// An entry that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What it is of.
    pub kind: EntryKind,
    /// Its name, as it stands there.
    pub location: String,
    /// Why.
    pub error: ManifestError,
}

/// What an entry is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A file, or an object that is a part of one.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
}

/// The set of files that several instances describe together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetTotals {
    /// Which set.
    pub id: [u8; 16],
    /// Objects in all instances.
    pub objects: u64,
    /// Folders in all instances.
    pub folders: u64,
    /// Links in all instances.
    pub links: u64,
    /// Bytes in all instances.
    pub bytes: u64,
}

/// A set of files as one start of its sender sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edition {
    /// Which set.
    pub set: [u8; 16],
    /// Which start.
    pub epoch: u64,
}

/// One object of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Transport object identifier.
    pub toi: u128,
    /// Name of the file.
    pub name: Name,
    /// Where in the file the object starts, bytes.
    pub offset: u64,
    /// Bytes of the whole file.
    pub file_length: u64,
    /// Bytes of the object.
    pub transfer_length: u64,
    /// How it is cut; `None` where the packets must tell.
    pub oti: Option<Oti>,
    /// BLAKE3 over the whole file; `None` from other senders.
    pub digest: Option<[u8; 32]>,
    /// The digest of each of its source blocks, or of none.
    pub blocks: Vec<BlockDigest>,
    /// MD5 over the object, where the sender gives it.
    pub md5: Option<[u8; 16]>,
    /// Its permissions and its time.
    pub attributes: Attributes,
    /// What is in it, if it is a bundle of files: its name then is nobody's, and stands for its working files alone.
    pub bundle: Option<BundleEntry>,
}

impl Manifest {
    /// Whether it says all that a signed manifest of session `tsi` has to: which files there are, how they are cut, and their
    /// digests.
    pub fn is_whole(&self, tsi: u64) -> bool {
        let has_digests = |file: &FileEntry| file.digest.is_some() && file.oti.is_some();
        self.tsi == Some(tsi) && self.epoch.is_some() && self.set.is_some() && self.files.iter().all(has_digests)
    }

    /// What it is an instance of; `None` from other senders.
    pub fn edition(&self) -> Option<Edition> {
        Some(Edition { set: self.set?.id, epoch: self.epoch? })
    }

    /// The instance as XML, in the namespace of RFC 6726 or, for FLUTE version 1, the one that 3GPP gave RFC 3926.
    pub fn to_xml(&self, version: u8) -> String {
        let namespace = if version == 1 { NAMESPACE_V1 } else { NAMESPACE_V2 };
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<FDT-Instance xmlns=\"{namespace}\" xmlns:weir=\"{NAMESPACE}\" \
             Expires=\"{}\"",
            self.expires
        );
        if self.complete {
            out.push_str(" Complete=\"true\"");
        }
        if let (Some(tsi), Some(epoch), Some(set)) = (self.tsi, self.epoch, &self.set) {
            out.push_str(&format!(
                " weir:tsi=\"{tsi}\" weir:epoch=\"{epoch}\" weir:set=\"{}\" weir:objects=\"{}\" weir:folders=\"{}\" weir:links=\"{}\" \
                 weir:bytes=\"{}\"",
                Hex(&set.id),
                set.objects,
                set.folders,
                set.links,
                set.bytes
            ));
        }
        out.push_str(">\n");
        for file in self.files.iter().filter(|file| file.bundle.is_none()) {
            file.to_xml(&mut out);
        }
        for bundle in self.files.iter().filter(|file| file.bundle.is_some()) {
            bundle.to_xml(&mut out);
        }
        for folder in &self.folders {
            let (location, attributes) = (folder.name.to_location(), folder.attributes.to_xml());
            out.push_str(&format!("<weir:Folder Content-Location=\"{}\"{attributes}/>\n", escape(location.as_str())));
        }
        for link in &self.links {
            let (location, target) = (link.name.to_location(), name::escape(&link.target));
            out.push_str(&format!(
                "<weir:Link Content-Location=\"{}\" weir:target=\"{target}\"/>\n",
                escape(location.as_str())
            ));
        }
        out.push_str("</FDT-Instance>\n");
        out
    }

    /// Reads an instance, Weir's or another sender's, of either version.
    ///
    /// Entries that cannot be used are left out and listed in [`Manifest::refused`].
    ///
    /// # Errors
    /// [`ManifestError`] for what is not an FDT instance at all.
    pub fn from_xml(xml: &[u8], max_files: usize) -> Result<Manifest, ManifestError> {
        let text = std::str::from_utf8(xml).map_err(|_| ManifestError::NotXml)?;
        limits::check(xml)?;
        let nodes_limit = u32::try_from(max_files.saturating_mul(8).saturating_add(1000)).unwrap_or(u32::MAX);
        let options = roxmltree::ParsingOptions { nodes_limit, ..Default::default() };
        let document = roxmltree::Document::parse_with_options(text, options).map_err(|_| ManifestError::NotXml)?;
        let root = document.root_element();
        if root.tag_name().name() != "FDT-Instance" {
            return Err(ManifestError::NotXml);
        }
        let mut manifest = Manifest {
            tsi: own(root, "tsi")?,
            epoch: own(root, "epoch")?,
            expires: number(root, "Expires")?.ok_or(ManifestError::Missing { field: "Expires" })?,
            complete: matches!(root.attribute("Complete"), Some("true" | "1")),
            set: read_set(root)?,
            files: Vec::new(),
            folders: Vec::new(),
            links: Vec::new(),
            refused: Vec::new(),
        };
        for node in root.children().filter(roxmltree::Node::is_element) {
            manifest.read_entry(node, root, max_files)?;
        }
        Ok(manifest)
    }

    /// Reads one element below the root.
    fn read_entry(
        &mut self,
        node: roxmltree::Node<'_, '_>,
        root: roxmltree::Node<'_, '_>,
        max_files: usize,
    ) -> Result<(), ManifestError> {
        let location = node.attribute("Content-Location").unwrap_or_default();
        let is_ours = node.tag_name().namespace() == Some(NAMESPACE);
        let (kind, count) = match node.tag_name().name() {
            "File" => (EntryKind::File, self.files.len()),
            "Bundle" if is_ours => (EntryKind::File, self.files.len()),
            "Folder" if is_ours => (EntryKind::Folder, self.folders.len()),
            "Link" if is_ours => (EntryKind::Link, self.links.len()),
            _ => return Ok(()),
        };
        if count + self.refused.len() >= max_files {
            return Err(ManifestError::TooManyFiles { limit: max_files });
        }
        let read = match kind {
            EntryKind::File => FileEntry::from_xml(node, root).map(|file| self.files.push(file)),
            EntryKind::Folder => Name::from_location(location).map_err(ManifestError::from).map(|name| {
                self.folders.push(FolderEntry { name, attributes: attributes(node) });
            }),
            EntryKind::Link => read_link(node, location).map(|link| self.links.push(link)),
        };
        if let Err(error) = read {
            self.refused.push(Refused { kind, location: location.to_owned(), error });
        }
        Ok(())
    }
}

fn read_link(node: roxmltree::Node<'_, '_>, location: &str) -> Result<LinkEntry, ManifestError> {
    let target = node.attribute((NAMESPACE, "target")).unwrap_or_default();
    let target = name::unescape(target).ok_or(LinkError::Unusable)?;
    Ok(LinkEntry::new(Name::from_location(location)?, target)?)
}

impl FileEntry {
    fn to_xml(&self, out: &mut String) {
        let mut location = self.name.to_location();
        if self.is_part() {
            location.push_str(&format!("?offset={}", self.offset));
        }
        out.push_str(&format!(
            "<{} TOI=\"{}\" Content-Location=\"{}\" Content-Length=\"{}\" Transfer-Length=\"{}\"",
            if self.bundle.is_some() { "weir:Bundle" } else { "File" },
            self.toi,
            escape(location.as_str()),
            self.transfer_length,
            self.transfer_length
        ));
        if let Some(oti) = self.oti {
            let largest = crate::partition::Layout::new(oti).map_or(0, |layout| layout.largest_block());
            out.push_str(&format!(
                " FEC-OTI-FEC-Encoding-ID=\"{}\" FEC-OTI-Maximum-Source-Block-Length=\"{largest}\" \
                 FEC-OTI-Encoding-Symbol-Length=\"{}\"",
                oti.encoding_id(),
                oti.symbol_size()
            ));
            if let Oti::RaptorQ { blocks, sub_blocks, alignment, .. } = oti {
                let [high, low] = sub_blocks.to_be_bytes();
                let info = STANDARD.encode([blocks, high, low, alignment]);
                out.push_str(&format!(" FEC-OTI-Scheme-Specific-Info=\"{info}\""));
            }
        }
        if let Some(md5) = &self.md5 {
            out.push_str(&format!(" Content-MD5=\"{}\"", STANDARD.encode(md5)));
        }
        if let Some(digest) = &self.digest {
            out.push_str(&format!(" weir:digest=\"{}\"", Hex(digest)));
        }
        if !self.blocks.is_empty() {
            out.push_str(&format!(" weir:blocks=\"{}\"", STANDARD.encode(self.blocks.concat())));
        }
        if self.is_part() {
            out.push_str(&format!(" weir:offset=\"{}\" weir:file-length=\"{}\"", self.offset, self.file_length));
        }
        out.push_str(&self.attributes.to_xml());
        if let Some(BundleEntry { files, index_bytes, index_digest }) = self.bundle {
            let digest = Hex(&index_digest);
            out.push_str(&format!(
                " weir:files=\"{files}\" weir:index=\"{index_bytes}\" weir:index-digest=\"{digest}\""
            ));
        }
        out.push_str("/>\n");
    }

    /// Whether the object is not the whole file.
    pub fn is_part(&self) -> bool {
        self.transfer_length != self.file_length
    }

    fn from_xml(node: roxmltree::Node<'_, '_>, root: roxmltree::Node<'_, '_>) -> Result<FileEntry, ManifestError> {
        let toi = number(node, "TOI")?.ok_or(ManifestError::Missing { field: "TOI" })?;
        if toi == 0 {
            return Err(ManifestError::Field { field: "TOI", value: "0".to_owned() });
        }
        let location =
            node.attribute("Content-Location").ok_or(ManifestError::Missing { field: "Content-Location" })?;
        if let Some(encoding) = inherited(node, root, "Content-Encoding")
            && !matches!(encoding, "" | "null" | "identity")
        {
            return Err(ManifestError::ContentEncoding { encoding: encoding.chars().take(40).collect() });
        }
        let content_length: Option<u64> = number(node, "Content-Length")?;
        let transfer_length: Option<u64> = number(node, "Transfer-Length")?;
        let transfer_length =
            transfer_length.or(content_length).ok_or(ManifestError::Missing { field: "Transfer-Length" })?;
        if content_length.is_some_and(|length| length != transfer_length) {
            return Err(ManifestError::Field { field: "Content-Length", value: "differs from Transfer-Length".into() });
        }
        Ok(FileEntry {
            toi,
            name: Name::from_location(location)?,
            offset: own(node, "offset")?.unwrap_or(0),
            file_length: own(node, "file-length")?.unwrap_or(transfer_length),
            transfer_length,
            oti: read_oti(node, root, transfer_length)?,
            digest: match node.attribute((NAMESPACE, "digest")) {
                Some(text) => Some(parse_hex(text).ok_or_else(|| bad("weir:digest", text))?),
                None => None,
            },
            blocks: read_blocks(node)?,
            md5: node.attribute("Content-MD5").and_then(|text| STANDARD.decode(text).ok()?.try_into().ok()),
            attributes: attributes(node),
            bundle: read_bundle(node)?,
        })
    }
}

fn read_bundle(node: roxmltree::Node<'_, '_>) -> Result<Option<BundleEntry>, ManifestError> {
    if node.tag_name().name() != "Bundle" {
        return Ok(None);
    }
    let total = |field: &'static str| own(node, field)?.ok_or(ManifestError::Missing { field });
    let digest = node.attribute((NAMESPACE, "index-digest")).ok_or(ManifestError::Missing { field: "index-digest" })?;
    let index_digest = parse_hex(digest).ok_or_else(|| bad("weir:index-digest", digest))?;
    Ok(Some(BundleEntry { files: total("files")?, index_bytes: total("index")?, index_digest }))
}

/// Permissions and time of a file or folder, and whether it has holes.
fn attributes(node: roxmltree::Node<'_, '_>) -> Attributes {
    let read = Attributes::read(node.attribute((NAMESPACE, "mode")), node.attribute((NAMESPACE, "modified")));
    Attributes { sparse: node.attribute((NAMESPACE, "sparse")) == Some("1"), ..read }
}

fn read_blocks(node: roxmltree::Node<'_, '_>) -> Result<Vec<BlockDigest>, ManifestError> {
    let Some(text) = node.attribute((NAMESPACE, "blocks")) else { return Ok(Vec::new()) };
    let bytes = STANDARD.decode(text).map_err(|_| bad("weir:blocks", text))?;
    let (digests, rest) = bytes.as_chunks();
    if rest.is_empty() { Ok(digests.to_vec()) } else { Err(bad("weir:blocks", text)) }
}

fn read_set(root: roxmltree::Node<'_, '_>) -> Result<Option<SetTotals>, ManifestError> {
    let Some(id) = root.attribute((NAMESPACE, "set")) else { return Ok(None) };
    let id = parse_hex(id).ok_or_else(|| bad("weir:set", id))?;
    let total = |field: &'static str| own(root, field)?.ok_or(ManifestError::Missing { field });
    Ok(Some(SetTotals {
        id,
        objects: total("objects")?,
        folders: total("folders")?,
        links: total("links")?,
        bytes: total("bytes")?,
    }))
}

/// The FEC attributes of a file, which may stand on the root for all; `None` where there are none.
fn read_oti(
    node: roxmltree::Node<'_, '_>,
    root: roxmltree::Node<'_, '_>,
    transfer_length: u64,
) -> Result<Option<Oti>, ManifestError> {
    let text = |field| inherited(node, root, field);
    let Some(encoding_id) = text("FEC-OTI-FEC-Encoding-ID") else { return Ok(None) };
    let read = |field: &'static str| match text(field) {
        Some(value) => value.trim().parse::<u32>().map(Some).map_err(|_| bad(field, value)),
        None => Ok(None),
    };
    let Some(symbol_size) = read("FEC-OTI-Encoding-Symbol-Length")? else { return Ok(None) };
    let symbol_size =
        u16::try_from(symbol_size).map_err(|_| bad("FEC-OTI-Encoding-Symbol-Length", &symbol_size.to_string()))?;
    match encoding_id.trim().parse::<u8>() {
        Ok(NO_CODE) => {
            let largest = read("FEC-OTI-Maximum-Source-Block-Length")?;
            Ok(largest.map(|max_block_len| Oti::NoCode { transfer_length, symbol_size, max_block_len }))
        }
        Ok(RAPTORQ) => {
            let Some(info) = text("FEC-OTI-Scheme-Specific-Info") else { return Ok(None) };
            let bytes: Option<[u8; 4]> = STANDARD.decode(info.trim()).ok().and_then(|bytes| bytes.try_into().ok());
            let [blocks, high, low, alignment] = bytes.ok_or_else(|| bad("FEC-OTI-Scheme-Specific-Info", info))?;
            let sub_blocks = u16::from_be_bytes([high, low]);
            Ok(Some(Oti::RaptorQ { transfer_length, symbol_size, blocks, sub_blocks, alignment }))
        }
        _ => Err(ManifestError::Fec { encoding_id: encoding_id.chars().take(20).collect() }),
    }
}

fn inherited<'a>(node: roxmltree::Node<'a, '_>, root: roxmltree::Node<'a, '_>, field: &str) -> Option<&'a str> {
    node.attribute(field).or_else(|| root.attribute(field))
}

fn number<N: std::str::FromStr>(
    node: roxmltree::Node<'_, '_>,
    field: &'static str,
) -> Result<Option<N>, ManifestError> {
    match node.attribute(field) {
        Some(text) => text.trim().parse().map(Some).map_err(|_| bad(field, text)),
        None => Ok(None),
    }
}

fn own(node: roxmltree::Node<'_, '_>, field: &'static str) -> Result<Option<u64>, ManifestError> {
    match node.attribute((NAMESPACE, field)) {
        Some(text) => text.parse().map(Some).map_err(|_| bad(field, text)),
        None => Ok(None),
    }
}

fn bad(field: &'static str, value: &str) -> ManifestError {
    ManifestError::Field { field, value: value.chars().take(40).collect() }
}

/// Why a manifest or one of its entries cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// Not an FDT instance.
    #[error("this is not an FDT instance in XML")]
    NotXml,
    /// An attribute that must be there is not.
    #[error("attribute {field} is missing")]
    Missing {
        /// The attribute.
        field: &'static str,
    },
    /// An attribute cannot be read.
    #[error("attribute {field} has the unusable value {value:?}")]
    Field {
        /// The attribute.
        field: &'static str,
        /// Its value, cut short.
        value: String,
    },
    /// The name is refused.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The content is compressed.
    #[error("content encoding {encoding:?} is not supported; have the sender send it as it is")]
    ContentEncoding {
        /// The encoding.
        encoding: String,
    },
    /// A link that does not stay where it is.
    #[error("it is {0}")]
    Link(#[from] LinkError),
    /// The FEC scheme is unknown.
    #[error("FEC encoding id {encoding_id} is not supported; have the sender use 6 (RaptorQ) or 0 (Compact No-Code)")]
    Fec {
        /// The id.
        encoding_id: String,
    },
    /// What no table of anyone's needs, and what would keep a parser busy.
    #[error("an instance with {what} is not looked at")]
    Excessive {
        /// What there is too much of.
        what: &'static str,
    },
    /// More files than the receiver takes.
    #[error("more than {limit} files in one session; raise the receiver's limit")]
    TooManyFiles {
        /// The limit.
        limit: usize,
    },
}

const NAMESPACE: &str = "urn:weir:manifest:1";
const NAMESPACE_V2: &str = "urn:ietf:params:xml:ns:fdt";
const NAMESPACE_V1: &str = "urn:IETF:metadata:2005:FLUTE:FDT";

#[cfg(test)]
mod tests;

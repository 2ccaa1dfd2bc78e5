//! Which tables count: those that the sender signed, that have not expired, and that are of no earlier start of the sender than
//! the last one heard.
//!
//! Nothing reads a table before its signature is known to be right. Where no key is known, anybody's table is read, within
//! limits ([`crate::limits`]).

use weir_wire::alc::Content;

use super::fdt::{self, Assembled};
use super::{Event, Origin, Store, StoreError};
use crate::manifest::Manifest;
use crate::signed;

/// What a table is worth.
enum Verdict {
    /// It counts.
    Good(Box<Manifest>),
    /// It is the sender's, and out of date.
    Old,
    /// It is nobody's, or makes no sense.
    Bad,
}

impl Store {
    pub(super) fn add_fdt(&mut self, content: &Content, symbol: &[u8], origin: Origin) -> Result<(), StoreError> {
        let (id, bytes) = match self.fdt.add(content, symbol, origin) {
            Assembled::Instance(id, bytes) => (id, bytes),
            Assembled::Nothing => return Ok(()),
            Assembled::Unusable => {
                self.counts.rejected_packets += 1;
                return Ok(());
            }
        };
        match self.read_table(bytes, id.content_encoding)? {
            Verdict::Good(manifest) => {
                self.fdt.finish(id);
                self.senders.note_table(origin);
                self.counts.edition = manifest.edition();
                self.admit(*manifest)?;
                self.open_folders();
            }
            Verdict::Old => {
                self.fdt.forget(id);
                self.counts.old_manifests += 1;
            }
            Verdict::Bad => {
                self.fdt.reject(id);
                self.counts.rejected_manifests += 1;
            }
        }
        Ok(())
    }

    /// Once all of the table is here, and of the bundles' indexes, nothing more can be said of folders.
    pub(super) fn open_folders(&mut self) {
        if self.folder.has_closed() && self.bundles.unread == 0 && self.manifest_complete() {
            let refused = self.folder.open_folders(self.umask);
            refused.into_iter().for_each(|(name, error)| self.event(Event::AttributesRefused { name, error }));
        }
    }

    fn read_table(&mut self, bytes: Vec<u8>, content_encoding: u8) -> Result<Verdict, StoreError> {
        let Some(key) = self.options.key else {
            let xml = fdt::unpack(bytes, content_encoding, self.options.max_fdt_bytes);
            let manifest = xml.and_then(|xml| Manifest::from_xml(&xml, self.options.max_files).ok());
            let manifest = manifest.filter(|manifest| manifest.tsi.is_none_or(|tsi| tsi == self.options.tsi));
            return Ok(manifest.map_or(Verdict::Bad, |manifest| Verdict::Good(Box::new(manifest))));
        };
        // Signed tables come as they are: the assembler has not taken any other.
        let Some(xml) = signed::open(&bytes, &key, self.options.tsi) else { return Ok(Verdict::Bad) };
        let manifest = Manifest::from_xml(xml, self.options.max_files);
        let Some(manifest) = manifest.ok().filter(|manifest| manifest.is_whole(self.options.tsi)) else {
            return Ok(Verdict::Bad);
        };
        if !self.is_current(&manifest)? {
            return Ok(Verdict::Old);
        }
        Ok(Verdict::Good(Box::new(manifest)))
    }

    /// Whether a signed manifest has not expired, and is of the last start of the sender or of a new one, which is remembered.
    fn is_current(&mut self, manifest: &Manifest) -> Result<bool, StoreError> {
        // Both are 32 bits that wrap, and never decades apart.
        let ago = self.now.map_or(0, |now| now.wrapping_sub(manifest.expires) as i32);
        if ago > 0 {
            if !std::mem::replace(&mut self.is_told_of_expired, true) {
                self.event(Event::ExpiredTable { ago_secs: ago.unsigned_abs() });
            }
            return Ok(false);
        }
        let (Some(epochs), Some(epoch)) = (&mut self.epochs, manifest.epoch) else { return Ok(true) };
        // A set is one start's: at the same number, another set is somebody's mistake.
        let is_other_set = |set| self.set.is_some_and(|known| known.id != set);
        let is_same_start = self.heard_epoch == Some(epoch);
        if epoch < epochs.highest() || (is_same_start && manifest.set.is_some_and(|set| is_other_set(set.id))) {
            if !std::mem::replace(&mut self.is_told_of_old, true) {
                self.event(Event::OldTable);
            }
            return Ok(false);
        }
        if self.heard_epoch != Some(epoch) {
            // Those of the start before are looked at again, and told of.
            self.fdt.forget_finished();
            self.heard_epoch = Some(epoch);
            let path = self.folder.path().to_owned();
            let raised = epochs.raise(&self.folder, epoch);
            raised.map_err(|source| StoreError::Folder { path, source })?;
        }
        Ok(true)
    }
}

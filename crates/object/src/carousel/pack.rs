//! Which files of a set travel in bundles, and which bundle each goes into.
//!
//! A file of a block or more gains nothing in a bundle: its entry in the table is a few hundredths of a per cent of it, and the time that a
//! receiver takes to begin and to end it passes while its packets come. Of smaller ones, a few need no bundle either.

use super::{CarouselError, CarouselOptions};
use crate::bundle::{self, BUNDLE_BYTES, ENTRY_BYTES, Entry, FEWEST_FILES, INDEX_BYTES, MAX_ENTRIES};
use crate::limits::{MAX_BUNDLED, MAX_TABLE_ENTRIES};
use crate::source::{SourceFile, SourceSet};

/// Puts the small files of a set into bundles, if there are enough of them, and with them its folders and links.
pub(crate) fn pack(set: SourceSet, object_bytes: u64, options: &CarouselOptions) -> Result<SourceSet, CarouselError> {
    let block_bytes = u64::from(options.block_symbols) * u64::from(options.symbol_size);
    let is_small = |file: &SourceFile| file.length < block_bytes && file.md5.is_none();
    let small = set.files.iter().filter(|file| is_small(file)).count();
    let rest = (set.folders.len() + set.links.len()) as u64;
    let packed = if options.bundle && small >= FEWEST_FILES {
        if small as u64 + rest > MAX_BUNDLED {
            return Err(CarouselError::TooManySmall { count: small as u64 + rest, limit: MAX_BUNDLED });
        }
        bundles(set, is_small, BUNDLE_BYTES.min(object_bytes / 2))?
    } else {
        set
    };
    let count = packed.files.len() + packed.folders.len() + packed.links.len();
    if count > MAX_TABLE_ENTRIES {
        return Err(CarouselError::TooManyEntries { count, limit: MAX_TABLE_ENTRIES });
    }
    Ok(packed)
}

fn bundles(
    mut set: SourceSet,
    is_small: impl Fn(&SourceFile) -> bool,
    bundle_bytes: u64,
) -> Result<SourceSet, CarouselError> {
    let (small, large): (Vec<_>, Vec<_>) = std::mem::take(&mut set.files).into_iter().partition(is_small);
    let files = small.iter().map(|file| Entry::File {
        name: &file.name,
        attributes: file.attributes,
        length: file.length,
        digest: &file.digest,
    });
    let mut entries: Vec<Entry<'_>> = files.chain(set.folders.iter().map(Entry::Folder)).collect();
    entries.extend(set.links.iter().map(Entry::Link));
    entries.sort_by_key(Entry::name);
    let (mut sources, mut rest) = (Vec::new(), small.iter());
    for entries in groups(&entries, bundle_bytes) {
        let count = entries.iter().filter(|entry| matches!(entry, Entry::File { .. })).count();
        let files = rest.by_ref().take(count).cloned().collect();
        sources.push(SourceFile::bundle(bundle::pack(entries), files).map_err(CarouselError::Source)?);
    }
    sources.extend(large);
    (set.files, set.folders, set.links) = (sources, Vec::new(), Vec::new());
    Ok(set)
}

/// Entries that follow each other, as many as a bundle takes.
fn groups<'e, 'a>(entries: &'e [Entry<'a>], bundle_bytes: u64) -> Vec<&'e [Entry<'a>]> {
    let (mut groups, mut rest) = (Vec::new(), entries);
    while !rest.is_empty() {
        let (mut content, mut index) = (0, 0);
        let fits = |entry: &&Entry<'_>| {
            content += entry.length();
            index += ENTRY_BYTES + entry.name().as_bytes().len();
            index += if let Entry::Link(link) = entry { link.target.len() } else { 0 };
            content + index as u64 <= bundle_bytes && index <= INDEX_BYTES
        };
        let count = rest.iter().take(MAX_ENTRIES).take_while(fits).count().max(1);
        let (group, later) = rest.split_at(count);
        groups.push(group);
        rest = later;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;

    #[test]
    fn a_bundle_takes_what_fits_and_something_in_any_case() {
        let names: Vec<Name> = (0..6).map(|i| Name::new(format!("f{i}")).expect("a name")).collect();
        let lengths = [900, 10, 10, 700, 700, 5000];
        let entry = |(name, length)| Entry::File { name, attributes: Default::default(), length, digest: &[0; 32] };
        let entries: Vec<Entry<'_>> = names.iter().zip(lengths).map(entry).collect();
        let counts: Vec<usize> = groups(&entries, 1100).iter().map(|group| group.len()).collect();
        assert_eq!(counts, [2, 2, 1, 1]);
    }
}

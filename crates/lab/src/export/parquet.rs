//! A table as a Parquet file: one row group, one plain uncompressed page a column
//! (<https://parquet.apache.org/docs/file-format/>). Results are small; the crates that write every kind of Parquet take
//! minutes to compile.

use super::thrift::{Struct, varint};
use super::{Column, Table, Values};

impl Table {
    /// The table as a Parquet file. Every column may have nulls.
    pub fn to_parquet(&self) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        let chunks: Vec<Struct> = self.columns.iter().map(|column| write_chunk(&mut file, column)).collect();
        let (rows, size) = (self.len() as i64, (file.len() - MAGIC.len()) as i64);
        let root = Struct::default().string(4, "schema").i32(5, self.columns.len() as i32);
        let schema = std::iter::once(root).chain(self.columns.iter().map(element)).collect();
        let group = Struct::default().structs(1, chunks).i64(2, size).i64(3, rows);
        let metadata = Struct::default()
            .i32(1, 1)
            .structs(2, schema)
            .i64(3, rows)
            .structs(4, vec![group])
            .string(6, concat!("weir version ", env!("CARGO_PKG_VERSION")))
            .finish();
        file.extend_from_slice(&metadata);
        file.extend_from_slice(&(metadata.len() as u32).to_le_bytes());
        file.extend_from_slice(MAGIC);
        file
    }
}

/// A column in the schema.
fn element(column: &Column) -> Struct {
    let element = Struct::default().i32(1, physical(&column.values)).i32(3, OPTIONAL).string(4, &column.name);
    match column.values {
        Values::Words(_) => element.i32(6, UTF8),
        _ => element,
    }
}

/// Writes a column's only page; gives its place and kind for the metadata.
fn write_chunk(file: &mut Vec<u8>, column: &Column) -> Struct {
    let start = file.len();
    let page = page(&column.values);
    let (len, count) = (page.len() as i32, column.values.len());
    let about = Struct::default().i32(1, count as i32).i32(2, PLAIN).i32(3, RLE).i32(4, RLE);
    let header = Struct::default().i32(1, DATA_PAGE).i32(2, len).i32(3, len).nested(5, about);
    file.extend(header.finish());
    file.extend(page);
    let size = (file.len() - start) as i64;
    let metadata = Struct::default()
        .i32(1, physical(&column.values))
        .i32s(2, &[PLAIN, RLE])
        .strings(3, &[&column.name])
        .i32(4, UNCOMPRESSED)
        .i64(5, count as i64)
        .i64(6, size)
        .i64(7, size)
        .i64(9, start as i64);
    Struct::default().i64(2, start as i64).nested(3, metadata)
}

/// Which values are there, and then these.
fn page(values: &Values) -> Vec<u8> {
    match values {
        Values::Integers(values) => {
            let mut page = presence(values);
            values.iter().flatten().for_each(|value| page.extend_from_slice(&value.to_le_bytes()));
            page
        }
        Values::Numbers(values) => {
            let mut page = presence(values);
            values.iter().flatten().for_each(|value| page.extend_from_slice(&value.to_le_bytes()));
            page
        }
        Values::Words(values) => {
            let mut page = presence(values);
            for word in values.iter().flatten() {
                page.extend_from_slice(&(word.len() as u32).to_le_bytes());
                page.extend_from_slice(word.as_bytes());
            }
            page
        }
    }
}

/// Definition levels of one bit: one bit-packed run, behind its length in bytes.
fn presence<T>(values: &[Option<T>]) -> Vec<u8> {
    let groups = values.len().div_ceil(8);
    let mut run = Vec::with_capacity(groups + 5);
    varint(&mut run, (groups as u64) << 1 | 1);
    for group in values.chunks(8) {
        run.push(group.iter().enumerate().fold(0, |bits, (i, value)| bits | u8::from(value.is_some()) << i));
    }
    let mut page = (run.len() as u32).to_le_bytes().to_vec();
    page.append(&mut run);
    page
}

fn physical(values: &Values) -> i32 {
    match values {
        Values::Integers(_) => 2,
        Values::Numbers(_) => 5,
        Values::Words(_) => 6,
    }
}

// From parquet.thrift: page types, encodings, repetition, converted types, codecs.
const MAGIC: &[u8] = b"PAR1";
const DATA_PAGE: i32 = 0;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const OPTIONAL: i32 = 1;
const UTF8: i32 = 0;
const UNCOMPRESSED: i32 = 0;

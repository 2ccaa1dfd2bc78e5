//! Tables as Parquet files: row groups with one plain uncompressed page a column
//! (<https://parquet.apache.org/docs/file-format/>). The crates that write every kind of Parquet take minutes to compile.

use std::io::{self, Write};

use super::thrift::{Struct, varint};
use super::{Column, Table, Values};

impl Table {
    /// The table as a Parquet file of one row group. Every column may have nulls.
    pub fn to_parquet(&self) -> Vec<u8> {
        let mut file = Parquet::new(Vec::new());
        file.write(self).and_then(|()| file.finish()).expect("memory takes everything")
    }
}

/// A Parquet file that is written one row group after the other.
#[derive(Debug)]
pub struct Parquet<W> {
    out: W,
    /// Bytes so far.
    len: usize,
    /// The columns, once a table has told them.
    schema: Vec<Struct>,
    groups: Vec<Struct>,
    rows: i64,
}

impl<W: Write> Parquet<W> {
    /// A file without any row yet.
    pub fn new(out: W) -> Parquet<W> {
        Parquet { out, len: 0, schema: Vec::new(), groups: Vec::new(), rows: 0 }
    }

    /// Writes a table as a row group. All tables of a file have the same columns.
    pub fn write(&mut self, table: &Table) -> io::Result<()> {
        if self.schema.is_empty() {
            self.put(MAGIC)?;
            let root = Struct::default().string(4, "schema").i32(5, table.columns.len() as i32);
            self.schema = std::iter::once(root).chain(table.columns.iter().map(element)).collect();
        }
        let start = self.len;
        let chunks: io::Result<Vec<Struct>> = table.columns.iter().map(|column| self.chunk(column)).collect();
        let (rows, size) = (table.len() as i64, (self.len - start) as i64);
        self.groups.push(Struct::default().structs(1, chunks?).i64(2, size).i64(3, rows));
        self.rows += rows;
        Ok(())
    }

    /// Writes what is known at the end only, and gives the writer back. There must be a table, if an empty one.
    pub fn finish(mut self) -> io::Result<W> {
        let metadata = Struct::default()
            .i32(1, 1)
            .structs(2, std::mem::take(&mut self.schema))
            .i64(3, self.rows)
            .structs(4, std::mem::take(&mut self.groups))
            .string(6, concat!("weir version ", env!("CARGO_PKG_VERSION")))
            .finish();
        self.put(&metadata)?;
        self.put(&(metadata.len() as u32).to_le_bytes())?;
        self.put(MAGIC)?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.len += bytes.len();
        self.out.write_all(bytes)
    }

    /// Writes a column's only page of a group; gives its place and kind for the metadata.
    fn chunk(&mut self, column: &Column) -> io::Result<Struct> {
        let start = self.len;
        let page = page(&column.values);
        let (len, count) = (page.len() as i32, column.values.len());
        let about = Struct::default().i32(1, count as i32).i32(2, PLAIN).i32(3, RLE).i32(4, RLE);
        let header = Struct::default().i32(1, DATA_PAGE).i32(2, len).i32(3, len).nested(5, about);
        self.put(&header.finish())?;
        self.put(&page)?;
        let size = (self.len - start) as i64;
        let metadata = Struct::default()
            .i32(1, physical(&column.values))
            .i32s(2, &[PLAIN, RLE])
            .strings(3, &[&column.name])
            .i32(4, UNCOMPRESSED)
            .i64(5, count as i64)
            .i64(6, size)
            .i64(7, size)
            .i64(9, start as i64);
        Ok(Struct::default().i64(2, start as i64).nested(3, metadata))
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

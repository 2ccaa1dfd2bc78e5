//! Thrift's compact protocol, as much of it as Parquet's metadata needs to be written
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>).

/// A struct being written. Fields go in rising order of their ids.
#[derive(Debug, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last_id: u8,
}

impl Struct {
    pub(super) fn i32(mut self, id: u8, value: i32) -> Struct {
        self.header(id, I32);
        varint(&mut self.bytes, zigzag(i64::from(value)));
        self
    }

    pub(super) fn i64(mut self, id: u8, value: i64) -> Struct {
        self.header(id, I64);
        varint(&mut self.bytes, zigzag(value));
        self
    }

    pub(super) fn string(mut self, id: u8, value: &str) -> Struct {
        self.header(id, BINARY);
        string(&mut self.bytes, value);
        self
    }

    pub(super) fn nested(mut self, id: u8, value: Struct) -> Struct {
        self.header(id, STRUCT);
        self.bytes.extend(value.finish());
        self
    }

    pub(super) fn structs(mut self, id: u8, values: Vec<Struct>) -> Struct {
        self.list(id, STRUCT, values.len());
        values.into_iter().for_each(|value| self.bytes.extend(value.finish()));
        self
    }

    pub(super) fn i32s(mut self, id: u8, values: &[i32]) -> Struct {
        self.list(id, I32, values.len());
        values.iter().for_each(|value| varint(&mut self.bytes, zigzag(i64::from(*value))));
        self
    }

    pub(super) fn strings(mut self, id: u8, values: &[&str]) -> Struct {
        self.list(id, BINARY, values.len());
        values.iter().for_each(|value| string(&mut self.bytes, value));
        self
    }

    /// The bytes, with the mark of the end.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    fn header(&mut self, id: u8, kind: u8) {
        let step = id.checked_sub(self.last_id).filter(|step| (1..=15).contains(step)).expect("fields rise by 1 to 15");
        self.bytes.push(step << 4 | kind);
        self.last_id = id;
    }

    fn list(&mut self, id: u8, kind: u8, len: usize) {
        self.header(id, LIST);
        if len < 15 {
            self.bytes.push((len as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            varint(&mut self.bytes, len as u64);
        }
    }
}

/// Seven bits a byte, the low ones first.
pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Small numbers of either sign to small ones without.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn string(bytes: &mut Vec<u8>, text: &str) {
    varint(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specification_s_numbers_come_out() {
        let encoded = |value| {
            let mut bytes = Vec::new();
            varint(&mut bytes, value);
            bytes
        };
        assert_eq!(encoded(50_399), [0xdf, 0x89, 0x03]);
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
        assert_eq!(zigzag(i64::MIN), u64::MAX);
    }

    #[test]
    fn a_struct_s_fields_carry_the_step_from_the_last_id() {
        let bytes = Struct::default().i32(1, 3).string(4, "ab").strings(6, &["x"]).finish();
        assert_eq!(bytes, [0x15, 6, 0x38, 2, b'a', b'b', 0x29, 0x18, 1, b'x', 0]);
    }

    #[test]
    fn long_lists_have_their_length_apart() {
        let bytes = Struct::default().i32s(1, &[0; 20]).finish();
        assert_eq!(bytes[..3], [0x19, 0xf5, 20]);
        assert_eq!(bytes.len(), 3 + 20 + 1);
    }
}

//! Layers that are IVF files of their own, with one clock: frames are given out in the order of their times. Which frame is of which layer
//! is found in the merged stream, as ever, and not taken from the file that it came from.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use weir_media::MAX_PICTURE_BYTES;

use super::{Layers, of, wrong};

/// Several files as one.
#[derive(Debug)]
pub(super) struct Merged {
    layers: Vec<Layer>,
    /// Layers from here on are left out: one below them has ended.
    kept: usize,
    /// What the user is to know.
    told: Vec<String>,
}

/// A file.
#[derive(Debug)]
struct Layer {
    path: PathBuf,
    reader: BufReader<File>,
    header: [u8; FILE_HEADER],
    /// Its next frame. `None` at its end, and before it is looked for.
    next: Option<Frame>,
    /// The time of its latest frame, and how long after the one before that was.
    latest: Option<u64>,
    gap: Option<u64>,
    /// Frames that were given out.
    frames: usize,
}

/// A frame of a file.
#[derive(Debug)]
struct Frame {
    /// In units of the base's file.
    time: u64,
    data: Vec<u8>,
}

impl Merged {
    /// Files with a layer each, the base first.
    pub(super) fn open<'a>(paths: impl Iterator<Item = &'a Path>) -> io::Result<Merged> {
        let layers =
            paths.map(|path| Layer::open(path).map_err(|error| of(path, &error))).collect::<Result<Vec<_>, _>>()?;
        if let Some(other) = layers.iter().find(|layer| layer.fourcc() != layers[0].fourcc()) {
            return Err(of(&other.path, &wrong("its codec is not that of the base layer's file")));
        }
        Ok(Merged { kept: layers.len(), layers, told: Vec::new() })
    }

    /// What all of it begins with.
    pub(super) fn header(&self) -> &[u8] {
        &self.layers[0].header
    }

    /// The frame that comes first: its time and its file.
    fn first(&self) -> io::Result<Option<(u64, usize)>> {
        let times = || self.layers[..self.kept].iter().enumerate().filter_map(|(n, layer)| Some((layer.time()?, n)));
        let Some((time, place)) = times().min() else { return Ok(None) };
        let Some((_, other)) = times().find(|&(at, other)| at == time && other != place) else {
            return Ok(Some((time, place)));
        };
        let [one, other] = [place, other].map(|place| self.layers[place].path.display());
        Err(wrong(&format!(
            "{one} and {other} have a picture at the same time ({time}): layers that are files of their own need the times of the \
             stream that they come from, and files that each begin at 0 have lost them"
        )))
    }

    /// Pictures above a layer that has ended may need what it lacks.
    fn leave_out_above(&mut self, ended: usize) {
        let paths: Vec<_> =
            self.layers[ended + 1..self.kept].iter().map(|layer| layer.path.display().to_string()).collect();
        let path = self.layers[ended].path.display();
        self.told.push(format!("{path} ends before {}, which is left out from there on", paths.join(" and ")));
        self.kept = ended + 1;
    }
}

impl Layers for Merged {
    /// The next by its time, with its header.
    fn next(&mut self) -> io::Result<Vec<u8>> {
        let base = self.layers[0].header;
        for layer in &mut self.layers[..self.kept] {
            layer.fill(&base).map_err(|error| of(&layer.path, &error))?;
        }
        while let Some((time, place)) = self.first()? {
            let Some(ended) = self.layers[..place].iter().position(|layer| layer.is_missed_at(time)) else {
                let layer = &mut self.layers[place];
                layer.frames += 1;
                let data = layer.next.take().map(|frame| frame.data).unwrap_or_default();
                return Ok([&(data.len() as u32).to_le_bytes()[..], &time.to_le_bytes(), &data].concat());
            };
            self.leave_out_above(ended);
        }
        Ok(Vec::new())
    }

    fn base(&self) -> &File {
        self.layers[0].reader.get_ref()
    }

    fn pictures(&self) -> Vec<(&Path, usize)> {
        self.layers.iter().map(|layer| (&*layer.path, layer.frames)).collect()
    }

    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }
}

impl Layer {
    fn open(path: &Path) -> io::Result<Layer> {
        let mut reader = BufReader::new(File::open(path)?);
        let mut header = [0; FILE_HEADER];
        reader.read_exact(&mut header).map_err(|_| wrong("it is no IVF file"))?;
        if &header[..4] != b"DKIF" || usize::from(u16::from_le_bytes([header[6], header[7]])) != FILE_HEADER {
            return Err(wrong("it is no IVF file, as the base layer's is"));
        }
        if units(&header).is_none() {
            return Err(wrong("its header says nothing of its clock"));
        }
        Ok(Layer { path: path.to_owned(), reader, header, next: None, latest: None, gap: None, frames: 0 })
    }

    fn fourcc(&self) -> &[u8] {
        &self.header[8..12]
    }

    /// The time of the next frame.
    fn time(&self) -> Option<u64> {
        self.next.as_ref().map(|frame| frame.time)
    }

    /// Whether it has ended, and would have had a frame up to this time if it had gone on as it did.
    fn is_missed_at(&self, time: u64) -> bool {
        self.next.is_none()
            && match (self.latest, self.gap) {
                (None, _) => true,
                (Some(latest), Some(gap)) => time >= latest.saturating_add(gap),
                (Some(_), None) => false,
            }
    }

    /// Reads the next frame, unless it is there or there is none. Times are told in units of `base`.
    fn fill(&mut self, base: &[u8; FILE_HEADER]) -> io::Result<()> {
        if self.next.is_some() {
            return Ok(());
        }
        let mut header = Vec::new();
        self.reader.by_ref().take(FRAME_HEADER as u64).read_to_end(&mut header)?;
        let Some(&[a, b, c, d, ref time @ ..]) = header.first_chunk::<FRAME_HEADER>() else {
            return if header.is_empty() { Ok(()) } else { Err(wrong("it is cut off in a frame")) };
        };
        let length = u32::from_le_bytes([a, b, c, d]);
        if length as usize > MAX_PICTURE_BYTES {
            return Err(wrong("a frame is longer than any picture"));
        }
        let mut frame = Vec::new();
        self.reader.by_ref().take(length.into()).read_to_end(&mut frame)?;
        if frame.len() < length as usize {
            return Err(wrong("it is cut off in a frame"));
        }
        let (own, theirs) = (units(&self.header).unwrap_or(ONE), units(base).unwrap_or(ONE));
        // Times are in units of numerator / denominator seconds.
        let scaled = u128::from(u64::from_le_bytes(*time)) * own.1 * theirs.0 / (own.0 * theirs.1);
        let time = u64::try_from(scaled).unwrap_or(u64::MAX);
        if self.latest.is_some_and(|latest| time <= latest) {
            return Err(wrong("its times do not rise from picture to picture"));
        }
        self.gap = self.latest.map(|latest| time - latest);
        self.latest = Some(time);
        self.next = Some(Frame { time, data: frame });
        Ok(())
    }
}

/// The denominator and the numerator of the unit of a file's times, in seconds; `None` if it has none.
fn units(header: &[u8; FILE_HEADER]) -> Option<(u128, u128)> {
    let number = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u128::from(u32::from_le_bytes(*bytes)));
    let (denominator, numerator) = (number(16), number(20));
    (denominator > 0 && numerator > 0).then_some((denominator, numerator))
}

const ONE: (u128, u128) = (1, 1);
const FILE_HEADER: usize = 32;
const FRAME_HEADER: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A file whose times are in units of 1/`rate` seconds, with these frames.
    fn file(rate: u32, frames: &[(u64, &[u8])]) -> tempfile::NamedTempFile {
        let mut bytes = b"DKIF\0\0\x20\0VP90\x40\x01\xb4\0".to_vec();
        bytes.extend(rate.to_le_bytes());
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for (time, frame) in frames {
            bytes.extend((frame.len() as u32).to_le_bytes());
            bytes.extend(time.to_le_bytes());
            bytes.extend(*frame);
        }
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&bytes).expect("it takes bytes");
        file
    }

    fn merged(files: &[&tempfile::NamedTempFile]) -> io::Result<Vec<u8>> {
        let others: Vec<PathBuf> = files[1..].iter().map(|file| file.path().to_owned()).collect();
        let mut out = Vec::new();
        super::super::Reading::open(files[0].path(), &others)?.read_to_end(&mut out).map(|_| out)
    }

    #[test]
    fn frames_of_several_files_come_in_the_order_of_their_times_whatever_their_units() {
        let base = file(30, &[(0, b"a"), (4, b"e"), (8, b"i")]);
        let top = file(90_000, &[(6_000, b"c"), (15_000, b"f"), (18_000, b"g")]);
        let whole = file(30, &[(0, b"a"), (2, b"c"), (4, b"e"), (5, b"f"), (6, b"g"), (8, b"i")]);
        let bytes = merged(&[&base, &top]).expect("they are files");
        assert_eq!(bytes, std::fs::read(whole.path()).expect("it is there"));
    }

    #[test]
    fn the_top_layer_may_end_early() {
        let (base, top) = (file(30, &[(0, b"a"), (4, b"e")]), file(30, &[]));
        assert_eq!(merged(&[&base, &top]).expect("they are files"), std::fs::read(base.path()).expect("it is there"));
    }

    #[test]
    fn what_is_above_a_layer_that_has_ended_is_left_out_from_there_on_and_the_user_told() {
        let base = file(30, &[(0, b"a"), (4, b"e"), (8, b"i"), (12, b"m")]);
        let middle = file(30, &[(2, b"c"), (6, b"g")]);
        let top = file(30, &[(1, b"b"), (3, b"d"), (5, b"f"), (7, b"h"), (9, b"j"), (11, b"l"), (13, b"n")]);
        let whole = [
            (0, b"a"),
            (1, b"b"),
            (2, b"c"),
            (3, b"d"),
            (4, b"e"),
            (5, b"f"),
            (6, b"g"),
            (7, b"h"),
            (8, b"i"),
            (9, b"j"),
            (12, b"m"),
        ];
        let whole = file(30, &whole.map(|(time, data)| (time, &data[..])));
        let others = [middle.path().to_owned(), top.path().to_owned()];
        let mut reading = super::super::Reading::open(base.path(), &others).expect("they are files");
        let mut bytes = Vec::new();
        reading.read_to_end(&mut bytes).expect("they are whole");
        assert_eq!(bytes, std::fs::read(whole.path()).expect("it is there"));
        let told = reading.told().join("; ");
        assert!(told.starts_with(&middle.path().display().to_string()) && told.contains("left out"), "{told}");
    }

    #[test]
    fn a_programme_ends_with_its_base_layer() {
        let (base, top) = (file(30, &[(0, b"a"), (2, b"c")]), file(30, &[(1, b"b"), (3, b"d"), (5, b"f"), (7, b"h")]));
        let whole = file(30, &[(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]);
        assert_eq!(merged(&[&base, &top]).expect("they are files"), std::fs::read(whole.path()).expect("it is there"));
    }

    #[test]
    fn files_that_each_begin_at_zero_are_refused_and_named() {
        let (base, top) = (file(30, &[(0, b"a"), (4, b"e")]), file(30, &[(0, b"c"), (4, b"g")]));
        let error = merged(&[&base, &top]).expect_err("their times are lost").to_string();
        assert!(error.contains(&top.path().display().to_string()) && error.contains("same time"), "{error}");
    }

    #[test]
    fn a_file_whose_times_go_back_or_whose_codec_is_another_is_refused() {
        let base = file(30, &[(0, b"a"), (4, b"e")]);
        let error = merged(&[&base, &file(30, &[(3, b"c"), (2, b"b")])]).expect_err("times go back").to_string();
        assert!(error.contains("do not rise"), "{error}");
        let other = file(30, &[(2, b"c")]);
        let mut bytes = std::fs::read(other.path()).expect("it is there");
        bytes[8..12].copy_from_slice(b"AV01");
        std::fs::write(other.path(), bytes).expect("it takes bytes");
        let error = merged(&[&base, &other]).expect_err("it is of another codec").to_string();
        assert!(error.contains("codec"), "{error}");
    }

    #[test]
    fn what_is_no_ivf_file_or_is_cut_off_is_named() {
        let base = file(30, &[(0, b"a")]);
        let mut rubbish = tempfile::NamedTempFile::new().expect("a file");
        rubbish.write_all(&[7; 100]).expect("it takes bytes");
        let error = merged(&[&base, &rubbish]).expect_err("it is no IVF file").to_string();
        assert!(error.contains(&rubbish.path().display().to_string()) && error.contains("no IVF"), "{error}");
        let cut = file(30, &[(0, b"abc")]);
        cut.as_file().set_len(32 + 12 + 1).expect("it can be cut");
        assert!(merged(&[&base, &cut]).expect_err("it is cut off").to_string().contains("cut off"));
        assert!(merged(&[&base, &file(0, &[])]).expect_err("it has no clock").to_string().contains("clock"));
    }
}

//! Layers that are files of raw HEVC or H.264 of their own. These have no times: pictures are given out in the order in which they can be
//! decoded, which they tell themselves.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use weir_media::{AccessUnit, AccessUnits, Ambiguous, Codec, DecodeOrder, Head, MediaError};

use super::{Layers, of, wrong};

/// Several files as one.
#[derive(Debug)]
pub(super) struct Interleaved {
    layers: Vec<Layer>,
    order: DecodeOrder,
    /// What the user is to know.
    told: Vec<String>,
}

/// A file.
#[derive(Debug)]
struct Layer {
    path: PathBuf,
    file: File,
    units: AccessUnits,
    is_at_end: bool,
    next: Option<AccessUnit>,
    /// Pictures that were given out.
    pictures: usize,
}

impl Interleaved {
    /// Files of this codec with a layer each, the base first. `None` if it is none that raw files are of.
    pub(super) fn open<'a>(codec: Codec, paths: impl Iterator<Item = &'a Path>) -> io::Result<Option<Interleaved>> {
        let Some(order) = DecodeOrder::new(codec) else { return Ok(None) };
        let layers =
            paths.map(|path| Layer::open(codec, path).map_err(|error| of(path, &error))).collect::<Result<_, _>>()?;
        Ok(Some(Interleaved { layers, order, told: Vec::new() }))
    }

    fn ambiguous(&self, Ambiguous { layer }: Ambiguous) -> io::Error {
        let (base, layer) = (self.layers[0].path.display(), &self.layers[layer]);
        let text = format!(
            "its {}. picture could come on either side of a key picture of {base}, as raw files have no times: send the whole stream, or RTP \
             streams, which have times",
            layer.pictures + 1
        );
        of(&layer.path, &wrong(&text))
    }

    fn give(&mut self, layer: usize) -> Vec<u8> {
        let layer = &mut self.layers[layer];
        let Some(unit) = layer.next.take() else { return Vec::new() };
        layer.pictures += 1;
        self.order.take(&unit);
        unit.into_data()
    }

    /// What is left when the base has ended has no place.
    fn leave_out_rest(&mut self) -> io::Result<()> {
        let base = self.layers[0].path.display().to_string();
        for layer in self.layers.iter_mut().filter(|layer| layer.next.is_some()) {
            let path = layer.path.display();
            if layer.pictures == 0 {
                return Err(wrong(&format!(
                    "{path}: its pictures have no place among those of {base}: are they layers of one stream?"
                )));
            }
            self.told.push(format!(
                "{path} is left out from its {}. picture on, which has no place among those of {base}",
                layer.pictures + 1
            ));
            (layer.next, layer.is_at_end) = (None, true);
        }
        Ok(())
    }
}

impl Layers for Interleaved {
    /// The next in the order of decoding.
    fn next(&mut self) -> io::Result<Vec<u8>> {
        for layer in &mut self.layers {
            layer.fill().map_err(|error| of(&layer.path, &error))?;
        }
        let heads = self.layers.iter().map(|layer| layer.next.as_ref().map(|unit| Head { unit, time: None }));
        let heads: Vec<_> = heads.collect();
        match self.order.next(&heads).map_err(|ambiguous| self.ambiguous(ambiguous))? {
            Some(layer) => Ok(self.give(layer)),
            None => self.leave_out_rest().map(|()| Vec::new()),
        }
    }

    fn base(&self) -> &File {
        &self.layers[0].file
    }

    fn pictures(&self) -> Vec<(&Path, usize)> {
        self.layers.iter().map(|layer| (&*layer.path, layer.pictures)).collect()
    }

    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }
}

impl Layer {
    fn open(codec: Codec, path: &Path) -> io::Result<Layer> {
        let (file, units) = (File::open(path)?, AccessUnits::new(codec));
        Ok(Layer { path: path.to_owned(), file, units, is_at_end: false, next: None, pictures: 0 })
    }

    /// Reads the next picture, unless it is there or there is none.
    fn fill(&mut self) -> io::Result<()> {
        while self.next.is_none() {
            self.next = self.units.next().transpose().map_err(|error: MediaError| wrong(&error.to_string()))?;
            if self.next.is_some() || self.is_at_end {
                break;
            }
            self.read_on()?;
        }
        match self.next {
            None if self.pictures == 0 => Err(wrong("it holds no picture")),
            _ => Ok(()),
        }
    }

    fn read_on(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; READ];
        match self.file.read(&mut buffer) {
            Ok(0) => {
                self.is_at_end = true;
                self.units.finish();
            }
            Ok(read) => self.units.push(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

const READ: usize = 1 << 16;

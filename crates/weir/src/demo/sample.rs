//! A file to send for those who have none at hand: depth soundings, as a survey ship would log them.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use weir_units::{Bytes, Random};

use crate::exit::{Exit, Failure};

/// Writes `soundings.csv` of exactly `size` into `folder`, the same each time.
pub(super) fn write(folder: &Path, size: Bytes) -> Result<PathBuf, Failure> {
    let path = folder.join("soundings.csv");
    let written = File::create(&path).and_then(|file| fill(BufWriter::new(file), size));
    written.map_err(Failure::of(Exit::Files, format!("cannot write {}; choose another --out", path.display())))?;
    Ok(path)
}

fn fill(mut file: impl Write, size: Bytes) -> std::io::Result<()> {
    let mut random = Random::new(1, "soundings");
    let mut left = usize::try_from(size.count()).unwrap_or(usize::MAX);
    let mut line = String::from("time_s,latitude_deg,longitude_deg,depth_m,water_celsius\n");
    let (mut latitude, mut longitude, mut depth, mut t_ms) = (59.3_f64, 18.6_f64, 84.0_f64, 0);
    while left > 0 {
        let bytes = &line.as_bytes()[..line.len().min(left)];
        file.write_all(bytes)?;
        left -= bytes.len();
        t_ms += 200 + random.below(40);
        latitude += random.uniform(-1e-5, 1.2e-5);
        longitude += random.uniform(-1e-5, 1.4e-5);
        depth = (depth + random.uniform(-0.6, 0.6)).clamp(4.0, 459.0);
        let warmth = 4.0 + 9.0 / (1.0 + depth / 20.0) + random.uniform(-0.05, 0.05);
        line.clear();
        let seconds = t_ms as f64 / 1e3;
        writeln!(line, "{seconds:.3},{latitude:.7},{longitude:.7},{depth:.2},{warmth:.2}")
            .expect("writing to a string cannot fail");
    }
    file.flush()
}

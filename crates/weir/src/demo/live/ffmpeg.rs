//! What ffmpeg does for the demonstration: it makes the clip, decodes what came, and takes pictures out of it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::exit::{Exit, Failure};

/// What a clip decodes to.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Decoded {
    /// A digest of each picture, in order.
    pub(super) digests: Vec<String>,
    /// When each is to be shown.
    pub(super) times_s: Vec<f64>,
    /// Width and height in pixels.
    pub(super) size: (u32, u32),
    /// What the decoder complained of, a line each.
    pub(super) complaints: Vec<String>,
}

/// Fails unless ffmpeg is there.
pub(super) fn is_there() -> Result<(), Failure> {
    run(command().arg("-version")).map(drop)
}

/// Writes a clip with motion and a counter: VP9 in three temporal layers, 30 pictures a second, a key picture every two seconds.
///
/// Without the least and the greatest rate libvpx does not keep to the rates of the layers.
pub(super) fn generate(path: &Path, length: Duration) -> Result<(), Failure> {
    let source = format!("testsrc2=size=640x360:rate=30:duration={}", length.as_secs_f64());
    let mut command = command();
    command.args(["-y", "-f", "lavfi", "-i", &source]).args(ENCODER.split(' '));
    command.args(["-ts-parameters", LAYERS, "-f", "ivf"]).arg(path);
    let output = run(&mut command)?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    Err(Failure::new(
        Exit::Files,
        format!("ffmpeg cannot make {}: {told}\n  It must have the encoder libvpx-vp9.", path.display()),
    ))
}

/// Decodes a clip.
pub(super) fn decode(path: &Path) -> Result<Decoded, Failure> {
    let mut command = command();
    command.arg("-i").arg(path).args(["-map", "0:v:0", "-fps_mode", "passthrough", "-f", "framemd5", "-"]);
    let output = run(&mut command)?;
    let mut decoded = parse(&String::from_utf8_lossy(&output.stdout));
    let told = String::from_utf8_lossy(&output.stderr);
    decoded.complaints = told.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if !output.status.success() && decoded.complaints.is_empty() {
        decoded.complaints.push(format!("ffmpeg failed ({})", output.status));
    }
    Ok(decoded)
}

/// Takes the pictures with these numbers, counted from 0 and rising, out of a clip: JPEG, small. One that cannot be had ends them.
pub(super) fn thumbnails(path: &Path, numbers: &[usize], stem: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let chosen: Vec<String> = numbers.iter().map(|number| format!("eq(n,{number})")).collect();
    let filter = format!("select='{}',scale={THUMBNAIL_WIDTH}:-2", chosen.join("+"));
    let file = |i: usize| stem.with_extension(format!("{i:02}.jpg"));
    let mut command = command();
    command.arg("-i").arg(path).args(["-map", "0:v:0", "-vf", &filter, "-fps_mode", "passthrough"]);
    // A pattern, as ffmpeg counts from 1; percent signs of the folder are doubled.
    let pattern = stem.with_extension("").to_string_lossy().replace('%', "%%") + ".%02d.jpg";
    command.args(["-frames:v", &numbers.len().to_string(), "-q:v", "4", "-y", "-f", "image2"]).arg(pattern);
    run(&mut command)?;
    Ok((1..=numbers.len()).map_while(|i| fs::read(file(i)).ok()).collect())
}

/// What ffmpeg's `framemd5` tells.
fn parse(text: &str) -> Decoded {
    let mut decoded = Decoded::default();
    let mut tick_s = 0.0;
    for line in text.lines() {
        if let Some(base) = line.strip_prefix("#tb 0: ") {
            tick_s = fraction(base).unwrap_or(0.0);
        } else if let Some(size) = line.strip_prefix("#dimensions 0: ") {
            let sides = size.split_once('x').map(|(width, height)| (width.trim().parse(), height.trim().parse()));
            decoded.size = if let Some((Ok(width), Ok(height))) = sides { (width, height) } else { (0, 0) };
        } else if !line.starts_with('#') {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            if let [_stream, _dts, pts, .., digest] = fields.as_slice() {
                decoded.times_s.push(pts.parse().unwrap_or(0.0) * tick_s);
                decoded.digests.push((*digest).to_owned());
            }
        }
    }
    decoded
}

fn fraction(text: &str) -> Option<f64> {
    let (above, below) = text.split_once('/')?;
    let (above, below): (f64, f64) = (above.trim().parse().ok()?, below.trim().parse().ok()?);
    (below > 0.0).then(|| above / below)
}

fn command() -> Command {
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-nostdin", "-v", "error"]).stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> Result<Output, Failure> {
    command.output().map_err(|error| {
        let message = match error.kind() {
            io::ErrorKind::NotFound => {
                "this needs ffmpeg, and there is none in PATH: apt-get install ffmpeg, or your system's package of it"
                    .to_owned()
            }
            _ => format!("cannot start ffmpeg: {error}"),
        };
        Failure::new(Exit::Files, message)
    })
}

const ENCODER: &str = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -error-resilient 1 -lag-in-frames 0 -g 60 \
-b:v 1500k -minrate 1500k -maxrate 1500k -bufsize 1500k";
const LAYERS: &str = "ts_number_layers=3:ts_target_bitrate=600,1000,1500:ts_rate_decimator=4,2,1:ts_periodicity=4:\
ts_layer_id=0,2,1,2:ts_layering_mode=3";
/// Pixels; twice of what is shown on a wide page.
const THUMBNAIL_WIDTH: u32 = 236;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ffmpeg_tells_of_pictures_is_read() {
        let text = "#format: frame checksums\n#tb 0: 1/30\n#dimensions 0: 640x360\n#stream#, dts, pts, duration, size, hash\n\
                    0,   0,   0,  1,  345600, fb90\n0,   4,   6,  1,  345600, 671f\n";
        let decoded = parse(text);
        assert_eq!((decoded.digests, decoded.times_s), (vec!["fb90".to_owned(), "671f".into()], vec![0.0, 0.2]));
        assert_eq!(decoded.size, (640, 360));
        assert_eq!(parse("nonsense\n#tb 0: 1/0\n#dimensions 0: x\n"), Decoded::default());
    }
}

//! The programme that is sent: pictures of a file at their times, or of a pipe as they come.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use weir_media::{Codec, FrameRate, MediaError, Picture, Sample, SplitOptions, Splitter};
use weir_units::Time;

use super::merge::Reading;
use crate::args::ValueError;
use crate::live::is_url;

/// Where pictures come from, as the user says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input: pictures go as they come.
    Stdin,
    /// A file: pictures go at their times.
    File(PathBuf),
    /// An RTP stream that another program sends to this address: pictures go as they come.
    Rtp(SocketAddr),
}

impl Input {
    /// Whether nobody knows what is to come.
    pub(super) fn is_live(&self) -> bool {
        matches!(self, Input::Stdin | Input::Rtp(_))
    }

    /// Whether it goes on until it is interrupted.
    pub(super) fn is_endless(&self) -> bool {
        matches!(self, Input::Rtp(_))
    }
}

impl FromStr for Input {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Input, ValueError> {
        match text.strip_prefix("rtp://") {
            Some(at) => at.parse().map(Input::Rtp).map_err(|_| ValueError::RtpAddress),
            None if text == "-" => Ok(Input::Stdin),
            None if is_url(text) => Err(ValueError::Protocol),
            None => Ok(Input::File(text.into())),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Stdin => f.write_str("standard input"),
            Input::File(path) => write!(f, "{}", path.display()),
            Input::Rtp(address) => write!(f, "RTP to {address}"),
        }
    }
}

/// The input in words, with all of its layers.
pub(super) fn input_in_words(input: &Input, others: &[Input]) -> String {
    let others: Vec<_> = others.iter().map(|other| format!(" + {other}")).collect();
    format!("{input}{}", others.concat())
}

/// What a stream turned out to be.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) codec: Codec,
    pub(super) layers: u8,
    /// Its pictures, for the rates that they need.
    pub(super) samples: Vec<Sample>,
    /// What the user is to know of it.
    pub(super) told: Vec<String>,
}

/// Why there is no programme.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgrammeError {
    #[error("{0}")]
    Read(#[from] io::Error),
    #[error("{0}")]
    Media(MediaError),
    #[error("there is no picture in it")]
    Empty,
    #[error("interrupted")]
    Interrupted,
}

/// Pictures, read as far ahead as they will soon go.
pub(super) struct Programme {
    bytes: Reading,
    splitter: Splitter,
    /// They go as they come.
    is_live: bool,
    /// Read, and not gone.
    ahead: VecDeque<(Duration, Picture)>,
    timeline: Timeline,
    /// When the first picture went.
    began: Option<Time>,
    /// Before the first key picture nothing goes.
    is_begun: bool,
    is_at_end: bool,
    /// How often something was missing in what was read.
    gaps: u64,
    buffer: Vec<u8>,
    /// What ended it before its end.
    pub(super) failure: Option<String>,
    /// What the user is to know of it.
    pub(super) told: Vec<String>,
}

/// From RTP's times, which wrap and may go back, to times since the first picture that do not.
#[derive(Debug, Default)]
struct Timeline {
    last: Option<u32>,
    /// In units of 1/90000 s since the first picture.
    ticks: i64,
    latest: i64,
}

impl Timeline {
    /// When a picture is to go, the next in decoding order.
    fn at(&mut self, timestamp: u32) -> Duration {
        let step = self.last.map_or(0, |last| timestamp.wrapping_sub(last) as i32);
        self.last = Some(timestamp);
        self.ticks = self.ticks.saturating_add(i64::from(step));
        self.latest = self.latest.max(self.ticks);
        Duration::from_nanos((self.latest.max(0) as u64).saturating_mul(100_000) / 9)
    }
}

/// Reads a whole file for what it holds, or several with a layer each.
pub(super) fn survey_file(path: &Path, others: &[PathBuf], options: SplitOptions) -> Result<Survey, ProgrammeError> {
    let mut reading = Reading::open(path, others)?;
    let mut survey = survey(&mut reading, &mut Splitter::new(options), None, &|| false)?;
    let told = reading.told();
    match told.is_empty() {
        true => survey.told.extend(reading.pictures_of_files().and_then(|files| misplaced(&files, &survey.samples))),
        false => survey.told.extend(told),
    }
    Ok(survey)
}

/// Says so if a file's pictures turn out not to be those of the layer that it was given for.
fn misplaced(files: &[(&Path, usize)], samples: &[Sample]) -> Option<String> {
    let found = |layer: usize| samples.iter().filter(|sample| usize::from(sample.layer) == layer).count();
    let (layer, (path, pictures)) = files.iter().enumerate().find(|(layer, file)| found(*layer) != file.1)?;
    Some(format!(
        "{} holds {pictures} pictures, and layer {layer} of what the files make has {}: are they layers of one stream, the base first?",
        path.display(),
        found(layer)
    ))
}

/// Reads the first pictures of a pipe for what it holds, up to `most` of their time. They are not sent.
pub(super) fn survey(
    input: &mut impl Read,
    splitter: &mut Splitter,
    most: Option<Duration>,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Survey, ProgrammeError> {
    let (mut samples, mut told, mut timeline) = (Vec::new(), Vec::new(), Timeline::default());
    let mut buffer = vec![0; READ];
    loop {
        if is_interrupted() {
            return Err(ProgrammeError::Interrupted);
        }
        let read = match input.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        match read {
            0 => splitter.finish(),
            _ => splitter.push(&buffer[..read]),
        }
        for found in splitter.by_ref() {
            match found {
                Ok(picture) => {
                    let (at, layer, bytes) = (timeline.at(picture.timestamp), picture.info.layer, picture.data.len());
                    samples.push(Sample { at, layer, bytes });
                }
                Err(error) if error.is_fatal() => return Err(ProgrammeError::Media(error)),
                Err(error) => told.push(error.to_string()),
            }
        }
        let is_enough = most.is_some_and(|most| samples.last().is_some_and(|last| last.at >= most));
        if read == 0 || is_enough {
            break;
        }
    }
    let codec = splitter.codec().filter(|_| !samples.is_empty()).ok_or(ProgrammeError::Empty)?;
    told.dedup();
    Ok(Survey { codec, layers: splitter.layers(), samples, told })
}

/// How the user says a codec: as RTP names it, in any letters.
pub(crate) fn parse_codec(text: &str) -> Result<Codec, &'static str> {
    let name = if text.eq_ignore_ascii_case("hevc") { "H265" } else { text };
    let found = Codec::ALL.into_iter().find(|codec| codec.encoding_name().eq_ignore_ascii_case(name));
    found.ok_or("expected vp9, av1, h265 or h264")
}

/// How the user says a frame rate: `25` or `30000/1001`.
pub(crate) fn parse_frame_rate(text: &str) -> Result<FrameRate, &'static str> {
    let (pictures, seconds) = text.split_once('/').unwrap_or((text, "1"));
    let rate = pictures.parse().ok().zip(seconds.parse().ok()).and_then(|(n, s)| FrameRate::new(n, s));
    rate.ok_or("expected pictures a second, such as 25 or 30000/1001")
}

impl Programme {
    /// The pictures of a file, at their times.
    pub(super) fn stored(bytes: Reading, options: SplitOptions) -> Programme {
        Programme::new(bytes, Splitter::new(options), false)
    }

    /// The pictures of a pipe or an RTP stream as they come, from the next key picture on.
    pub(super) fn live(bytes: Reading, splitter: Splitter) -> Programme {
        Programme::new(bytes, splitter, true)
    }

    fn new(bytes: Reading, splitter: Splitter, is_live: bool) -> Programme {
        Programme {
            bytes,
            splitter,
            is_live,
            ahead: VecDeque::new(),
            timeline: Timeline::default(),
            began: None,
            is_begun: false,
            is_at_end: false,
            gaps: 0,
            buffer: vec![0; READ],
            failure: None,
            told: Vec::new(),
        }
    }

    /// What to wait on for more; `None` while enough is read, or no more will come.
    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        let is_full = !self.is_live && self.ahead.len() >= AHEAD;
        (!is_full && !self.is_at_end).then(|| self.bytes.as_fd())
    }

    /// There is something to read.
    pub(super) fn read(&mut self) {
        match self.bytes.read(&mut self.buffer) {
            Ok(0) => self.end(None),
            Ok(read) => self.splitter.push(&self.buffer[..read]),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(error) => self.end(Some(error.to_string())),
        }
        if self.is_live {
            // What is to be known of a file was said when it was looked at.
            self.told.extend(self.bytes.told());
        }
        self.look_for_gaps();
        while let Some(found) = self.splitter.next() {
            match found {
                Ok(picture) => self.take(picture),
                Err(error) if error.is_fatal() => self.end(Some(error.to_string())),
                Err(error) => self.told.push(error.to_string()),
            }
        }
    }

    /// What is behind a gap may need what is missing: it goes on with a key picture.
    fn look_for_gaps(&mut self) {
        if self.bytes.gaps() > std::mem::replace(&mut self.gaps, self.bytes.gaps()) {
            self.is_begun = false;
            if self.gaps == 1 {
                let text = "packets of the RTP stream are missing: what comes up to its next key picture is left out, each time";
                self.told.push(text.to_owned());
            }
        }
    }

    fn take(&mut self, picture: Picture) {
        self.is_begun |= picture.info.is_key;
        if self.is_begun {
            let at = self.timeline.at(picture.timestamp);
            self.ahead.push_back((at, picture));
        }
    }

    fn end(&mut self, failure: Option<String>) {
        self.is_at_end = true;
        self.splitter.finish();
        self.failure = self.failure.take().or(failure);
    }

    /// The next picture that goes up to this time, and when; of a pipe, the next that came.
    pub(super) fn next_until(&mut self, until: Duration) -> Option<(Duration, Picture)> {
        let (at, _) = self.ahead.front()?;
        if self.is_live || *at <= until { self.ahead.pop_front() } else { None }
    }

    /// When the next picture of a file goes, if one is read.
    pub(super) fn next_at(&self) -> Option<Duration> {
        self.ahead.front().map(|(at, _)| *at)
    }

    /// The next picture whose time has come.
    pub(super) fn next(&mut self, now: Time) -> Option<Picture> {
        let (at, _) = self.ahead.front()?;
        let began = *self.began.get_or_insert(now);
        let is_due = self.is_live || began + *at <= now;
        if is_due { self.ahead.pop_front().map(|(_, picture)| picture) } else { None }
    }

    /// When the next picture's time comes.
    pub(super) fn next_due(&self) -> Option<Time> {
        let (at, _) = self.ahead.front()?;
        Some(match self.began {
            Some(began) if !self.is_live => began + *at,
            _ => Time::ZERO,
        })
    }

    /// Whether no more pictures will come.
    pub(super) fn is_over(&self) -> bool {
        self.is_at_end && self.ahead.is_empty()
    }
}

const READ: usize = 1 << 16;
/// Pictures of a file that are read before their time.
const AHEAD: usize = 64;

//! The pictures of a unicast stream, from its packets to the output.

use std::io;
use std::time::Duration;

use weir_units::Time;
use weir_wire::rtcp::handshake::Pictures;
use weir_wire::rtp::Rtp;

use super::events::PicturesShown;
use super::output::{Screen, write_sdp};
use super::recv::codec_named;
use super::watch::Watch;
use crate::live::{Outlet, Output};

/// Gives out what a viewer of layered media gets.
pub(crate) struct Viewing {
    watch: Watch,
    screen: Screen,
    /// A number of the sender's start: each has its own pictures.
    start: u16,
    /// Bytes of pictures that were given out.
    pub(crate) payload_bytes: u64,
}

impl Viewing {
    /// Begins to give out pictures to this output, `latency` after the sender got them.
    ///
    /// # Errors
    /// In words, if the pictures cannot be known or written.
    pub(crate) fn new(
        outlet: Outlet,
        output: &Output,
        sdp: Option<&std::path::Path>,
        pictures: Pictures,
        latency: Duration,
        ssrc: u32,
    ) -> Result<Viewing, String> {
        let name = Pictures::CODECS.get(usize::from(pictures.codec)).copied().unwrap_or("of a codec without a name");
        let codec = codec_named(name)?;
        if matches!(output, Output::Udp(_)) {
            return Err("layered media go to players as RTP: --out rtp://ADDR:PORT".to_owned());
        }
        if let (Some(path), Output::Rtp(to)) = (sdp, output) {
            write_sdp(path, *to, codec).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        let screen = Screen::new(outlet, codec, ssrc).map_err(|error| format!("cannot write to {output}: {error}"))?;
        let layers = usize::from(pictures.layers.clamp(1, weir_media::MAX_LAYERS));
        Ok(Viewing { watch: Watch::new(codec, layers, latency), screen, start: 0, payload_bytes: 0 })
    }

    /// The sender has begun again.
    pub(crate) fn restart(&mut self) {
        self.start = self.start.wrapping_add(1);
    }

    /// A packet came that is due then, were it sent at its time.
    pub(crate) fn take(&mut self, now: Time, header: &Rtp, payload: &[u8], due: Time) {
        let Some(part) = header.origin.and_then(|origin| origin.part) else { return };
        let lead = Duration::from_millis(part.lead_ms.unsigned_abs().into());
        let due = if part.lead_ms < 0 { due - lead } else { due + lead };
        self.watch.take_part(now, self.start, header, &part, payload, due);
    }

    /// Gives out the pictures whose time has come; tells by how much the latest of them was late, if any went.
    ///
    /// # Errors
    /// If the output has failed.
    pub(crate) fn give_out(&mut self, now: Time) -> io::Result<Option<Duration>> {
        let mut latest = None;
        while let Some((picture, late)) = self.watch.pop(now, self.screen.is_full()) {
            latest = latest.max(Some(late));
            self.payload_bytes += picture.data.len() as u64;
            self.screen.put(picture);
        }
        self.screen.failure().map_or(Ok(latest), Err)
    }

    /// When the next picture is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.watch.deadline()
    }

    /// Waits until all is written, unless nobody reads it.
    ///
    /// # Errors
    /// If the output has failed, or nobody reads it.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.screen.close()
    }

    /// What came of the pictures.
    pub(crate) fn shown(&self) -> PicturesShown {
        let counts = &self.watch.counts;
        PicturesShown {
            pictures: counts.pictures.iter().sum(),
            withheld_pictures: counts.withheld.iter().sum(),
            late_pictures: counts.late,
            layer_pictures: counts.pictures.clone(),
            longest_pause_ms: counts.longest_pause.map(|pause| pause.as_secs_f64() * 1e3),
        }
    }
}

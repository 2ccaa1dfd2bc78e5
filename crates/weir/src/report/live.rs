//! A report of a layered programme: how many layers each receiver took from its link, and the pictures that it put out.

mod chart;
mod page;

use weir_units::Rate;

use super::Series;
use crate::progress::seconds;

/// A programme and its receivers.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct LiveReport {
    /// Name of the clip that was sent.
    pub(crate) clip: String,
    /// Its length.
    pub(crate) seconds: f64,
    /// Its pictures.
    pub(crate) pictures: usize,
    /// Width and height of a picture in pixels.
    pub(crate) size: (u32, u32),
    /// Its pictures a second.
    pub(crate) frame_rate: f64,
    /// Congestion control scheme.
    pub(crate) scheme: String,
    /// Cumulative rates of the levels, level 1 first.
    pub(crate) rates: Vec<Rate>,
    /// Layers of the clip.
    pub(crate) layers: usize,
    /// What all links have in common, for people.
    pub(crate) links: String,
    /// Pictures that the sender dropped, as they had waited for too long.
    pub(crate) dropped: u64,
    /// The receivers, in the order in which they are to be shown.
    pub(crate) receivers: Vec<LiveSeries>,
}

/// What one receiver recorded, and what its output decodes to. Times are seconds since it joined.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct LiveSeries {
    /// Rates, levels and losses.
    pub(crate) series: Series,
    /// Pictures put out by layer, in order of time, the first at 0 s.
    pub(crate) pictures: Vec<Pictures>,
    /// When, and the longest lag of a picture since the one before, in milliseconds.
    pub(crate) lags: Vec<(f64, f64)>,
    /// Layers that it put out at the end.
    pub(crate) layers: usize,
    /// Pictures put out, by layer.
    pub(crate) layer_pictures: Vec<u64>,
    /// Pictures that came and could not be decoded without others.
    pub(crate) withheld: u64,
    /// Packets that repair brought back.
    pub(crate) recovered: u64,
    /// From the start to the first picture.
    pub(crate) first_picture_s: Option<f64>,
    /// The longest pause of the base layer.
    pub(crate) longest_pause_ms: Option<f64>,
    /// Pictures that a decoder makes of the output.
    pub(crate) decoded: usize,
    /// Decoded pictures a second, from the first to the last.
    pub(crate) frame_rate: f64,
    /// What the decoder complained of.
    pub(crate) complaints: Vec<String>,
    /// Whether each decoded picture is, bit for bit, one of the clip's, in their order.
    pub(crate) is_part_of_clip: bool,
    /// Pictures of the clip that follow one another, the same for all receivers.
    pub(crate) strip: Vec<Thumbnail>,
}

/// Pictures that were put out since the start.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Pictures {
    /// When they were counted.
    pub(crate) t_s: f64,
    /// How many, by layer.
    pub(crate) by_layer: Vec<u64>,
}

/// A picture of the clip.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Thumbnail {
    /// Its number in the clip, counted from 0.
    pub(crate) number: usize,
    /// What it looks like; `None` if the receiver did not put it out.
    pub(crate) jpeg: Option<Vec<u8>>,
}

impl LiveReport {
    /// The page, with everything in it, nothing fetched from anywhere. `failed` is what is not as it should be.
    pub(crate) fn html(&self, failed: &[String]) -> String {
        page::html(self, failed)
    }
}

/// What [`LiveSeries::in_words`] tells, in its order.
const COLUMNS: [&str; 10] =
    ["link", "layers", "pictures", "a second", "withheld", "lost", "recovered", "first after", "pause", "decoder"];

impl LiveSeries {
    /// A row of a table, of a clip with so many layers.
    pub(crate) fn in_words(&self, layers: usize) -> [String; 10] {
        let pictures: Vec<String> = self.layer_pictures.iter().map(u64::to_string).collect();
        [
            self.series.link_in_words(),
            format!("{} of {layers}", self.layers),
            pictures.join(" + "),
            format!("{:.1}", self.frame_rate),
            self.withheld.to_string(),
            self.series.lost_packets.to_string(),
            self.recovered.to_string(),
            self.first_picture_s.map_or("—".to_owned(), seconds),
            self.longest_pause_ms.map_or("—".to_owned(), |pause| format!("{pause:.0} ms")),
            match self.complaints.len() {
                0 => "no error".to_owned(),
                1 => "1 error".to_owned(),
                errors => format!("{errors} errors"),
            },
        ]
    }

    /// Pictures a second by layer, over stretches of about `window_s`: when each ends, and the rates.
    fn frame_rates(&self, window_s: f64) -> Vec<(f64, Vec<f64>)> {
        let mut rates = Vec::new();
        let Some(mut before) = self.pictures.first() else { return rates };
        for count in &self.pictures {
            let span = count.t_s - before.t_s;
            if span >= window_s {
                let came = |(now, then): (&u64, &u64)| now.saturating_sub(*then) as f64 / span;
                rates.push((count.t_s, count.by_layer.iter().zip(&before.by_layer).map(came).collect()));
                before = count;
            }
        }
        rates
    }
}

#[cfg(test)]
mod tests;

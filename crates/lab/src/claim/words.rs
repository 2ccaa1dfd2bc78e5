//! A claim's measurement in words, for reports: made of its parts, so that it cannot say anything else.

use super::reduce::place_in_words;
use super::{Claim, Other, Points, Seeds};

impl Claim {
    /// How it is measured: `mean over seeds of convergence_s where variant = avmrc, over that where variant = rmrc; …`.
    pub fn in_words(&self) -> String {
        let mut text = self.seeds.in_words().to_owned();
        text += " of ";
        text += &self.quantity();
        if !self.selection.0.is_empty() {
            text += &format!(" where {}", self.selection);
        }
        for except in &self.except {
            text += &format!(", but not where {except}");
        }
        let other = self.other().filter(|(other, _)| !other.reduced);
        if let Some((other, divides)) = other {
            text += &format!(", {} {}", if divides { "over" } else { "minus" }, other.in_words());
            if let Some(when) = other.when {
                text += &format!(" when that is {when}");
            }
        }
        text += &format!("; {}", self.points.in_words());
        if let Some(along) = &self.along {
            text += &format!(" along {along}");
        }
        if let Some(by) = &self.by {
            text += &format!(" by {by}");
        }
        let other = self.other().filter(|(other, _)| other.reduced);
        if let Some((other, divides)) = other {
            text += &format!("; {} the same for {}", if divides { "over" } else { "minus" }, other.in_words());
        }
        if (self.along.is_some() || self.by.is_some()) && self.rest != Points::Every {
            text += &format!("; of the rest, {}", self.rest.in_words());
        }
        text
    }

    fn quantity(&self) -> String {
        let quantity = match &self.per {
            Some(per) => format!("{} / {per}", self.metric),
            None => self.metric.clone(),
        };
        match self.distance_from {
            Some(from) => format!("|{quantity} − {from}|"),
            None => quantity,
        }
    }
}

impl Seeds {
    fn in_words(self) -> &'static str {
        match self {
            Seeds::Mean => "mean over seeds",
            Seeds::Median => "median over seeds",
            Seeds::Min => "smallest over seeds",
            Seeds::Max => "largest over seeds",
            Seeds::Every => "every seed's value",
        }
    }
}

impl Points {
    fn in_words(&self) -> String {
        match self {
            Points::Every => "every point".to_owned(),
            Points::Some => "some point".to_owned(),
            Points::Mean => "mean over points".to_owned(),
            Points::GeometricMean => "geometric mean over points".to_owned(),
            Points::ShareWithin(band) => format!("share of points in {band}"),
            Points::Median => "median over points".to_owned(),
            Points::Min => "smallest over points".to_owned(),
            Points::Max => "largest over points".to_owned(),
            Points::Spread => "largest over smallest".to_owned(),
            Points::Range => "largest minus smallest".to_owned(),
            Points::Rising => "smallest step".to_owned(),
            Points::Falling => "largest step".to_owned(),
            Points::Quotient { at, over } => format!("value at {at} over value at {over}"),
            Points::Spearman(name) => format!("rank correlation with {name}"),
        }
    }
}

impl Other {
    fn in_words(&self) -> String {
        match (&self.metric, self.at.is_empty()) {
            (Some(metric), true) => metric.clone(),
            (Some(metric), false) => format!("{metric} at {}", place_in_words(&self.at)),
            (None, _) => format!("that at {}", place_in_words(&self.at)),
        }
    }
}

//! HEVC says with each picture which earlier ones are kept (its reference picture set, H.265 §8.3.2); what is not named is gone. So a
//! picture fits where all that it refers to is kept, and where it does not end the keeping of what the next one below still names.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::Counts;
use crate::split::access_units::AccessUnit;
use crate::split::annexb::Syntax;
use crate::split::hevc::{Hevc, Kind};
use crate::split::order::OrderCount;

/// The pictures since the last one with which order counts began again.
#[derive(Debug, Clone, Default)]
pub(super) struct Decoded {
    syntax: Hevc,
    order: OrderCount,
    /// The order counts of those that are kept.
    kept: BTreeSet<i64>,
    seen: Counts,
}

/// What a picture says.
struct Picture {
    kind: Kind,
    count: i64,
    /// Those that it names: their order counts, and whether it may itself refer to them.
    named: Vec<(i64, bool)>,
}

/// Whether nothing before this picture is kept, and order counts begin again.
pub(super) fn is_key(unit: &AccessUnit) -> bool {
    Kind::of(unit.slice()).restarts()
}

impl Decoded {
    pub(super) fn fits(&self, unit: &AccessUnit, below: Option<&AccessUnit>) -> bool {
        let Some(picture) = self.read(unit, &mut self.order.clone()) else { return false };
        let is_named = |count: i64| picture.named.iter().any(|(named, _)| *named == count);
        let ends_too_much = || {
            let below = below.filter(|below| !is_key(below));
            let below = below.and_then(|below| self.read(below, &mut self.order.clone()));
            below.is_some_and(|below| {
                below.named.iter().any(|(count, _)| self.kept.contains(count) && !is_named(*count))
            })
        };
        !picture.kind.is_key()
            && !self.seen.contains(picture.count)
            && picture.named.iter().all(|(count, is_used)| !is_used || self.kept.contains(count))
            && !self.kept.is_empty()
            && !ends_too_much()
    }

    pub(super) fn take(&mut self, unit: &AccessUnit) {
        unit.parameter_sets().for_each(|(_, nal)| _ = self.syntax.parameter_set(nal));
        let mut order = std::mem::take(&mut self.order);
        let picture = self.read(unit, &mut order);
        self.order = order;
        let Some(Picture { kind, count, named }) = picture else { return };
        if kind.restarts() {
            self.seen = Counts::default();
        }
        self.kept.retain(|kept| !kind.restarts() && named.iter().any(|(named, _)| named == kept));
        self.kept.insert(count);
        self.seen.insert(count);
    }

    fn read(&self, unit: &AccessUnit, order: &mut OrderCount) -> Option<Picture> {
        let mut syntax = Cow::Borrowed(&self.syntax);
        unit.parameter_sets().for_each(|(_, nal)| _ = syntax.to_mut().parameter_set(nal));
        let (count, references, _) = syntax.place(unit.slice(), order)?;
        let named = references?.iter().map(|kept| (count + i64::from(kept.delta), kept.is_used)).collect();
        Some(Picture { kind: Kind::of(unit.slice()), count, named })
    }
}

//! Loss and variation of the delay as people describe them.

use alloc::vec::Vec;
use core::fmt;

use weir_units::parse_span;

use super::text::{Described, Key, Refused, name_and_inside, probability, span_above_zero, split};
use crate::{GilbertElliott, Loss, Shape, Variation};

pub(super) const LOSS: &str = "a share from 0 to 1 or in per cent (2%), gilbert(enter=1%,leave=25%,good=0,bad=100%), or the \
    numbers of the packets to lose, the first being 1: packets(3,7)";
pub(super) const JITTER: &str = "a span around the delay: uniform(5ms), or normal(5ms) by its standard deviation; with reordering, uniform(5ms,reorder)";

const PROBABILITY: &str = "0 to 1 or in per cent";

/// What a description of bursts begins with.
pub(super) const NO_BURSTS: GilbertElliott =
    GilbertElliott { enter_bad: 0.0, leave_bad: 1.0, loss_good: 0.0, loss_bad: 1.0 };

pub(super) fn read_loss(text: &str) -> Result<Loss, Refused> {
    if let Some(p) = probability(text) {
        return Ok(if p > 0.0 { Loss::Random(p) } else { Loss::None });
    }
    match name_and_inside(text).ok_or(None)? {
        ("gilbert", inside) => {
            let mut model = NO_BURSTS;
            model.read(inside)?;
            Ok(Loss::GilbertElliott(model))
        }
        ("packets", inside) => {
            let mut numbers = Vec::new();
            for number in split(inside)? {
                numbers.push(number.parse().ok().filter(|number| *number > 0u64).ok_or(None)?);
            }
            numbers.sort_unstable();
            numbers.dedup();
            Ok(Loss::Packets(numbers))
        }
        _ => Err(None),
    }
}

impl Described for GilbertElliott {
    const OF: &'static str = "gilbert";
    const EXAMPLE: &'static str = "gilbert(enter=1%,leave=25%)";
    const KEYS: &'static [Key] = &[
        Key::new("enter", PROBABILITY, "The probability that the good state ends after a packet."),
        Key::new("leave", PROBABILITY, "The probability that the bad state ends after a packet."),
        Key::new("good", PROBABILITY, "The share that the good state loses."),
        Key::new("bad", PROBABILITY, "The share that the bad state loses."),
    ];

    fn set(&mut self, key: &str, value: &str) -> Result<(), Refused> {
        let field = match key {
            "enter" => &mut self.enter_bad,
            "leave" => &mut self.leave_bad,
            "good" => &mut self.loss_good,
            _ => &mut self.loss_bad,
        };
        *field = probability(value).ok_or(None)?;
        Ok(())
    }
}

impl fmt::Display for Loss {
    /// The text that reads back as this.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::None => f.write_str("0"),
            Loss::Random(p) => write!(f, "{p}"),
            Loss::GilbertElliott(GilbertElliott { enter_bad, leave_bad, loss_good, loss_bad }) => {
                write!(f, "gilbert(enter={enter_bad},leave={leave_bad},good={loss_good},bad={loss_bad})")
            }
            Loss::Packets(numbers) => {
                f.write_str("packets(")?;
                for (i, number) in numbers.iter().enumerate() {
                    write!(f, "{}{number}", if i == 0 { "" } else { "," })?;
                }
                f.write_str(")")
            }
        }
    }
}

pub(super) fn read_jitter(text: &str) -> Result<Option<Variation>, Refused> {
    if let Ok(span) = parse_span(text) {
        return Ok((!span.is_zero()).then_some(Variation { shape: Shape::Uniform(span), reorder: false }));
    }
    let (name, inside) = name_and_inside(text).ok_or(None)?;
    let (span, reorder) = match split(inside)?[..] {
        [span] => (span, false),
        [span, "reorder"] => (span, true),
        _ => return Err(None),
    };
    let span = span_above_zero(span).ok_or(None)?;
    let shape = match name {
        "uniform" => Shape::Uniform(span),
        "normal" => Shape::Normal(span),
        _ => return Err(None),
    };
    Ok(Some(Variation { shape, reorder }))
}

impl fmt::Display for Variation {
    /// The text that reads back as this.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, span) = match self.shape {
            Shape::Uniform(span) => ("uniform", span),
            Shape::Normal(span) => ("normal", span),
        };
        write!(f, "{name}({}ns{})", span.as_nanos(), if self.reorder { ",reorder" } else { "" })
    }
}

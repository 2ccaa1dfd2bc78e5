//! Values as scenario files write them: text with a unit, `uniform(40ms, 100ms)`, `pareto(1.2, 48kB)`.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use weir_link::LinkConfig;
use weir_sim::traffic::Distribution;
use weir_units::{Bytes, Random, Rate, parse_span};

/// A kind of value that is written as text or as a plain number.
pub trait Written: Sized {
    /// What the reference page calls the kind.
    const NAME: &'static str;
    /// How it is written, in a sentence.
    const HELP: &'static str;

    /// Reads it; the error says what was expected.
    fn read(text: &str) -> Result<Self, String>;
}

/// A value that a scenario file may write as a string or as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Text<T>(pub T);

impl<'de, T: Written> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<T>, D::Error> {
        deserializer.deserialize_any(TextVisitor(PhantomData))
    }
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: Written> Visitor<'_> for TextVisitor<T> {
    type Value = Text<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::HELP)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<T>, E> {
        T::read(text.trim()).map(Text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Text<T>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Text<T>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Text<T>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Text<T>, E> {
        self.visit_str(if flag { "yes" } else { "no" })
    }
}

impl<T: Written> JsonSchema for Text<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": T::HELP })
    }
}

impl Written for bool {
    const NAME: &'static str = "yes or no";
    const HELP: &'static str = "yes or no";

    fn read(text: &str) -> Result<bool, String> {
        match text {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(format!("expected yes or no, not {text:?}")),
        }
    }
}

/// A number that is drawn again for each of several things, or the same for all.
#[derive(Debug, Clone, PartialEq)]
enum Draw {
    Fixed(f64),
    Uniform(f64, f64),
    Exponential(f64),
    /// Shape and mean.
    Pareto(f64, f64),
    /// The i-th thing gets the i-th value; after the last, the first again.
    Each(Vec<f64>),
}

impl Draw {
    /// `parse` reads one value; a bare number is always allowed as a Pareto shape.
    fn read(text: &str, parse: impl Fn(&str) -> Option<f64>) -> Option<Draw> {
        let Some((name, arguments)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
            return parse(text).map(Draw::Fixed);
        };
        let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
        match (name.trim(), &arguments[..]) {
            ("uniform", [low, high]) => {
                let (low, high) = (parse(low)?, parse(high)?);
                (low <= high).then_some(Draw::Uniform(low, high))
            }
            ("exp", [mean]) => parse(mean).map(Draw::Exponential),
            ("pareto", [shape, mean]) => {
                let (shape, mean) = (shape.parse::<f64>().ok()?, parse(mean)?);
                (shape > 1.0).then_some(Draw::Pareto(shape, mean))
            }
            ("each", values) => values.iter().map(|value| parse(value)).collect::<Option<_>>().map(Draw::Each),
            _ => None,
        }
    }

    fn draw(&self, index: usize, random: &mut Random) -> f64 {
        match self {
            Draw::Fixed(value) => *value,
            Draw::Uniform(low, high) => random.uniform(*low, *high),
            Draw::Exponential(_) | Draw::Pareto(..) => self.distribution().map_or(0.0, |law| law.draw(random)),
            Draw::Each(values) => values[index % values.len()],
        }
    }
}

impl Draw {
    /// The law by which the simulator's traffic draws again and again, if it has this one.
    fn distribution(&self) -> Option<Distribution> {
        match *self {
            Draw::Fixed(value) => Some(Distribution::Fixed(value)),
            Draw::Exponential(mean) => Some(Distribution::Exponential { mean }),
            Draw::Pareto(shape, mean) => Some(Distribution::Pareto { mean, shape }),
            Draw::Uniform(..) | Draw::Each(_) => None,
        }
    }
}

/// A span of time, or how it is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Spans(Draw);

impl Spans {
    /// The same span for all.
    pub fn fixed(span: Duration) -> Spans {
        Spans(Draw::Fixed(span.as_secs_f64()))
    }

    /// Drawn uniformly for each.
    pub fn uniform(low: Duration, high: Duration) -> Spans {
        Spans(Draw::Uniform(low.as_secs_f64(), high.as_secs_f64()))
    }

    /// The span of thing number `index`.
    pub fn draw(&self, index: usize, random: &mut Random) -> Duration {
        Duration::from_secs_f64(self.0.draw(index, random).clamp(0.0, 1e9))
    }

    /// In seconds, for what draws again and again during a run; `None` for what is drawn once for each of several.
    pub fn distribution(&self) -> Option<Distribution> {
        self.0.distribution()
    }
}

impl Written for Spans {
    const NAME: &'static str = "spans";
    const HELP: &'static str = "a span such as 20ms, or how it is drawn for each: uniform(20ms, 50ms), exp(500ms) with that mean, pareto(1.2, 1s) with \
         that shape and mean, each(50ms, 150ms) in turn";

    fn read(text: &str) -> Result<Spans, String> {
        let parse = |text: &str| parse_span(text).ok().map(|span| span.as_secs_f64());
        Draw::read(text, parse).map(Spans).ok_or_else(|| format!("{text:?}: expected {}", Spans::HELP))
    }
}

/// A number of bytes, or how it is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes(Draw);

impl Sizes {
    /// In bytes, for what draws again and again during a run; `None` for what is drawn once for each of several.
    pub fn distribution(&self) -> Option<Distribution> {
        self.0.distribution()
    }
}

impl Written for Sizes {
    const NAME: &'static str = "sizes";
    const HELP: &'static str = "bytes such as 48kB, or how they are drawn for each: uniform(1kB, 9kB), pareto(1.2, 48kB) with that shape and mean";

    fn read(text: &str) -> Result<Sizes, String> {
        let parse = |text: &str| text.parse::<Bytes>().ok().map(|bytes| bytes.count() as f64);
        Draw::read(text, parse).map(Sizes).ok_or_else(|| format!("{text:?}: expected {}", Sizes::HELP))
    }
}

impl Written for Duration {
    const NAME: &'static str = "span";
    const HELP: &'static str = "a span of time with its unit: 20ms, 2.5s, 10m";

    fn read(text: &str) -> Result<Duration, String> {
        parse_span(text).map_err(|_| format!("{text:?}: expected {}", Self::HELP))
    }
}

impl Written for Rate {
    const NAME: &'static str = "rate";
    const HELP: &'static str = "bits per second: 256k, 1.5M, 2mbit";

    fn read(text: &str) -> Result<Rate, String> {
        text.parse().map_err(|_| format!("{text:?}: expected {}", Self::HELP))
    }
}

impl Written for Bytes {
    const NAME: &'static str = "bytes";
    const HELP: &'static str = "bytes: 1000, 64kB, 1.5MB";

    fn read(text: &str) -> Result<Bytes, String> {
        text.parse().map_err(|_| format!("{text:?}: expected {}", Self::HELP))
    }
}

impl Written for usize {
    const NAME: &'static str = "count";
    const HELP: &'static str = "a whole number";

    fn read(text: &str) -> Result<usize, String> {
        text.parse().map_err(|_| format!("{text:?}: expected {}", Self::HELP))
    }
}

impl Written for f64 {
    const NAME: &'static str = "number";
    const HELP: &'static str = "a number";

    fn read(text: &str) -> Result<f64, String> {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| format!("{text:?}: expected {}", Self::HELP))
    }
}

impl Written for String {
    const NAME: &'static str = "text";
    const HELP: &'static str = "text";

    fn read(text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }
}

impl Written for LinkConfig {
    const NAME: &'static str = "link";
    const HELP: &'static str = "a link as in rate=3mbit,delay=20ms,buffer=80p,loss=2%: see How links are written";

    fn read(text: &str) -> Result<LinkConfig, String> {
        text.parse().map_err(|error: weir_link::LinkConfigError| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(spans: &Spans) -> f64 {
        let mut random = Random::new(1, "test");
        (0..20_000).map(|i| spans.draw(i, &mut random).as_secs_f64()).sum::<f64>() / 20_000.0
    }

    #[test]
    fn distributions_have_the_mean_that_they_are_written_with() {
        let close = |text: &str, expected: f64| {
            let mean = mean(&Spans::read(text).expect(text));
            assert!((mean - expected).abs() < 0.03 * expected, "{text}: {mean}");
        };
        close("70ms", 0.07);
        close("uniform(40ms, 100ms)", 0.07);
        close("exp(500ms)", 0.5);
        close("pareto(3, 2s)", 2.0);
        close("each(50ms, 150ms)", 0.1);
    }

    #[test]
    fn sizes_are_handed_to_the_simulator_with_shape_and_mean() {
        let sizes = |text| Sizes::read(text).expect("valid").distribution();
        assert_eq!(sizes("pareto(1.2, 48kB)"), Some(Distribution::Pareto { mean: 48_000.0, shape: 1.2 }));
        assert_eq!((sizes("2kB"), sizes("each(1kB, 2kB)")), (Some(Distribution::Fixed(2000.0)), None));
    }

    #[test]
    fn each_deals_its_values_in_turn() {
        let spans = Spans::read("each(50ms, 150ms)").expect("valid");
        let dealt: Vec<u128> = (0..3).map(|i| spans.draw(i, &mut Random::new(1, "x")).as_millis()).collect();
        assert_eq!(dealt, [50, 150, 50]);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        for text in ["uniform(2s, 1s)", "normal(1s, 2s)", "uniform(1s)", "20", "pareto(1, 2s)", "each()", ""] {
            assert!(Spans::read(text).is_err(), "{text}");
        }
    }
}

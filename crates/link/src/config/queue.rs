//! Queueing disciplines as people describe them: `droptail`, `red(min=5,max=15)` …

use core::fmt;

use weir_units::Bytes;

use super::text::{Described, Key, LinkConfigError, Refused, name_and_inside, probability, span_above_zero, yes_or_no};
use crate::{CoDelConfig, DropFrom, DrrConfig, FairConfig, FqCoDelConfig, QueueConfig, RedConfig};

pub(super) const QUEUE: &str =
    "droptail, red, drr, fq, codel or fq_codel, with parameters as in red(min=5,max=15,maxp=0.1)";

/// A queueing discipline as descriptions know it.
pub(super) struct Discipline {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) keys: &'static [Key],
    read: fn(&str) -> Result<QueueConfig, Refused>,
}

/// All that there are.
pub(super) const DISCIPLINES: &[Discipline] = &[
    Discipline {
        name: "droptail",
        about: "First in, first out; a packet that finds the buffer full is dropped.",
        keys: &[],
        read: |inside| if inside.is_empty() { Ok(QueueConfig::DropTail) } else { Err(None) },
    },
    Discipline {
        name: RedConfig::OF,
        about: "First in, first out, with random early detection (Floyd and Jacobson 1993), as in ns-2.",
        keys: RedConfig::KEYS,
        read: |inside| Ok(QueueConfig::Red(red(inside)?)),
    },
    Discipline {
        name: DrrConfig::OF,
        about: "Flows take turns by deficit round robin (Shreedhar and Varghese 1995).",
        keys: DrrConfig::KEYS,
        read: |inside| Ok(QueueConfig::Drr(described(inside)?)),
    },
    Discipline {
        name: FairConfig::OF,
        about: "Flows are served by finish number (Demers, Keshav and Shenker 1989).",
        keys: FairConfig::KEYS,
        read: |inside| Ok(QueueConfig::Fair(described(inside)?)),
    },
    Discipline {
        name: CoDelConfig::OF,
        about: "First in, first out; drops by how long packets wait (RFC 8289).",
        keys: CoDelConfig::KEYS,
        read: |inside| Ok(QueueConfig::CoDel(described(inside)?)),
    },
    Discipline {
        name: FqCoDelConfig::OF,
        about: "Flows take turns, each under CoDel (RFC 8290).",
        keys: FqCoDelConfig::KEYS,
        read: |inside| Ok(QueueConfig::FqCoDel(described(inside)?)),
    },
];

pub(super) fn read_queue(text: &str) -> Result<QueueConfig, Refused> {
    let (name, inside) = name_and_inside(text).ok_or(None)?;
    let known = DISCIPLINES.iter().find(|discipline| discipline.name == name).ok_or(None)?;
    (known.read)(inside)
}

fn described<T: Described + Default>(text: &str) -> Result<T, LinkConfigError> {
    let mut config = T::default();
    config.read(text)?;
    Ok(config)
}

fn red(text: &str) -> Result<RedConfig, LinkConfigError> {
    let red: RedConfig = described(text)?;
    if let (Some(min), Some(max)) = (red.min_packets, red.max_packets)
        && max <= min
    {
        return Err(LinkConfigError::Inconsistent { of: "red", what: "max must be above min" });
    }
    Ok(red)
}

impl Described for RedConfig {
    const OF: &'static str = "red";
    const EXAMPLE: &'static str = "red(min=5,max=15,maxp=0.1)";
    const KEYS: &'static [Key] = &[
        Key::new(
            "min",
            "a number of packets above 0, or auto",
            "The average queue from which on packets are dropped. `auto`: 5, or half of what the link sends in 5 ms where that is more.",
        ),
        Key::new(
            "max",
            "a number of packets above 0, or auto for three times min",
            "The average queue where the probability is `maxp`.",
        ),
        Key::new(
            "maxp",
            "a probability above 0 and up to 1, or in per cent (10%)",
            "The probability of a drop at `max`.",
        ),
        Key::new(
            "weight",
            "a number above 0 and below 1, such as 0.002, or auto",
            "The weight of a new sample in the average. `auto`: from the link's rate, as in ns-2.",
        ),
        Key::new(
            "gentle",
            "yes or no",
            "Whether the probability rises from `maxp` to 1 between `max` and twice `max`, not at once.",
        ),
        Key::new("wait", "yes or no", "Whether drops are spread out: after one there is none for a while."),
        Key::new(
            "bytes",
            "yes or no",
            "Whether the queue is measured in bytes, by `mean` to the packet, and large packets are dropped more often.",
        ),
        Key::new("mean", "bytes above 0, such as 500B", "The size of a packet, by which idle time counts."),
        Key::new(
            "ecn",
            "yes or no",
            "Whether packets that can be marked are marked, not dropped, while the probability is below `markp`.",
        ),
        Key::new("markp", "a probability, 0 to 1 or in per cent (10%)", "See `ecn`."),
    ];

    fn set(&mut self, key: &str, value: &str) -> Result<(), Refused> {
        match key {
            "min" => self.min_packets = auto_or(value, packets)?,
            "max" => self.max_packets = auto_or(value, packets)?,
            "maxp" => self.max_p = probability(value).filter(|p| *p > 0.0).ok_or(None)?,
            "weight" => self.weight = auto_or(value, weight)?,
            "gentle" => self.gentle = yes_or_no(value).ok_or(None)?,
            "wait" => self.wait = yes_or_no(value).ok_or(None)?,
            "bytes" => self.bytes = yes_or_no(value).ok_or(None)?,
            "mean" => self.mean_size = bytes(value).ok_or(None)?,
            "ecn" => self.ecn = yes_or_no(value).ok_or(None)?,
            _ => self.mark_p = probability(value).ok_or(None)?,
        }
        Ok(())
    }
}

impl Described for DrrConfig {
    const OF: &'static str = "drr";
    const EXAMPLE: &'static str = "drr(quantum=1500B,drop=longest)";
    const KEYS: &'static [Key] =
        &[Key::new("quantum", "bytes above 0, such as 1500B", "What a flow may send in a round."), DROP];

    fn set(&mut self, key: &str, value: &str) -> Result<(), Refused> {
        match key {
            "quantum" => self.quantum = bytes(value).ok_or(None)?,
            _ => self.drop = drop_from(value).ok_or(None)?,
        }
        Ok(())
    }
}

impl Described for FairConfig {
    const OF: &'static str = "fq";
    const EXAMPLE: &'static str = "fq(drop=longest)";
    const KEYS: &'static [Key] = &[DROP];

    fn set(&mut self, _key: &str, value: &str) -> Result<(), Refused> {
        self.drop = drop_from(value).ok_or(None)?;
        Ok(())
    }
}

impl Described for CoDelConfig {
    const OF: &'static str = "codel";
    const EXAMPLE: &'static str = "codel(target=5ms,interval=100ms)";
    const KEYS: &'static [Key] = &[TARGET, INTERVAL, MTU, ECN];

    fn set(&mut self, key: &str, value: &str) -> Result<(), Refused> {
        match key {
            "target" => self.target = span_above_zero(value).ok_or(None)?,
            "interval" => self.interval = span_above_zero(value).ok_or(None)?,
            "mtu" => self.mtu = bytes(value).ok_or(None)?,
            _ => self.ecn = yes_or_no(value).ok_or(None)?,
        }
        Ok(())
    }
}

impl Described for FqCoDelConfig {
    const OF: &'static str = "fq_codel";
    const EXAMPLE: &'static str = "fq_codel(target=5ms,interval=100ms,flows=1024)";
    const KEYS: &'static [Key] = &[
        TARGET,
        INTERVAL,
        MTU,
        ECN,
        Key::new("flows", "a number of queues from 1 to 65535", "The queues that flows are hashed to."),
        Key::new("quantum", "bytes above 0, such as 1514B", "What a queue may send in a round."),
    ];

    fn set(&mut self, key: &str, value: &str) -> Result<(), Refused> {
        match key {
            "flows" => self.flows = value.parse().ok().filter(|flows| *flows > 0).ok_or(None)?,
            "quantum" => self.quantum = bytes(value).ok_or(None)?,
            _ => self.codel.set(key, value)?,
        }
        Ok(())
    }
}

impl fmt::Display for QueueConfig {
    /// The text that reads back as this.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueConfig::DropTail => f.write_str("droptail"),
            QueueConfig::Red(red) => show_red(red, f),
            QueueConfig::Drr(DrrConfig { quantum, drop }) => {
                write!(f, "drr(quantum={}B,drop={})", quantum.count(), drop_name(*drop))
            }
            QueueConfig::Fair(FairConfig { drop }) => write!(f, "fq(drop={})", drop_name(*drop)),
            QueueConfig::CoDel(codel) => {
                f.write_str("codel(")?;
                show_codel(codel, f)?;
                f.write_str(")")
            }
            QueueConfig::FqCoDel(FqCoDelConfig { codel, flows, quantum }) => {
                f.write_str("fq_codel(")?;
                show_codel(codel, f)?;
                write!(f, ",flows={flows},quantum={}B)", quantum.count())
            }
        }
    }
}

fn show_red(red: &RedConfig, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("red(")?;
    for (key, value) in [("min", red.min_packets), ("max", red.max_packets), ("weight", red.weight)] {
        match value {
            Some(value) => write!(f, "{key}={value},")?,
            None => write!(f, "{key}=auto,")?,
        }
    }
    for (key, value) in [("gentle", red.gentle), ("wait", red.wait), ("bytes", red.bytes), ("ecn", red.ecn)] {
        write!(f, "{key}={},", yes_no(value))?;
    }
    write!(f, "mean={}B,maxp={},markp={})", red.mean_size.count(), red.max_p, red.mark_p)
}

fn show_codel(codel: &CoDelConfig, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let CoDelConfig { target, interval, mtu, ecn } = codel;
    let (target, interval) = (target.as_nanos(), interval.as_nanos());
    write!(f, "target={target}ns,interval={interval}ns,mtu={}B,ecn={}", mtu.count(), yes_no(*ecn))
}

/// What `auto` stands for is `None`; so is ns-2's 0.
fn auto_or(text: &str, read: impl Fn(&str) -> Option<f64>) -> Result<Option<f64>, Refused> {
    if matches!(text, "auto" | "0") { Ok(None) } else { read(text).map(Some).ok_or(None) }
}

fn packets(text: &str) -> Option<f64> {
    text.strip_suffix('p').unwrap_or(text).parse().ok().filter(|packets: &f64| *packets > 0.0 && packets.is_finite())
}

fn weight(text: &str) -> Option<f64> {
    text.parse().ok().filter(|weight| *weight > 0.0 && *weight < 1.0)
}

fn bytes(text: &str) -> Option<Bytes> {
    text.parse().ok().filter(|bytes: &Bytes| (1..1 << 31).contains(&bytes.count()))
}

fn drop_from(text: &str) -> Option<DropFrom> {
    match text {
        "longest" => Some(DropFrom::Longest),
        "own" => Some(DropFrom::Own),
        _ => None,
    }
}

fn drop_name(drop: DropFrom) -> &'static str {
    match drop {
        DropFrom::Longest => "longest",
        DropFrom::Own => "own",
    }
}

fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

const DROP: Key = Key::new(
    "drop",
    "longest or own",
    "Which flow loses a packet when the buffer is full: the one with the longest queue, or the flow of the packet that comes.",
);
const TARGET: Key = Key::new("target", "a span above 0, such as 5ms", "How long packets may wait without end.");
const INTERVAL: Key = Key::new(
    "interval",
    "a span above 0, such as 100ms",
    "How long they may wait for longer than that before the first is dropped: about the largest usual round-trip time.",
);
const MTU: Key = Key::new("mtu", "bytes above 0, such as 1514B", "Nothing is dropped while no more than this waits.");
const ECN: Key = Key::new("ecn", "yes or no", "Whether packets that can be marked are marked, not dropped.");

//! What links of one kind share. Not what any one of them does.

use alloc::sync::Arc;

use crate::serialiser::Pace;
use crate::{Buffer, LinkConfig, Loss, QueueConfig};

/// A kind of link: its description, made once for the many links of it in a large network.
#[derive(Debug, Clone)]
pub struct LinkKind(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: LinkConfig,
    plain: Plain,
}

/// What the fast link looks at for each packet, in plain numbers.
#[derive(Debug)]
pub(crate) struct Plain {
    /// `None` is without limit.
    pub(crate) rate: Option<Pace>,
    /// Propagation delay, nanoseconds.
    pub(crate) delay: u64,
    pub(crate) limit: Limit,
    /// Whether packets may be lost on the way.
    pub(crate) loses: bool,
}

/// A [`Buffer`] in plain numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    Packets(usize),
    Bytes(u64),
    Nanos(u64),
}

impl LinkKind {
    /// What links of this kind are like.
    pub fn config(&self) -> &LinkConfig {
        &self.0.config
    }

    /// Whether `fifo` is enough: it counts what waits in 32 bits.
    pub(crate) fn is_plain(&self) -> bool {
        let LinkConfig { buffer, burst, variation, queue, .. } = self.config();
        let is_countable = !matches!(buffer, Buffer::Bytes(bytes) if bytes.count() > u64::from(u32::MAX));
        *queue == QueueConfig::DropTail && variation.is_none() && burst.is_zero() && is_countable
    }

    #[inline]
    pub(crate) fn plain(&self) -> &Plain {
        &self.0.plain
    }
}

impl From<LinkConfig> for LinkKind {
    fn from(config: LinkConfig) -> LinkKind {
        let plain = Plain {
            rate: config.rate.map(Pace::new),
            delay: config.delay_nanos(),
            limit: match config.buffer {
                Buffer::Packets(packets) => Limit::Packets(packets),
                Buffer::Bytes(bytes) => Limit::Bytes(bytes.count()),
                Buffer::Span(span) => Limit::Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
            },
            loses: config.loss != Loss::None,
        };
        LinkKind(Arc::new(Shared { config, plain }))
    }
}

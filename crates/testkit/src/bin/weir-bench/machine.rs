//! The machine under the figures, and the CPU time that no process is charged for.

use std::fs::read_to_string;

use serde_json::{Value, json};

/// What the figures depend on.
pub(crate) fn describe() -> Value {
    let line = |path: &str| read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let number = |path: &str| line(path).parse::<u64>().ok();
    json!({
        "cpus": std::thread::available_parallelism().map_or(0, usize::from),
        "kernel": line("/proc/sys/kernel/osrelease"),
        "rmem_max_bytes": number("/proc/sys/net/core/rmem_max"),
        "wmem_max_bytes": number("/proc/sys/net/core/wmem_max"),
        "other_load": line("/proc/loadavg"),
    })
}

/// CPU time of the whole machine since it was started, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuClock {
    /// All work, of every process and of the kernel.
    pub(crate) busy_secs: f64,
    /// Work of the kernel in interrupts: much of the network's, which is charged to no process.
    pub(crate) interrupt_secs: f64,
}

impl CpuClock {
    /// As of now.
    pub(crate) fn now() -> CpuClock {
        let stat = read_to_string("/proc/stat").unwrap_or_default();
        let ticks = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        let secs: Vec<f64> = ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).map(|t| t / TICKS_PER_SEC).collect();
        let [user, nice, system, _idle, _iowait, irq, softirq, ..] = secs[..] else { return CpuClock::default() };
        CpuClock { busy_secs: user + nice + system + irq + softirq, interrupt_secs: irq + softirq }
    }

    /// What was used since `earlier`.
    pub(crate) fn since(self, earlier: CpuClock) -> CpuClock {
        CpuClock {
            busy_secs: self.busy_secs - earlier.busy_secs,
            interrupt_secs: self.interrupt_secs - earlier.interrupt_secs,
        }
    }
}

/// The unit of `/proc/stat`: 1/100 s on every Linux.
const TICKS_PER_SEC: f64 = 100.0;

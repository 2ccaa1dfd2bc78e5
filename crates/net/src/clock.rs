//! The host's clocks: the steady one that protocols live by, the wall clock that goes on the wire, and a precise wait.
//!
//! The steady clock is `CLOCK_MONOTONIC`. The kernel stamps arrivals with `CLOCK_REALTIME`, which administrators and time
//! daemons may step; [`Arrivals`] turns such stamps into steady time and never lets a step move a packet out of order.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use weir_units::Time;

/// The steady clock, and the wall clock as it stood when this was made, carried on by the steady one.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Nanoseconds since 1970 at the steady clock's zero.
    unix_nanos_at_zero: u64,
}

impl Clock {
    /// Reads both clocks once.
    pub fn new() -> Clock {
        let sample = Sample::take();
        Clock { unix_nanos_at_zero: sample.wall_nanos.saturating_sub(sample.steady.as_nanos()) }
    }

    /// The steady time now.
    pub fn now(&self) -> Time {
        steady()
    }

    /// Wall time at `now`, in nanoseconds since 1970. It goes on from the wall clock at the start and so never steps.
    pub fn unix_nanos(&self, now: Time) -> u64 {
        self.unix_nanos_at_zero.saturating_add(now.as_nanos())
    }

    /// Wall time at `now`, in microseconds since the NTP epoch (1900), as EXT_TIME carries it (RFC 5651 §5.2.2).
    ///
    /// Example: 1970-01-01 00:00:01 is 2 208 988 801 000 000.
    pub fn ntp_micros(&self, now: Time) -> u64 {
        ntp_micros(self.unix_nanos(now))
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}

/// Seconds since the NTP epoch by the wall clock as it stands now: for dates, which follow it when somebody sets it.
pub fn wall_ntp_secs() -> u64 {
    ntp_micros(read(ClockId::CLOCK_REALTIME)) / 1_000_000
}

/// Both clocks, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The steady clock.
    pub steady: Time,
    /// The wall clock, nanoseconds since 1970.
    pub wall_nanos: u64,
}

impl Sample {
    /// Reads the wall clock and then the steady clock, so that a stamp taken before the call never seems to lie ahead.
    pub fn take() -> Sample {
        let wall_nanos = read(ClockId::CLOCK_REALTIME);
        Sample { steady: steady(), wall_nanos }
    }
}

/// Turns the kernel's arrival stamps of one socket into steady time.
///
/// An arrival lies between the last moment at which the socket was seen empty (or the last arrival, if it is later) and
/// now; whatever the wall clock did in between, the result is kept in there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrivals {
    floor: Time,
}

impl Arrivals {
    /// The steady time of an arrival that the kernel stamped `stamp_nanos` (wall clock, since 1970), given a sample of both
    /// clocks taken after it. Without a stamp it is the time of the sample.
    ///
    /// Example: a stamp 3 ms before the sample's wall clock is 3 ms before its steady clock.
    pub fn place(&mut self, stamp_nanos: Option<u64>, sample: Sample) -> Time {
        let age = stamp_nanos.map_or(0, |stamp| sample.wall_nanos.saturating_sub(stamp));
        let ceiling = sample.steady.max(self.floor);
        let arrival = (sample.steady - Duration::from_nanos(age)).clamp(self.floor, ceiling);
        self.floor = arrival;
        arrival
    }

    /// The socket was seen empty after `time`: nothing that comes later arrived before.
    pub fn drained(&mut self, time: Time) {
        self.floor = self.floor.max(time);
    }
}

/// Waits until one of `sockets` can be read or the steady clock reaches `until`; `true` if there is something to read.
///
/// Nanosecond timeouts: the kernel adds its timer slack, 50 µs by default. A signal ends the wait early.
pub fn wait(sockets: &mut [PollFd<'_>], until: Time) -> nix::Result<bool> {
    let left = until.since(steady());
    match ppoll(sockets, Some(TimeSpec::from_duration(left)), None) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A socket to wait on for something to read.
pub fn readable(socket: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::new(socket, PollFlags::POLLIN)
}

/// What a wait found of a socket. Flags that are not known count as something to read.
pub fn found(socket: &PollFd<'_>) -> PollFlags {
    socket.revents().unwrap_or(PollFlags::POLLIN)
}

fn steady() -> Time {
    Time::from_nanos(read(ClockId::CLOCK_MONOTONIC))
}

fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).expect("Linux has the steady clock and the wall clock");
    let (secs, nanos) = (now.tv_sec().max(0) as u64, now.tv_nsec() as u64);
    secs * 1_000_000_000 + nanos
}

fn ntp_micros(unix_nanos: u64) -> u64 {
    NTP_TO_UNIX_SECS * 1_000_000 + unix_nanos / 1_000
}

/// Seconds from 1900 to 1970: 70 years with 17 leap days.
const NTP_TO_UNIX_SECS: u64 = (70 * 365 + 17) * 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: u64 = 1_700_000_000_000_000_000;

    fn at(steady_millis: u64, wall_millis: i64) -> Sample {
        Sample {
            steady: Time::from_millis(steady_millis),
            wall_nanos: WALL.wrapping_add_signed(wall_millis * 1_000_000),
        }
    }

    fn stamp(wall_millis: i64) -> Option<u64> {
        Some(WALL.wrapping_add_signed(wall_millis * 1_000_000))
    }

    #[test]
    fn an_arrival_is_placed_as_long_ago_as_its_stamp() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.place(stamp(97), at(1100, 100)), Time::from_millis(1097));
        assert_eq!(arrivals.place(None, at(1100, 100)), Time::from_millis(1100));
    }

    #[test]
    fn a_wall_clock_set_forward_cannot_move_an_arrival_before_the_last_batch() {
        let mut arrivals = Arrivals::default();
        arrivals.drained(Time::from_millis(1000));
        assert_eq!(arrivals.place(stamp(5), at(1010, 3_600_010)), Time::from_millis(1000));
    }

    #[test]
    fn a_wall_clock_set_back_cannot_move_an_arrival_into_the_future() {
        let mut arrivals = Arrivals::default();
        arrivals.drained(Time::from_millis(1000));
        assert_eq!(arrivals.place(stamp(5), at(1010, -3_600_000)), Time::from_millis(1010));
    }

    #[test]
    fn arrivals_of_a_socket_never_go_back() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.place(stamp(9), at(1010, 10)), Time::from_millis(1009));
        assert_eq!(arrivals.place(stamp(8), at(1010, 10)), Time::from_millis(1009));
        arrivals.drained(Time::from_millis(1020));
        assert_eq!(arrivals.place(stamp(9), at(1015, 15)), Time::from_millis(1020));
    }

    #[test]
    fn the_clock_on_the_wire_counts_from_1900() {
        assert_eq!(ntp_micros(1_000_000_000), 2_208_988_801_000_000);
    }

    #[test]
    fn the_wall_clock_s_date_is_the_one_that_goes_on_the_wire() {
        let clock = Clock::new();
        assert!(wall_ntp_secs().abs_diff(clock.ntp_micros(clock.now()) / 1_000_000) <= 1);
    }

    #[test]
    fn a_wait_for_nothing_ends_at_its_time() {
        let clock = Clock::new();
        let until = clock.now() + Duration::from_millis(3);
        assert_eq!(wait(&mut [], until), Ok(false));
        assert!(clock.now() >= until);
    }
}

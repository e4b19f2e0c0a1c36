//! What a trigger can say about itself.

use std::fmt;
use std::time::Duration;

use crate::units::Bytes;
use crate::watermark::{Crossing, Evidence, Measure};

/// Why a trigger last fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct Cause {
    /// The limit that was reached, in the trigger's measure.
    pub limit: usize,
    /// The figure that reached it, never below it; for a request, what would be live once it is served. Of several
    /// threads that saw the crossing, the highest that they found.
    pub figure: usize,
    /// How the figure was found.
    pub evidence: Evidence,
}

impl From<Crossing> for Cause {
    fn from(crossing: Crossing) -> Self {
        Self {
            limit: crossing.limit,
            figure: crossing.figure,
            evidence: crossing.evidence,
        }
    }
}

/// What a trigger has seen and done since it was made.
///
/// # Display
///
/// `{}` is one line in human units, which are those of [`Totals`](crate::Totals#display); `{:#}` is a listing of
/// everything in several lines that has the exact figures as well. Neither allocates by itself.
///
/// ```
/// use std::time::Duration;
/// use tally_alloc::policy::FixedLimit;
/// use tally_alloc::{Counter, Measure, Trigger};
///
/// let cache = Counter::new();
/// let trigger = Trigger::new(&cache, Measure::LiveBytes, FixedLimit::new(2 << 20)?)?;
/// cache.add(1 << 20);
/// assert_eq!(
///     trigger.report().to_string(),
///     "0 cycles, 0.0 % of the time collecting; limit 2.00 MiB live, 1.00 MiB left; has not fired"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Serde
///
/// With the feature `serde`, a map of the public fields under their names, which are stable, as are those of
/// [`Cause`]. A [`Measure`] and an [`Evidence`] are written as their `name()`, a `Duration` as serde does it, in
/// `secs` and `nanos`. Fields that a later version adds are ignored by this one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct Report {
    /// What the trigger measures.
    pub measure: Measure,
    /// Collections that have ended.
    pub cycles: u64,
    /// Time collecting, as it was reported.
    pub collecting: Duration,
    /// Time in between, up to the last collection.
    pub mutating: Duration,
    /// Bytes allocated, up to the last collection.
    pub bytes_allocated: u64,
    /// The limit in force, in the trigger's measure.
    pub limit: usize,
    /// What is left below the limit, in the trigger's measure: 0 when it is reached.
    pub headroom: usize,
    /// How often the policy has grown its reserve.
    pub growth_steps: u64,
    /// Why it last fired; `None` before the first time.
    pub cause: Option<Cause>,
}

impl Report {
    /// Returns the share of time spent collecting, from 0 to 1; 0 before the first collection.
    #[must_use]
    pub fn collecting_share(&self) -> f64 {
        let all = self.collecting.saturating_add(self.mutating).as_secs_f64();
        if all > 0.0 {
            self.collecting.as_secs_f64() / all
        } else {
            0.0
        }
    }

    /// Returns the bytes allocated per second of time between collections; 0 before the first.
    #[must_use]
    pub fn allocation_rate(&self) -> f64 {
        let seconds = self.mutating.as_secs_f64();
        if seconds > 0.0 {
            self.bytes_allocated as f64 / seconds
        } else {
            0.0
        }
    }
}

/// A figure of a trigger in its measure: in human units, or with `{:#}` exact, and in human units beside it.
struct Amount(Measure, usize);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self(measure, amount) = self;
        match measure {
            Measure::LiveBlocks => write!(f, "{amount} blocks"),
            Measure::LiveBytes | Measure::AllocatedBytes if f.alternate() => {
                write!(f, "{amount} B ({})", Bytes::from(amount))
            }
            Measure::LiveBytes | Measure::AllocatedBytes => Bytes::from(amount).fmt(f),
        }
    }
}

/// See [above](Report#display).
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            measure,
            cycles,
            collecting,
            mutating,
            bytes_allocated,
            limit,
            headroom,
            growth_steps,
            cause,
        } = *self;
        let share = self.collecting_share() * 100.0;
        let (limit, headroom) = (Amount(measure, limit), Amount(measure, headroom));
        if f.alternate() {
            // `as` saturates, and what is above 2^64 bytes per second is no rate.
            let rate = Bytes(self.allocation_rate() as u64);
            writeln!(f, "measure       {}", measure.name())?;
            writeln!(f, "cycles        {cycles}")?;
            writeln!(f, "collecting    {collecting:?} ({share:.1} % of the time)")?;
            writeln!(f, "mutating      {mutating:?}")?;
            writeln!(
                f,
                "allocated     {bytes_allocated} B ({}), {rate}/s",
                Bytes(bytes_allocated)
            )?;
            writeln!(f, "limit         {limit:#}")?;
            writeln!(f, "headroom      {headroom:#}")?;
            writeln!(f, "growth steps  {growth_steps}")?;
            f.write_str("last fired    ")?;
        } else {
            let state = match measure {
                Measure::LiveBytes | Measure::LiveBlocks => "live",
                Measure::AllocatedBytes => "allocated",
            };
            write!(
                f,
                "{cycles} cycles, {share:.1} % of the time collecting; limit {limit} {state}, {headroom} left; "
            )?;
        }
        let Some(cause) = cause else {
            return f.write_str(if f.alternate() {
                "never"
            } else {
                "has not fired"
            });
        };
        let figure = Amount(measure, cause.figure);
        let evidence = match cause.evidence {
            Evidence::Published => "by the published total",
            Evidence::Sum => "by the exact sum",
            Evidence::Request => "for a request",
        };
        if f.alternate() {
            let limit = Amount(measure, cause.limit);
            write!(f, "at {figure:#} {evidence}, limit {limit:#}")
        } else {
            write!(f, "last fired at {figure} {evidence}")
        }
    }
}

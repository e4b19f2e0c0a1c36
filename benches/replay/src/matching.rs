//! The parameter at which a policy uses as much memory as something else.

/// Steps of a bisection: a range of nine decades comes down to a millionth.
const STEPS: usize = 24;

/// Finds `x` between `low` and `high` (both above zero) at which `memory(x)` comes closest to
/// `target` from below, by bisection of the logarithm. `memory` rises with `x`, or falls with it; a
/// run's memory moves in small jumps (a collection more or less), which is why the nearest run at or
/// below the target is returned and not the last one tried.
///
/// Returns `None` when even the least memory is above the target.
pub fn at_most<T>(
    (low, high): (f64, f64),
    target: f64,
    mut run: impl FnMut(f64) -> T,
    memory: impl Fn(&T) -> f64,
) -> Option<(f64, T)> {
    let (mut low, mut high) = (low.ln(), high.ln());
    let rises = memory(&run(low.exp())) < memory(&run(high.exp()));
    let mut best: Option<(f64, T)> = None;
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        let outcome = run(middle.exp());
        let used = memory(&outcome);
        if (used > target) == rises {
            high = middle;
        } else {
            low = middle;
        }
        if used <= target && best.as_ref().is_none_or(|(_, b)| memory(b) < used) {
            best = Some((middle.exp(), outcome));
        }
    }
    best
}

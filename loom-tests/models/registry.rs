//! How shards change hands.

use loom::sync::Arc;

use super::{explore, join, spawn};
use crate::seat::Seat;
use crate::shard::Shard;

use crate::operation::Operation::Allocate;
use crate::sum::Sum;
use crate::totals::Totals;

/// As in an account: two shards in a slab.
type Registry = crate::registry::Registry<Shard, 2>;

fn totals(registry: &Registry) -> Totals {
    Sum::of(|| registry.used()).totals
}

/// Claims a shard, finds it with nobody's mark, marks it for as long as it is held, and hands it
/// back.
fn hold(registry: &Registry, mark: usize) {
    let shard = registry.claim().expect("there is memory");
    assert_eq!(shard.threshold(), 0, "handed to {mark} while it was owned");
    shard.set_threshold(mark);
    shard.count(Allocate, 1);
    assert_eq!(
        shard.threshold(),
        mark,
        "taken from {mark} while it held it"
    );
    shard.set_threshold(0);
    registry.release(shard);
}

/// Whoever claims a shard goes on from the counters as the last owner left them, also when claims
/// and releases of another shard of the slab came in between.
#[test]
fn a_shard_changes_hands_with_its_counters() {
    explore(2, || {
        let registry = Arc::new(Registry::new());
        registry.claim().expect("the first slab has room");
        let count = |registry: &Registry| {
            let shard = registry.claim().expect("there is memory");
            shard.count(Allocate, 5);
            registry.release(shard);
        };
        let threads = [spawn(&registry, count), spawn(&registry, count)];
        let between = spawn(&registry, |registry| {
            let other = registry.used().next().expect("claimed above");
            registry.release(other);
        });
        join(threads);
        join([between]);
        assert_eq!(totals(&registry).bytes_allocated, 10);
        assert_eq!(totals(&registry).allocations, 2);
    });
}

/// No shard has two owners, and there are never more shards than there were threads at once.
#[test]
fn a_shard_is_never_handed_to_two_threads() {
    explore(3, || {
        let registry = Arc::new(Registry::new());
        let twice = |mark| {
            move |registry: &Registry| {
                hold(registry, mark);
                hold(registry, mark);
            }
        };
        let threads = [spawn(&registry, twice(1)), spawn(&registry, twice(2))];
        join(threads);
        assert_eq!(totals(&registry).allocations, 4);
        assert_eq!(registry.owned(), 0, "all were handed back");
        let shards = registry.used().count();
        assert!(shards <= 2, "{shards} shards for two threads");
    });
}

/// Threads that find the first slab full race to add the next one: both get a shard, not the same,
/// and one slab is enough.
#[test]
fn claims_past_the_first_slab_race_to_extend_it() {
    explore(3, || {
        let registry = Arc::new(Registry::new());
        let first = [(); 2].map(|()| registry.claim().expect("the first slab has room"));
        let threads = [1, 2].map(|mark| spawn(&registry, move |registry| hold(registry, mark)));
        join(threads);
        assert_eq!(totals(&registry).allocations, 2);
        for shard in first {
            registry.release(shard);
        }
        assert_eq!(registry.owned(), 0, "all were handed back");
        let shards = registry.used().count();
        assert!((3..=4).contains(&shards), "{shards} shards");
    });
}

/// Sits down on a seat and counts so many bytes as its id is.
fn sit_and_count(seat: &Seat, id: usize) {
    seat.shard.note_found();
    seat.sit_down(id);
    seat.shard.count(Allocate, id);
}

/// A thread gets up and another comes to the same seat (what orders the two is the registry's), while a third lists
/// the seats. What it reads under an id was counted by the thread of that id.
#[test]
fn a_reading_never_shows_one_threads_figures_under_anothers_id() {
    explore(2, || {
        let seats = Arc::new(crate::registry::Registry::<Seat, 2>::new());
        sit_and_count(seats.claim().expect("there is room"), 1);
        let owners = spawn(&seats, |seats| {
            let first = seats.used().next().expect("claimed above");
            seats.release_around(&first.shard, Seat::get_up);
            sit_and_count(seats.claim().expect("there is room"), 2);
        });
        let reader = spawn(&seats, |seats| {
            for sitting in seats.used().filter_map(Seat::sitting) {
                let (id, bytes) = (sitting.thread, sitting.totals.bytes_allocated);
                assert!(
                    id == 1 && bytes == 1 || id == 2 && (bytes == 0 || bytes == 2),
                    "{sitting:?}"
                );
            }
        });
        join([owners, reader]);
        assert_eq!(seats.used().filter_map(Seat::sitting).count(), 1);
    });
}

//! `TallyAlloc::system()` counts in the default mode, which the cargo feature `exact` chooses.

use std::any::TypeId;

use tally_alloc::{Batched, DefaultMode, Exact, TallyAlloc, heap};

#[global_allocator]
static GLOBAL: TallyAlloc = TallyAlloc::system();

#[test]
fn the_default_mode_is_exact_with_the_feature_and_batched_without() {
    let expected = if cfg!(feature = "exact") {
        TypeId::of::<Exact>()
    } else {
        TypeId::of::<Batched>()
    };
    assert_eq!(TypeId::of::<DefaultMode>(), expected);
    // Libtest's own threads are in the bound, too; in exact mode nobody is.
    let bound = heap().error_bound();
    assert_eq!(bound == 0, cfg!(feature = "exact"), "a bound of {bound}");
    assert!(heap().is_installed());
}

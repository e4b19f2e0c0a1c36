//! `accounting-allocator`.

use accounting_allocator::AccountingAlloc;

fn live() -> usize {
    let all_time = GLOBAL.count().all_time;
    all_time.alloc.wrapping_sub(all_time.dealloc)
}

tally_alloc_bench::peer! {
    AccountingAlloc = AccountingAlloc::new();
    keep: ();
    live: Some(live);
    read: live;
}

//! What is claimed of scopes, of `assert_allocates!` and of the listing of threads, with the allocator installed in
//! batches, by tests that run at the same time under libtest.

mod measured;

use std::alloc::System;

use tally_alloc::{Batched, TallyAlloc};

#[global_allocator]
static GLOBAL: TallyAlloc<System, Batched> = TallyAlloc::new(System);

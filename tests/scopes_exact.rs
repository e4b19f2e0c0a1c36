//! What is claimed of scopes, of `assert_allocates!` and of the listing of threads, with the allocator installed in
//! exact mode, by tests that run at the same time under libtest.

mod measured;

use std::alloc::System;

use tally_alloc::{Exact, TallyAlloc};

#[global_allocator]
static GLOBAL: TallyAlloc<System, Exact> = TallyAlloc::new(System);

//! What counting costs on this machine: see `--help`.

use std::alloc::System;

use tally_alloc_bench::switch::Switch;

#[global_allocator]
static GLOBAL: Switch<System> = Switch::new();

fn main() -> anyhow::Result<()> {
    tally_alloc_bench::overhead::main(&GLOBAL, Some(env!("CARGO_BIN_EXE_overhead-over-mimalloc")))
}

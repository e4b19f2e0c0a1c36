//! The `overhead` command over mimalloc: measures the rows that the bench of that name asks for.

use mimalloc::MiMalloc;
use tally_alloc_bench::switch::Switch;

#[global_allocator]
static GLOBAL: Switch<MiMalloc> = Switch::new();

fn main() -> anyhow::Result<()> {
    tally_alloc_bench::overhead::main(&GLOBAL, None)
}

//! The committed header is what the sources give.
#![allow(missing_docs, reason = "an integration test")]

use std::path::Path;

/// Set `TALLY_WRITE_HEADER` to write it instead.
#[test]
fn the_committed_header_is_the_one_made_from_the_sources() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config =
        cbindgen::Config::from_file(package.join("cbindgen.toml")).expect("the configuration");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in ["status.rs", "account.rs", "blocks.rs", "trigger.rs"] {
        builder = builder.with_src(package.join("src").join(source));
    }
    let mut made = Vec::new();
    builder.generate().expect("the header").write(&mut made);
    let made = String::from_utf8(made).expect("a header of text");
    let path = package.join("include/tally_alloc.h");
    if std::env::var_os("TALLY_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let committed = std::fs::read_to_string(&path).expect("the committed header");
    assert!(
        committed == made,
        "include/tally_alloc.h is out of date: TALLY_WRITE_HEADER=1 cargo test -p tally-alloc-capi --test header"
    );
}

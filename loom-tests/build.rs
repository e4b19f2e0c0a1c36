//! Compiles this package, and no other, under `cfg(loom)`.

fn main() {
    println!("cargo::rustc-cfg=loom");
    println!("cargo::rerun-if-changed=build.rs");
}

//! The one place that chooses between the standard atomics and loom's.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Declares a constructor that is `const` except under loom, whose atomics
/// register themselves with the running model when they are made.
macro_rules! const_fn {
    ($(#[$attribute:meta])* $vis:vis const fn $name:ident() -> $out:ty $body:block) => {
        #[cfg(not(loom))]
        $(#[$attribute])*
        $vis const fn $name() -> $out $body

        #[cfg(loom)]
        $(#[$attribute])*
        $vis fn $name() -> $out $body
    };
}
pub(crate) use const_fn;

//! The one place that chooses between the standard atomics, threads and cells and loom's.

#[cfg(not(loom))]
pub(crate) use std::{
    sync::Mutex,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering},
    thread::{Thread as Handle, yield_now},
};

#[cfg(loom)]
pub(crate) use loom::{
    sync::Mutex,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering},
    thread::{Thread as Handle, yield_now},
};

use std::mem::MaybeUninit;

/// A place for a thread's handle.
#[cfg(loom)]
pub(crate) type HandleCell = loom::cell::UnsafeCell<MaybeUninit<Handle>>;

/// A place for a thread's handle, with loom's way of getting at it.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct HandleCell(std::cell::UnsafeCell<MaybeUninit<Handle>>);

#[cfg(not(loom))]
impl HandleCell {
    pub(crate) const fn new(handle: MaybeUninit<Handle>) -> Self {
        Self(std::cell::UnsafeCell::new(handle))
    }

    pub(crate) fn with<R>(&self, read: impl FnOnce(*const MaybeUninit<Handle>) -> R) -> R {
        read(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut MaybeUninit<Handle>) -> R) -> R {
        write(self.0.get())
    }
}

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

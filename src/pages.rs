//! Memory for what must never come from the allocator that is being counted.
//!
//! On Unix a fresh mapping from the kernel: no lock of the C library, nothing that `fork`
//! could find half done, and pages that nobody touches cost nothing. Elsewhere, and on the
//! Unix-like systems for small devices, whose C library maps no memory, the system allocator, which
//! is not the counted one.

#![allow(unsafe_code, reason = "asks the operating system for memory")]

/// Types for which all bytes zero is a valid value, the one a new mapping shows.
///
/// # Safety
///
/// All bytes zero must be a valid value of the type.
pub(crate) unsafe trait ZeroIsValid: Sized {}

#[cfg(all(unix, not(any(target_env = "newlib", target_os = "nuttx"))))]
pub(crate) use mapped::{release, zeroed};

#[cfg(not(all(unix, not(any(target_env = "newlib", target_os = "nuttx")))))]
pub(crate) use portable::{release, zeroed};

#[cfg(all(unix, not(any(target_env = "newlib", target_os = "nuttx"))))]
mod mapped {
    use std::ptr::NonNull;

    use super::ZeroIsValid;

    /// Returns memory for a `T`, all zero, aligned and valid until it is given to
    /// [`release`]; `None` when the system has none to give.
    pub(crate) fn zeroed<T: ZeroIsValid>() -> Option<NonNull<T>> {
        // A mapping begins at a page, and no page is smaller.
        const { assert!(align_of::<T>() <= 4096) };
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches
        // no memory that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        // In this order the optimiser sees that neither test can fail later: with debug assertions on,
        // the other leaves a panic behind.
        let memory = NonNull::new(start)?;
        (start != libc::MAP_FAILED).then_some(memory.cast())
    }

    /// Gives back what [`zeroed`] returned.
    ///
    /// # Safety
    ///
    /// `memory` came from `zeroed::<T>` and nobody uses it any more.
    pub(crate) unsafe fn release<T: ZeroIsValid>(memory: NonNull<T>) {
        // SAFETY: the whole of one mapping that, so the caller, is no longer used.
        unsafe { libc::munmap(memory.as_ptr().cast(), size_of::<T>()) };
    }
}

#[cfg(not(all(unix, not(any(target_env = "newlib", target_os = "nuttx")))))]
mod portable {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::ptr::NonNull;

    use super::ZeroIsValid;

    /// Returns memory for a `T`, all zero, aligned and valid until it is given to
    /// [`release`]; `None` when the system has none to give.
    pub(crate) fn zeroed<T: ZeroIsValid>() -> Option<NonNull<T>> {
        const { assert!(size_of::<T>() != 0) };
        // SAFETY: the layout is of a size above zero.
        NonNull::new(unsafe { System.alloc_zeroed(Layout::new::<T>()) }.cast())
    }

    /// Gives back what [`zeroed`] returned.
    ///
    /// # Safety
    ///
    /// `memory` came from `zeroed::<T>` and nobody uses it any more.
    pub(crate) unsafe fn release<T: ZeroIsValid>(memory: NonNull<T>) {
        // SAFETY: allocated by `zeroed` with the same layout and, so the caller, unused.
        unsafe { System.dealloc(memory.as_ptr().cast(), Layout::new::<T>()) };
    }
}

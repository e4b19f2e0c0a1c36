//! The two modes of counting, as types.

/// Counting in batches: a thread publishes once a threshold of bytes is pending.
///
/// [`Heap::live_bytes`](crate::Heap::live_bytes) is within
/// [`Heap::error_bound`](crate::Heap::error_bound); [`Heap::totals`](crate::Heap::totals) is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batched {}

/// Exact counting: every operation is published before it returns.
///
/// [`Heap::live_bytes`](crate::Heap::live_bytes) is the truth after every operation, and every
/// operation writes to one shared cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exact {}

/// The mode of a [`TallyAlloc`](crate::TallyAlloc), and of a [`Counter`](crate::Counter), that names none: [`Exact`] with
/// the cargo feature `exact`, otherwise [`Batched`].
#[cfg(feature = "exact")]
pub type DefaultMode = Exact;

/// The mode of a [`TallyAlloc`](crate::TallyAlloc), and of a [`Counter`](crate::Counter), that names none: [`Exact`] with
/// the cargo feature `exact`, otherwise [`Batched`].
#[cfg(not(feature = "exact"))]
pub type DefaultMode = Batched;

/// [`Batched`] or [`Exact`]. There are no others: the trait is sealed.
pub trait Mode: sealed::Sealed {
    #[doc(hidden)]
    const PUBLISHES_EVERY_OPERATION: bool;
}

impl Mode for Batched {
    const PUBLISHES_EVERY_OPERATION: bool = false;
}

impl Mode for Exact {
    const PUBLISHES_EVERY_OPERATION: bool = true;
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for super::Batched {}
    impl Sealed for super::Exact {}
}

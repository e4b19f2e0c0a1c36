//! A minimal [MMTk](https://www.mmtk.io) binding whose off-heap memory is a [`Counter`].
//!
//! It is as much of a virtual machine as it takes to let MMTk decide when to collect: one thread
//! that allocates, no objects in MMTk's own heap, and buffers outside it, as a language keeps the
//! elements of its arrays in malloc'd memory. What matters is one line,
//! [`Collection::vm_live_bytes`]: MMTk reads it at every poll, and adds what it returns to its heap.
//!
//! `tests/off_heap.rs` shows it at work.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use mmtk::scheduler::GCWorker;
use mmtk::util::copy::{CopySemantics, GCWorkerCopyContext};
use mmtk::util::opaque_pointer::{OpaquePointer, VMMutatorThread, VMThread, VMWorkerThread};
use mmtk::util::options::{GCTriggerSelector, PlanSelector};
use mmtk::util::{Address, ObjectReference};
use mmtk::vm::slot::{SimpleSlot, UnimplementedMemorySlice};
use mmtk::vm::{
    ActivePlan, Collection, GCThreadContext, ObjectModel, ObjectTracerContext, ReferenceGlue,
    RootsWorkFactory, Scanning, SlotVisitor, VMBinding, VMGlobalLogBitSpec,
    VMLocalForwardingBitsSpec, VMLocalForwardingPointerSpec, VMLocalLOSMarkNurserySpec,
    VMLocalMarkBitSpec,
};
use mmtk::{MMTK, MMTKBuilder, Mutator, memory_manager};
use tally_alloc::Counter;

/// The virtual machine.
#[derive(Debug, Default)]
pub struct Runtime;

/// What the machine holds outside MMTk's heap.
pub static OFF_HEAP: Counter = Counter::new();

/// The buffers there are, with whether the program can still reach each.
static BUFFERS: Mutex<Vec<(Vec<u8>, bool)>> = Mutex::new(Vec::new());

static MACHINE: OnceLock<Box<MMTK<Runtime>>> = OnceLock::new();

/// How the one mutator and the collector's threads meet.
static WORLD: World = World {
    state: Mutex::new(State {
        stopped: false,
        collections: 0,
    }),
    changed: Condvar::new(),
};

struct World {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The mutator waits for a collection to end.
    stopped: bool,
    collections: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    fn wait_while(&self, waits: impl Fn(&State) -> bool) {
        let state = self
            .changed
            .wait_while(locked(&self.state), |state| waits(state));
        drop(state.unwrap_or_else(PoisonError::into_inner));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut locked(&self.state));
        self.changed.notify_all();
    }
}

impl Runtime {
    /// Starts the machine, with a heap of so many bytes for objects and buffers together.
    pub fn start(heap: usize) {
        MACHINE.get_or_init(|| {
            let mut builder = MMTKBuilder::new_no_env_vars();
            assert!(builder.options.plan.set(PlanSelector::MarkSweep));
            assert!(builder.options.threads.set(1));
            assert!(
                builder
                    .options
                    .gc_trigger
                    .set(GCTriggerSelector::FixedHeapSize(heap))
            );
            memory_manager::mmtk_init(&builder)
        });
        memory_manager::initialize_collection(Self::mmtk(), VMThread::UNINITIALIZED);
    }

    /// Returns the collector.
    #[must_use]
    pub fn mmtk() -> &'static MMTK<Self> {
        MACHINE.get().expect("the machine was started")
    }

    /// Allocates a buffer outside the heap; it is kept while `reachable`. May collect first.
    pub fn allocate_buffer(bytes: usize, reachable: bool) {
        // The safepoint: counted memory never polls by itself.
        memory_manager::gc_poll(Self::mmtk(), VMMutatorThread(VMThread::UNINITIALIZED));
        let buffer = vec![0; bytes];
        OFF_HEAP.add(bytes);
        locked(&BUFFERS).push((buffer, reachable));
    }

    /// Returns how many collections have ended.
    #[must_use]
    pub fn collections() -> usize {
        locked(&WORLD.state).collections
    }

    /// Returns the bytes of all buffers, added up one by one.
    #[must_use]
    pub fn buffer_bytes() -> usize {
        locked(&BUFFERS)
            .iter()
            .map(|(buffer, _)| buffer.len())
            .sum()
    }

    /// What finalizers do: buffers that nothing reaches are freed, on a thread of the collector.
    fn free_unreachable_buffers() {
        locked(&BUFFERS).retain(|(buffer, reachable)| {
            if !reachable {
                OFF_HEAP.sub(buffer.len());
            }
            *reachable
        });
    }
}

impl Collection<Runtime> for Runtime {
    /// One load. Off by at most `OFF_HEAP.error_bound()`, which MMTk, for whom a page more or less
    /// decides nothing, may ignore.
    fn vm_live_bytes() -> usize {
        OFF_HEAP.live_bytes()
    }

    fn stop_all_mutators<F>(_: VMWorkerThread, _: F)
    where
        F: FnMut(&'static mut Mutator<Runtime>),
    {
        WORLD.wait_while(|state| !state.stopped);
    }

    fn resume_mutators(_: VMWorkerThread) {
        WORLD.change(|state| {
            state.stopped = false;
            state.collections += 1;
        });
    }

    fn block_for_gc(_: VMMutatorThread) {
        WORLD.change(|state| state.stopped = true);
        WORLD.wait_while(|state| state.stopped);
    }

    fn spawn_gc_thread(_: VMThread, context: GCThreadContext<Runtime>) {
        let GCThreadContext::Worker(worker) = context;
        thread::spawn(move || {
            // Anything that is not null.
            let address = Address::from_ref(&WORLD);
            let tls = VMWorkerThread(VMThread(OpaquePointer::from_address(address)));
            memory_manager::start_worker(Runtime::mmtk(), tls, worker);
        });
    }
}

impl Scanning<Runtime> for Runtime {
    fn scan_object<V: SlotVisitor<SimpleSlot>>(_: VMWorkerThread, _: ObjectReference, _: &mut V) {
        unreachable!("there are no objects");
    }

    fn notify_initial_thread_scan_complete(_: bool, _: VMWorkerThread) {}

    fn scan_roots_in_mutator_thread(
        _: VMWorkerThread,
        _: &'static mut Mutator<Runtime>,
        _: impl RootsWorkFactory<SimpleSlot>,
    ) {
    }

    fn scan_vm_specific_roots(_: VMWorkerThread, _: impl RootsWorkFactory<SimpleSlot>) {}

    fn supports_return_barrier() -> bool {
        false
    }

    fn prepare_for_roots_re_scanning() {}

    fn process_weak_refs(_: &mut GCWorker<Runtime>, _: impl ObjectTracerContext<Runtime>) -> bool {
        Self::free_unreachable_buffers();
        false
    }
}

impl ActivePlan<Runtime> for Runtime {
    fn is_mutator(_: VMThread) -> bool {
        true
    }

    fn mutator(_: VMMutatorThread) -> &'static mut Mutator<Runtime> {
        unreachable!("nobody allocates in MMTk's heap");
    }

    fn mutators<'a>() -> Box<dyn Iterator<Item = &'a mut Mutator<Runtime>> + 'a> {
        Box::new(std::iter::empty())
    }

    fn number_of_mutators() -> usize {
        0
    }
}

impl ObjectModel<Runtime> for Runtime {
    const GLOBAL_LOG_BIT_SPEC: VMGlobalLogBitSpec = VMGlobalLogBitSpec::side_first();
    const LOCAL_FORWARDING_POINTER_SPEC: VMLocalForwardingPointerSpec =
        VMLocalForwardingPointerSpec::in_header(0);
    const LOCAL_FORWARDING_BITS_SPEC: VMLocalForwardingBitsSpec =
        VMLocalForwardingBitsSpec::in_header(0);
    const LOCAL_MARK_BIT_SPEC: VMLocalMarkBitSpec = VMLocalMarkBitSpec::side_first();
    const LOCAL_LOS_MARK_NURSERY_SPEC: VMLocalLOSMarkNurserySpec =
        VMLocalLOSMarkNurserySpec::side_after(Self::LOCAL_MARK_BIT_SPEC.as_spec());
    const OBJECT_REF_OFFSET_LOWER_BOUND: isize = 0;

    fn copy(
        _: ObjectReference,
        _: CopySemantics,
        _: &mut GCWorkerCopyContext<Runtime>,
    ) -> ObjectReference {
        unreachable!("there are no objects");
    }

    fn copy_to(_: ObjectReference, _: ObjectReference, _: Address) -> Address {
        unreachable!("there are no objects");
    }

    fn get_reference_when_copied_to(_: ObjectReference, _: Address) -> ObjectReference {
        unreachable!("there are no objects");
    }

    fn get_current_size(_: ObjectReference) -> usize {
        unreachable!("there are no objects");
    }

    fn get_size_when_copied(_: ObjectReference) -> usize {
        unreachable!("there are no objects");
    }

    fn get_align_when_copied(_: ObjectReference) -> usize {
        unreachable!("there are no objects");
    }

    fn get_align_offset_when_copied(_: ObjectReference) -> usize {
        unreachable!("there are no objects");
    }

    fn get_type_descriptor(_: ObjectReference) -> &'static [i8] {
        unreachable!("there are no objects");
    }

    fn ref_to_object_start(object: ObjectReference) -> Address {
        object.to_raw_address()
    }

    fn ref_to_header(object: ObjectReference) -> Address {
        object.to_raw_address()
    }

    fn dump_object(_: ObjectReference) {}
}

impl ReferenceGlue<Runtime> for Runtime {
    type FinalizableType = ObjectReference;

    fn clear_referent(_: ObjectReference) {
        unreachable!("there are no objects");
    }

    fn get_referent(_: ObjectReference) -> Option<ObjectReference> {
        unreachable!("there are no objects");
    }

    fn set_referent(_: ObjectReference, _: ObjectReference) {
        unreachable!("there are no objects");
    }

    fn enqueue_references(_: &[ObjectReference], _: VMWorkerThread) {}
}

impl VMBinding for Runtime {
    type VMObjectModel = Self;
    type VMScanning = Self;
    type VMCollection = Self;
    type VMActivePlan = Self;
    type VMReferenceGlue = Self;
    type VMSlot = SimpleSlot;
    type VMMemorySlice = UnimplementedMemorySlice;
}

//! A plugin that has a copy of the library of its own, loaded into a program that has installed another:
//! each counts what is its own, they can be told apart, and the plugin can be unloaded while threads live
//! that were in it.

#![allow(unsafe_code, reason = "loads a library by hand")]

mod support;

use std::alloc::System;
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::mpsc::channel;

use support::claims;
use support::oracle::Oracle;
use tally_alloc::{TallyAlloc, heap};

#[global_allocator]
static GLOBAL: TallyAlloc<Oracle<System>> = TallyAlloc::new(Oracle::over(System));

claims![
    host_and_plugin_count_what_is_their_own,
    a_plugin_may_be_unloaded_while_threads_live_that_were_in_it,
];

fn main() -> ExitCode {
    support::run(CLAIMS, &[])
}

struct Plugin {
    handle: *mut c_void,
    work: extern "C" fn(usize) -> usize,
    account: extern "C" fn() -> usize,
}

impl Plugin {
    /// Loads the plugin, which cargo builds with the examples.
    fn load() -> Self {
        let mut path = std::env::current_exe().expect("a running program has a path");
        path.pop();
        path.pop();
        path.push("examples/libplugin.so");
        let path = CString::new(path.as_os_str().as_bytes()).expect("no path has a zero in it");
        // SAFETY: loads a library whose initialisers are the standard library's.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(
            !handle.is_null(),
            "{path:?} is not there: cargo builds it with the examples"
        );
        let find = |name: &CStr| {
            // SAFETY: the handle is open, the name ends with a zero.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            assert!(!found.is_null(), "the plugin has no {name:?}");
            found
        };
        Self {
            handle,
            // SAFETY: the function of that name has this signature.
            work: unsafe {
                std::mem::transmute::<*mut c_void, extern "C" fn(usize) -> usize>(find(
                    c"plugin_work",
                ))
            },
            // SAFETY: the same.
            account: unsafe {
                std::mem::transmute::<*mut c_void, extern "C" fn() -> usize>(find(
                    c"plugin_account",
                ))
            },
        }
    }

    /// Unloads it; nobody may be in its code.
    fn unload(&self) {
        // SAFETY: the handle is open and closed once, and no thread runs the plugin's code.
        let closed = unsafe { libc::dlclose(self.handle) };
        assert_eq!(closed, 0, "dlclose");
    }
}

fn is_mapped() -> bool {
    std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("libplugin"))
}

fn host_and_plugin_count_what_is_their_own() {
    let plugin = Plugin::load();
    assert_ne!(
        (plugin.account)(),
        std::ptr::from_ref(heap()).addr(),
        "two accounts have two addresses"
    );
    let before = heap().totals();
    let first = (plugin.work)(1_000_000);
    let second = (plugin.work)(1_000_000);
    assert_eq!(second - first, 1_000_000, "the plugin counts its own");
    assert_eq!(heap().totals(), before, "the host counts none of it");
}

fn a_plugin_may_be_unloaded_while_threads_live_that_were_in_it() {
    let plugin = Plugin::load();
    let (unload, unloaded) = channel::<()>();
    let (been, has_been) = channel();
    let work = plugin.work;
    let visitor = std::thread::spawn(move || {
        been.send(work(20_000)).expect("the main thread waits");
        unloaded.recv().expect("the main thread says so");
    });
    assert!(has_been.recv().expect("the visitor says so") >= 20_000);
    plugin.unload();
    assert!(!is_mapped(), "the plugin is gone");
    unload.send(()).expect("the visitor waits");
    visitor.join().expect("it ends without the plugin's code");
}

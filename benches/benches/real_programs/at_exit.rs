
// Says at the very end, after all destructors and exit handlers, what the allocator has counted: into the file that
// the environment names. Allocates nothing, not even to ask for the name, since that would be counted as well.
mod account_at_exit {
    use std::ffi::{c_char, c_int};
    use std::io::Write as _;

    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *const c_char;
        fn open(path: *const c_char, flags: c_int, ...) -> c_int;
        fn write(file: c_int, bytes: *const u8, length: usize) -> isize;
    }

    #[used]
    #[unsafe(link_section = ".fini_array")]
    static AT_EXIT: extern "C" fn() = say;

    extern "C" fn say() {
        let totals = tally_alloc::heap().totals();
        let mut text = [0_u8; 256];
        let mut rest = &mut text[..];
        let _ = writeln!(
            rest,
            "{} {} {} {} {}",
            totals.bytes_allocated,
            totals.bytes_deallocated,
            totals.allocations,
            totals.deallocations,
            totals.reallocations
        );
        let length = 256 - rest.len();
        // SAFETY: strings that end in zero, and the part of `text` that was written. The flags are those of Linux:
        // write only, create, truncate.
        unsafe {
            let path = getenv(c"TALLY_ALLOC_ACCOUNT".as_ptr());
            if !path.is_null() {
                write(open(path, 0o1101, 0o644 as c_int), text.as_ptr(), length);
            }
        }
    }
}

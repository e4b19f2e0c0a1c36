// tally-alloc: counted malloc for language runtimes.
//
// Made from the Rust sources; see README.md beside it for how to link and for what is promised.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The version that this header was made for, as `tally_version_number` returns it: major × 65536 +
// minor × 256 + patch.
#define TALLY_VERSION 256

// Threads publish what they have counted in batches: live bytes are within the error bound, exact
// totals are a sum over the threads.
#define TALLY_BATCHED 0

// Every operation is published at once: live bytes are exact, and threads that count at the same
// time wait for each other.
#define TALLY_EXACT 1

// A trigger's limit is one of live bytes.
#define TALLY_LIVE_BYTES 0

// A trigger's limit is one of live blocks.
#define TALLY_LIVE_BLOCKS 1

// A trigger's limit is one of the bytes allocated since the last collection, freed or not.
#define TALLY_ALLOCATED_BYTES 2

// What came of a call. Anything but `TALLY_OK` means that nothing was done.
typedef enum {
  // It was done.
  TALLY_OK = 0,
  // A pointer that must not be null was null.
  TALLY_NULL_POINTER = 1,
  // There was no memory.
  TALLY_NO_MEMORY = 2,
  // The mode is neither `TALLY_BATCHED` nor `TALLY_EXACT`.
  TALLY_UNKNOWN_MODE = 3,
  // The threshold is above the maximum: 1 GiB, or 128 KiB where pointers have 32 bits.
  TALLY_THRESHOLD_TOO_LARGE = 4,
  // A parameter of a policy is outside the values that mean something.
  TALLY_BAD_PARAMETER = 5,
  // The measure is none of `TALLY_LIVE_BYTES`, `TALLY_LIVE_BLOCKS` and `TALLY_ALLOCATED_BYTES`.
  TALLY_UNKNOWN_MEASURE = 6,
} tally_status;

// What becomes of a request that was announced.
typedef enum {
  // It fits below the limit.
  TALLY_FITS = 0,
  // It does not, and a collection is due that will take it into account: collect, and announce again.
  TALLY_COLLECT = 1,
  // It did not fit even after such a collection.
  TALLY_REFUSED = 2,
} tally_announcement;

// An account: of a VM instance, an isolate, a cache. Any thread may use it at any time, except
// that it must not be in use while it is destroyed.
typedef struct tally_account tally_account;

// Decides when to collect: it watches one figure of an account and is due once the figure reaches the
// limit that its policy has set. Never due below the limit, and due at the latest when a thread publishes
// at or above it. Any thread may use it; it must be destroyed before its account.
typedef struct tally_trigger tally_trigger;

// What an account has seen since it began. All but the live figures only grow, modulo the width of a
// size.
typedef struct {
  // Bytes of blocks allocated and of growth.
  size_t bytes_allocated;
  // Bytes of blocks freed and of shrinking.
  size_t bytes_deallocated;
  // Blocks allocated.
  size_t allocations;
  // Blocks freed.
  size_t deallocations;
  // Blocks resized.
  size_t reallocations;
  // Bytes allocated and not freed: the difference of the first two.
  size_t live_bytes;
  // Blocks allocated and not freed.
  size_t live_blocks;
} tally_totals;

// What a trigger has seen and done.
typedef struct {
  // Collections that have ended.
  uint64_t cycles;
  // Nanoseconds spent collecting, as they were reported.
  uint64_t collecting;
  // Nanoseconds in between, up to the last collection.
  uint64_t mutating;
  // Bytes allocated, up to the last collection.
  uint64_t bytes_allocated;
  // How often the policy has grown its reserve.
  uint64_t growth_steps;
  // The limit in force, in the trigger's measure.
  size_t limit;
  // What is left below it.
  size_t headroom;
} tally_report;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns what a status means, in English: a string that lives as long as the program. Takes any
// number.
const char *tally_status_message(int32_t status);

// Returns the version of the library that was linked, to be compared with `TALLY_VERSION`. While
// the major number is 0, libraries of another minor number may differ in what they offer.
uint32_t tally_version_number(void);

// Returns the version of the library that was linked, as text such as "1.2.3".
const char *tally_version(void);

// Makes an account with nothing counted, in the mode `TALLY_BATCHED` or `TALLY_EXACT`, and stores
// it in `*account`.
//
// Fails with `TALLY_NULL_POINTER` for a null `account`, else with `TALLY_UNKNOWN_MODE` or
// `TALLY_NO_MEMORY` and null in `*account`.
//
// # Safety
//
// `account` is null or valid for a write.
tally_status tally_account_create(uint32_t mode, tally_account **account);

// Destroys an account and gives back all its memory; null is ignored. Blocks that were allocated
// through it stay, and can be freed with the C library's `free`.
//
// # Safety
//
// `account` is null or was made by `tally_account_create`, is destroyed once, and nobody uses it
// any more.
void tally_account_destroy(tally_account *account);

// Returns the published live bytes: one read, whatever the number of threads. Off by at most
// `tally_account_error_bound`, never negative. 0 for null.
//
// # Safety
//
// `account` is null or an account.
size_t tally_account_live_bytes(const tally_account *account);

// Returns the bytes by which `tally_account_live_bytes` may be off right now; 0 in exact mode. 0
// for null.
//
// # Safety
//
// `account` is null or an account.
size_t tally_account_error_bound(const tally_account *account);

// Stores the exact totals in `*totals`: a sum over all threads that have counted, without stopping
// any. While threads run, its live figures are at least what was live throughout the call, and
// above it by at most what was freed during the call.
//
// Fails with `TALLY_NULL_POINTER` if either is null.
//
// # Safety
//
// `account` is null or an account; `totals` is null or valid for a write.
tally_status tally_account_totals(const tally_account *account, tally_totals *totals);

// Stores in `*totals` what the calling thread has done since it started. The live figures wrap
// below zero for a thread that has freed what others allocated.
//
// Fails with `TALLY_NULL_POINTER` if either is null.
//
// # Safety
//
// `account` is null or an account; `totals` is null or valid for a write.
tally_status tally_account_thread_totals(const tally_account *account, tally_totals *totals);

// Returns the highest published live bytes since the account was made or its peak was last reset.
// 0 for null.
//
// # Safety
//
// `account` is null or an account.
size_t tally_account_peak_bytes(const tally_account *account);

// Starts the peak anew from the published live bytes of now. Null is ignored.
//
// # Safety
//
// `account` is null or an account.
void tally_account_reset_peak(const tally_account *account);

// Publishes what the calling thread has pending. A thread should do so before it ends: what it
// leaves is in the totals all the same, but in the live bytes only when another thread has taken
// its place. Null is ignored.
//
// # Safety
//
// `account` is null or an account.
void tally_account_flush(const tally_account *account);

// Returns the pending bytes at which a thread publishes: 16 KiB unless it was set. 0 for null.
//
// # Safety
//
// `account` is null or an account.
size_t tally_account_threshold(const tally_account *account);

// Sets the threshold, in bytes; 0 means the same as 1. A thread comes under it when it next runs
// out of room, or flushes. Without effect in exact mode.
//
// Fails with `TALLY_NULL_POINTER` or `TALLY_THRESHOLD_TOO_LARGE`.
//
// # Safety
//
// `account` is null or an account.
tally_status tally_account_set_threshold(const tally_account *account, size_t bytes);

// Counts a block of so many bytes that came from an allocator of the caller's own. Null is ignored.
//
// # Safety
//
// `account` is null or an account.
void tally_account_add(const tally_account *account, size_t bytes);

// Takes off a block of so many bytes that was counted with `tally_account_add`. Null is ignored.
//
// # Safety
//
// `account` is null or an account.
void tally_account_sub(const tally_account *account, size_t bytes);

// Counts that a block of `old_size` bytes, counted with `tally_account_add`, is now of `new_size`. Null is
// ignored.
//
// # Safety
//
// `account` is null or an account.
void tally_account_resize(const tally_account *account,
                          size_t old_size,
                          size_t new_size);

// Allocates `size` bytes, aligned for any ordinary object.
//
// A size of 0 gives a block of its own, which counts as a block and has to be freed. Returns null,
// with nothing counted, when there is no memory or the account is null.
//
// # Safety
//
// `account` is null or an account.
void *tally_malloc(const tally_account *account, size_t size);

// Allocates an array of `count` elements of `size` bytes each, all zero. Null if their product is
// more than a size can say; else as `tally_malloc`.
//
// # Safety
//
// `account` is null or an account.
void *tally_calloc(const tally_account *account, size_t count, size_t size);

// Makes a block of `old_size` bytes one of `new_size`, moving it if need be. Growing adds the difference
// to the count, shrinking takes it off.
//
// Null is returned when there is no memory or the account is null; block and count are then as they
// were. A null block gives a new one, and `old_size` is ignored. A new size of 0 gives a block of
// 0 bytes; it is not freed. A block that moves keeps no more than the alignment of `tally_malloc`.
//
// # Safety
//
// `account` is null or an account; `block` is null or came from `tally_malloc`, `tally_calloc`,
// `tally_aligned_malloc` or `tally_realloc` for this account, is of `old_size` bytes, and is not freed.
void *tally_realloc(const tally_account *account,
                    void *block,
                    size_t old_size,
                    size_t new_size);

// Frees a block of `size` bytes, the size that was last asked for. A null block is ignored; with a
// null account nothing is done.
//
// # Safety
//
// `account` is null or an account; `block` is null or came from `tally_malloc`, `tally_calloc`,
// `tally_aligned_malloc` or `tally_realloc` for this account, is of `size` bytes, and is not freed.
void tally_free(const tally_account *account, void *block, size_t size);

// Allocates `size` bytes at a multiple of `alignment`, which must be a power of two (null if it is
// not); else as `tally_malloc`. `tally_free` frees it.
//
// # Safety
//
// `account` is null or an account.
void *tally_aligned_malloc(const tally_account *account, size_t alignment, size_t size);

// Returns the bytes that a block has room for, at least the size asked for; 0 for null.
//
// # Safety
//
// `block` is null or came from a function of this header and is not freed.
size_t tally_usable_size(void *block);

// As `tally_malloc`, but counts the bytes that the block has room for, so that it can be freed
// without its size, by `tally_free_usable`. The two kinds of block do not mix.
//
// # Safety
//
// `account` is null or an account.
void *tally_malloc_usable(const tally_account *account, size_t size);

// As `tally_calloc`, but counts the bytes that the block has room for.
//
// # Safety
//
// `account` is null or an account.
void *tally_calloc_usable(const tally_account *account, size_t count, size_t size);

// As `tally_aligned_malloc`, but counts the bytes that the block has room for.
//
// # Safety
//
// `account` is null or an account.
void *tally_aligned_malloc_usable(const tally_account *account, size_t alignment, size_t size);

// As `tally_realloc`, but counts the bytes that the block has room for.
//
// # Safety
//
// `account` is null or an account; `block` is null or came from a function of this header whose name
// ends in `_usable`, for this account, and is not freed.
void *tally_realloc_usable(const tally_account *account,
                           void *block,
                           size_t new_size);

// Frees a block that came from a function whose name ends in `_usable`. A null block is ignored;
// with a null account nothing is done.
//
// # Safety
//
// `account` is null or an account; `block` is null or came from a function of this header whose name
// ends in `_usable`, for this account, and is not freed.
void tally_free_usable(const tally_account *account,
                       void *block);

// Makes a trigger with a constant limit and stores it in `*trigger`. `measure` is `TALLY_LIVE_BYTES`,
// `TALLY_LIVE_BLOCKS` or `TALLY_ALLOCATED_BYTES`.
//
// Fails with `TALLY_NULL_POINTER`, and else with null in `*trigger` and `TALLY_UNKNOWN_MEASURE`,
// `TALLY_BAD_PARAMETER` for a limit of 0, or `TALLY_NO_MEMORY`.
//
// # Safety
//
// `account` is null or an account that is destroyed after the trigger; `trigger` is null or valid for a
// write.
tally_status tally_trigger_create_fixed(const tally_account *account,
                                        uint32_t measure,
                                        size_t limit,
                                        tally_trigger **trigger);

// Makes a trigger whose limit is `initial` at first and grows by multiples of `increment`, never shrinking,
// when two collections in a row leave less than one increment free. Both must be above 0; else as
// `tally_trigger_create_fixed`.
//
// # Safety
//
// As for `tally_trigger_create_fixed`.
tally_status tally_trigger_create_increment(const tally_account *account,
                                            uint32_t measure,
                                            size_t initial,
                                            size_t increment,
                                            tally_trigger **trigger);

// Makes a trigger whose limit leaves `growth` times what is live after a collection as headroom, from `min`
// to `max`. `growth` and `min` must be above 0 and `max` not below `min`; else as
// `tally_trigger_create_fixed`.
//
// # Safety
//
// As for `tally_trigger_create_fixed`.
tally_status tally_trigger_create_proportional(const tally_account *account,
                                               uint32_t measure,
                                               double growth,
                                               size_t min,
                                               size_t max,
                                               tally_trigger **trigger);

// Makes a trigger whose headroom grows with the square root of live bytes and of the rate of allocation, from
// `min` to `max`: of all limits with the same total, the ones that cost least time when several heaps share a
// machine. `c` is the price of memory as a share of time per byte: 1e-10 is 1 % of the time for 100 MB. `c`
// and `min` must be above 0 and `max` not below `min`; else as `tally_trigger_create_fixed`.
//
// # Safety
//
// As for `tally_trigger_create_fixed`.
tally_status tally_trigger_create_square_root(const tally_account *account,
                                              uint32_t measure,
                                              double c,
                                              size_t min,
                                              size_t max,
                                              tally_trigger **trigger);

// Makes a trigger that is due after every `interval` bytes allocated: for stress testing. The interval must be
// above 0; else as `tally_trigger_create_fixed`.
//
// # Safety
//
// As for `tally_trigger_create_fixed`.
tally_status tally_trigger_create_every_bytes(const tally_account *account,
                                              size_t interval,
                                              tally_trigger **trigger);

// Destroys a trigger; null is ignored.
//
// # Safety
//
// `trigger` is null or a trigger that nobody uses any more, and its account is still there.
void tally_trigger_destroy(tally_trigger *trigger);

// Returns whether a collection is due and the caller is the one to run it: of all threads that poll or wait,
// one gets `true` for each crossing, and must call `tally_trigger_collected` afterwards. One load when nothing
// is due. `false` for null.
//
// # Safety
//
// `trigger` is null or a trigger.
bool tally_trigger_poll(const tally_trigger *trigger);

// Sleeps until a collection is due and the caller is the one to run it, but no longer than `nanoseconds`; returns
// whether it is. For a thread of its own that collects. `false` at once for null.
//
// # Safety
//
// `trigger` is null or a trigger.
bool tally_trigger_wait(const tally_trigger *trigger,
                        uint64_t nanoseconds);

// Announces that `amount` (in the trigger's measure) is about to be allocated in one go, so that a collection can
// make room first. `TALLY_FITS` for null.
//
// # Safety
//
// `trigger` is null or a trigger.
tally_announcement tally_trigger_announce(const tally_trigger *trigger,
                                          size_t amount);

// Ends a cycle: the collection took `nanoseconds`. The policy sets the next limit; the trigger is due at once if
// that is reached already. May also be called after a collection that the trigger did not ask for. Null is
// ignored.
//
// # Safety
//
// `trigger` is null or a trigger.
void tally_trigger_collected(const tally_trigger *trigger,
                             uint64_t nanoseconds);

// Returns the limit in force, in the trigger's measure. 0 for null.
//
// # Safety
//
// `trigger` is null or a trigger.
size_t tally_trigger_limit(const tally_trigger *trigger);

// Returns what is left below the limit, by the exact figure; 0 when it is reached, and for null.
//
// # Safety
//
// `trigger` is null or a trigger.
size_t tally_trigger_headroom(const tally_trigger *trigger);

// Stores in `*report` what the trigger has seen and done. Fails with `TALLY_NULL_POINTER` if either is null.
//
// # Safety
//
// `trigger` is null or a trigger; `report` is null or valid for a write.
tally_status tally_trigger_report(const tally_trigger *trigger,
                                  tally_report *report);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

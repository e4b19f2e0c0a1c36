// Every function of the header, from C; then eight threads on one account.
#include "tally_alloc.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);          \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static tally_totals totals_of(const tally_account *account) {
  tally_totals totals;
  CHECK(tally_account_totals(account, &totals) == TALLY_OK);
  return totals;
}

static void expect_live(const tally_account *account, size_t bytes,
                        size_t blocks) {
  tally_totals totals = totals_of(account);
  if (totals.live_bytes != bytes || totals.live_blocks != blocks) {
    fprintf(stderr, "%zu bytes in %zu blocks live, not %zu in %zu\n",
            totals.live_bytes, totals.live_blocks, bytes, blocks);
    exit(1);
  }
}

// Kept from the optimiser's eyes, which would refuse to compile such sizes.
static volatile size_t too_much = SIZE_MAX / 2;
static volatile size_t half_of_too_much = SIZE_MAX / 2 + 2;

static void blocks_are_counted_by_the_size_asked_for(uint32_t mode) {
  tally_account *account;
  CHECK(tally_account_create(mode, &account) == TALLY_OK);
  expect_live(account, 0, 0);

  char *block = tally_malloc(account, 100);
  CHECK(block != NULL);
  memset(block, 7, 100);
  expect_live(account, 100, 1);

  // Growing, shrinking, and failing to grow.
  block = tally_realloc(account, block, 100, 1000);
  CHECK(block != NULL && block[0] == 7 && block[99] == 7);
  expect_live(account, 1000, 1);
  block = tally_realloc(account, block, 1000, 10);
  CHECK(block != NULL && block[9] == 7);
  expect_live(account, 10, 1);
  errno = 0;
  CHECK(tally_realloc(account, block, 10, too_much) == NULL);
  CHECK(errno == ENOMEM);
  CHECK(block[0] == 7 && block[9] == 7);
  expect_live(account, 10, 1);
  CHECK(totals_of(account).reallocations == 2);

  // Sizes of zero.
  block = tally_realloc(account, block, 10, 0);
  CHECK(block != NULL);
  expect_live(account, 0, 1);
  tally_free(account, block, 0);
  expect_live(account, 0, 0);
  block = tally_malloc(account, 0);
  CHECK(block != NULL);
  expect_live(account, 0, 1);
  block = tally_realloc(account, block, 0, 5);
  CHECK(block != NULL);
  expect_live(account, 5, 1);
  tally_free(account, block, 5);
  block = tally_calloc(account, 0, 8);
  CHECK(block != NULL);
  expect_live(account, 0, 1);
  tally_free(account, block, 0);

  // Null blocks.
  tally_free(account, NULL, 1234);
  expect_live(account, 0, 0);
  block = tally_realloc(account, NULL, 1234, 50);
  CHECK(block != NULL);
  expect_live(account, 50, 1);
  tally_free(account, block, 50);

  // Zeroed memory, and a product that is more than a size can say.
  block = tally_calloc(account, 30, 10);
  CHECK(block != NULL);
  for (int i = 0; i < 300; i++)
    CHECK(block[i] == 0);
  expect_live(account, 300, 1);
  tally_free(account, block, 300);
  errno = 0;
  CHECK(tally_calloc(account, half_of_too_much, 2) == NULL);
  CHECK(errno == ENOMEM);
  CHECK(tally_malloc(account, too_much) == NULL);
  expect_live(account, 0, 0);

  // Alignment.
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    block = tally_aligned_malloc(account, alignment, 77);
    CHECK(block != NULL && (uintptr_t)block % alignment == 0);
    expect_live(account, 77, 1);
    tally_free(account, block, 77);
  }
  errno = 0;
  CHECK(tally_aligned_malloc(account, 24, 77) == NULL);
  CHECK(errno == EINVAL);
  CHECK(tally_aligned_malloc(account, 0, 77) == NULL);
  CHECK(tally_aligned_malloc(account, 64, too_much) == NULL);
  expect_live(account, 0, 0);

  // A runtime's own allocator.
  tally_account_add(account, 40);
  tally_account_resize(account, 40, 60);
  expect_live(account, 60, 1);
  tally_account_sub(account, 60);
  expect_live(account, 0, 0);
  tally_account_destroy(account);
}

static void usable_blocks_are_counted_by_the_room_they_have(uint32_t mode) {
  tally_account *account;
  CHECK(tally_account_create(mode, &account) == TALLY_OK);
  for (size_t size = 0; size < 200; size++) {
    char *block = tally_malloc_usable(account, size);
    CHECK(block != NULL && tally_usable_size(block) >= size);
    expect_live(account, tally_usable_size(block), 1);
    block = tally_realloc_usable(account, block, 3 * size);
    CHECK(block != NULL && tally_usable_size(block) >= 3 * size);
    expect_live(account, tally_usable_size(block), 1);
    CHECK(tally_realloc_usable(account, block, too_much) == NULL);
    expect_live(account, tally_usable_size(block), 1);
    block = tally_realloc_usable(account, block, size / 2);
    CHECK(block != NULL);
    expect_live(account, tally_usable_size(block), 1);
    tally_free_usable(account, block);
    expect_live(account, 0, 0);
  }
  char *zeroed = tally_calloc_usable(account, 10, 10);
  CHECK(zeroed != NULL && zeroed[0] == 0 && zeroed[99] == 0);
  char *aligned = tally_aligned_malloc_usable(account, 256, 10);
  CHECK(aligned != NULL && (uintptr_t)aligned % 256 == 0);
  expect_live(account, tally_usable_size(zeroed) + tally_usable_size(aligned), 2);
  CHECK(tally_calloc_usable(account, half_of_too_much, 2) == NULL);
  CHECK(tally_aligned_malloc_usable(account, 3, 10) == NULL);
  tally_free_usable(account, zeroed);
  tally_free_usable(account, aligned);
  tally_free_usable(account, NULL);
  char *from_null = tally_realloc_usable(account, NULL, 10);
  CHECK(from_null != NULL);
  tally_free_usable(account, from_null);
  expect_live(account, 0, 0);
  CHECK(tally_usable_size(NULL) == 0);
  tally_account_destroy(account);
}

static void null_accounts_and_pointers_are_refused(void) {
  tally_account *account = (tally_account *)&account;
  tally_totals totals;
  CHECK(tally_account_create(TALLY_BATCHED, NULL) == TALLY_NULL_POINTER);
  CHECK(tally_account_create(99, &account) == TALLY_UNKNOWN_MODE);
  CHECK(account == NULL);
  tally_account_destroy(NULL);
  CHECK(tally_malloc(NULL, 1) == NULL);
  CHECK(tally_calloc(NULL, 1, 1) == NULL);
  CHECK(tally_realloc(NULL, NULL, 0, 1) == NULL);
  CHECK(tally_aligned_malloc(NULL, 8, 1) == NULL);
  CHECK(tally_malloc_usable(NULL, 1) == NULL);
  CHECK(tally_calloc_usable(NULL, 1, 1) == NULL);
  CHECK(tally_realloc_usable(NULL, NULL, 1) == NULL);
  CHECK(tally_aligned_malloc_usable(NULL, 8, 1) == NULL);
  tally_free(NULL, NULL, 1);
  tally_free_usable(NULL, NULL);
  tally_account_add(NULL, 1);
  tally_account_sub(NULL, 1);
  tally_account_resize(NULL, 1, 2);
  tally_account_flush(NULL);
  tally_account_reset_peak(NULL);
  CHECK(tally_account_live_bytes(NULL) == 0);
  CHECK(tally_account_error_bound(NULL) == 0);
  CHECK(tally_account_peak_bytes(NULL) == 0);
  CHECK(tally_account_threshold(NULL) == 0);
  CHECK(tally_account_set_threshold(NULL, 1) == TALLY_NULL_POINTER);
  CHECK(tally_account_totals(NULL, &totals) == TALLY_NULL_POINTER);
  CHECK(tally_account_thread_totals(NULL, &totals) == TALLY_NULL_POINTER);
  CHECK(tally_account_create(TALLY_EXACT, &account) == TALLY_OK);
  CHECK(tally_account_totals(account, NULL) == TALLY_NULL_POINTER);
  tally_account_destroy(account);
}

static void published_figures_keep_their_promises(void) {
  tally_account *account;
  CHECK(tally_account_create(TALLY_BATCHED, &account) == TALLY_OK);
  CHECK(tally_account_threshold(account) == 16 * 1024);
  tally_account_add(account, 1000);
  CHECK(tally_account_live_bytes(account) == 0);
  CHECK(tally_account_error_bound(account) == 16 * 1024 - 1);
  tally_account_flush(account);
  CHECK(tally_account_live_bytes(account) == 1000);
  CHECK(tally_account_peak_bytes(account) == 1000);
  tally_account_sub(account, 1000);
  tally_account_flush(account);
  CHECK(tally_account_peak_bytes(account) == 1000);
  tally_account_reset_peak(account);
  CHECK(tally_account_peak_bytes(account) == 0);
  CHECK(tally_account_set_threshold(account, SIZE_MAX) == TALLY_THRESHOLD_TOO_LARGE);
  CHECK(tally_account_set_threshold(account, 1) == TALLY_OK);
  CHECK(tally_account_threshold(account) == 1);
  tally_account_flush(account);
  CHECK(tally_account_error_bound(account) == 0);
  tally_account_destroy(account);
}

enum { THREADS = 8, ROUNDS = 2000, KEPT = 10 };

struct work {
  tally_account *account;
  void *kept[KEPT];
};

static void *allocate_a_lot(void *argument) {
  struct work *work = argument;
  tally_account *account = work->account;
  for (int i = 0; i < ROUNDS; i++) {
    size_t size = (size_t)(i * 37 % 3000);
    char *block = tally_malloc(account, size);
    CHECK(block != NULL);
    block = tally_realloc(account, block, size, size / 2 + 1);
    CHECK(block != NULL);
    tally_free(account, block, size / 2 + 1);
  }
  for (int i = 0; i < KEPT; i++)
    CHECK((work->kept[i] = tally_malloc(account, 123)) != NULL);
  tally_totals own;
  CHECK(tally_account_thread_totals(account, &own) == TALLY_OK);
  CHECK(own.allocations == ROUNDS + KEPT && own.live_bytes == KEPT * 123);
  return NULL;
}

static void *free_what_was_kept(void *argument) {
  struct work *work = argument;
  for (int i = 0; i < KEPT; i++)
    tally_free(work->account, work->kept[i], 123);
  tally_account_flush(work->account);
  return NULL;
}

static void run(struct work *work, void *(*body)(void *)) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, body, &work[i]) == 0);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(threads[i], NULL) == 0);
}

static void eight_threads_lose_nothing(uint32_t mode) {
  tally_account *account;
  CHECK(tally_account_create(mode, &account) == TALLY_OK);
  struct work work[THREADS];
  for (int i = 0; i < THREADS; i++)
    work[i].account = account;
  run(work, allocate_a_lot);
  expect_live(account, THREADS * KEPT * 123, THREADS * KEPT);
  size_t live = tally_account_live_bytes(account);
  size_t truth = THREADS * KEPT * 123;
  size_t off = live > truth ? live - truth : truth - live;
  CHECK(off <= tally_account_error_bound(account));
  // Other threads free them, having taken the first ones' places.
  run(work, free_what_was_kept);
  expect_live(account, 0, 0);
  CHECK(totals_of(account).allocations == THREADS * (ROUNDS + KEPT));
  CHECK(totals_of(account).reallocations == THREADS * ROUNDS);
  tally_account_destroy(account);
}

static void a_trigger_fires_once_for_each_crossing(void) {
  tally_account *account;
  tally_trigger *trigger;
  CHECK(tally_account_create(TALLY_EXACT, &account) == TALLY_OK);
  CHECK(tally_trigger_create_proportional(account, TALLY_LIVE_BYTES, 1.0, 1000,
                                          10000, &trigger) == TALLY_OK);
  CHECK(tally_trigger_limit(trigger) == 1000);
  void *block = tally_malloc(account, 999);
  CHECK(!tally_trigger_poll(trigger));
  CHECK(tally_trigger_headroom(trigger) == 1);
  void *last = tally_malloc(account, 1);
  CHECK(tally_trigger_poll(trigger));
  CHECK(!tally_trigger_poll(trigger));
  tally_trigger_collected(trigger, 1000);
  CHECK(tally_trigger_limit(trigger) == 2000);
  CHECK(tally_trigger_announce(trigger, 10) == TALLY_FITS);
  CHECK(tally_trigger_announce(trigger, 20000) == TALLY_COLLECT);
  CHECK(tally_trigger_poll(trigger));
  tally_free(account, block, 999);
  tally_free(account, last, 1);
  tally_trigger_collected(trigger, 1000);
  CHECK(!tally_trigger_poll(trigger));
  CHECK(tally_trigger_announce(trigger, 20000) == TALLY_REFUSED);
  tally_report report;
  CHECK(tally_trigger_report(trigger, &report) == TALLY_OK);
  CHECK(report.cycles == 2 && report.collecting == 2000);
  CHECK(report.bytes_allocated == 1000 && report.headroom == report.limit);
  CHECK(tally_trigger_report(trigger, NULL) == TALLY_NULL_POINTER);
  tally_trigger_destroy(trigger);

  CHECK(tally_trigger_create_every_bytes(account, 100, &trigger) == TALLY_OK);
  for (int i = 0; i < 10; i++) {
    tally_free(account, tally_malloc(account, 60), 60);
    CHECK(tally_trigger_poll(trigger) == (i % 2 == 1));
    if (i % 2 == 1)
      tally_trigger_collected(trigger, 0);
  }
  tally_trigger_destroy(trigger);

  CHECK(tally_trigger_create_increment(account, TALLY_LIVE_BLOCKS, 2, 2,
                                       &trigger) == TALLY_OK);
  tally_account_add(account, 0);
  CHECK(!tally_trigger_poll(trigger));
  tally_account_add(account, 0);
  CHECK(tally_trigger_poll(trigger));
  tally_trigger_destroy(trigger);
  CHECK(tally_trigger_create_square_root(account, TALLY_LIVE_BYTES, 1e-10, 1000,
                                         SIZE_MAX, &trigger) == TALLY_OK);
  tally_trigger_destroy(trigger);

  CHECK(tally_trigger_create_fixed(account, TALLY_LIVE_BYTES, 0, &trigger) ==
        TALLY_BAD_PARAMETER);
  CHECK(trigger == NULL);
  CHECK(tally_trigger_create_fixed(account, 9, 1, &trigger) ==
        TALLY_UNKNOWN_MEASURE);
  CHECK(tally_trigger_create_fixed(account, 0, 1, NULL) == TALLY_NULL_POINTER);
  CHECK(tally_trigger_create_fixed(NULL, 0, 1, &trigger) == TALLY_NULL_POINTER);
  CHECK(!tally_trigger_poll(NULL));
  CHECK(!tally_trigger_wait(NULL, UINT64_MAX));
  CHECK(tally_trigger_announce(NULL, 1) == TALLY_FITS);
  CHECK(tally_trigger_limit(NULL) == 0 && tally_trigger_headroom(NULL) == 0);
  CHECK(tally_trigger_report(NULL, &report) == TALLY_NULL_POINTER);
  tally_trigger_collected(NULL, 1);
  tally_trigger_destroy(NULL);
  tally_account_destroy(account);
}

static void *allocate_until_it_is_enough(void *argument) {
  for (int i = 0; i < 1000; i++)
    tally_account_add(argument, 1000);
  return NULL;
}

struct watch {
  tally_account *account;
  tally_trigger *trigger;
  size_t limit;
};

static void *wait_and_look(void *argument) {
  struct watch *watch = argument;
  CHECK(tally_trigger_wait(watch->trigger, UINT64_MAX));
  CHECK(totals_of(watch->account).live_bytes >= watch->limit);
  return NULL;
}

static void a_collector_thread_is_woken_by_the_thread_that_crosses(void) {
  tally_account *account;
  tally_trigger *trigger;
  pthread_t mutators[THREADS], collector;
  CHECK(tally_account_create(TALLY_BATCHED, &account) == TALLY_OK);
  size_t limit = THREADS * 1000 * 1000 / 2;
  CHECK(tally_trigger_create_fixed(account, TALLY_LIVE_BYTES, limit, &trigger) ==
        TALLY_OK);
  struct watch watch = {account, trigger, limit};
  CHECK(pthread_create(&collector, NULL, wait_and_look, &watch) == 0);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_create(&mutators[i], NULL, allocate_until_it_is_enough,
                         account) == 0);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(mutators[i], NULL) == 0);
  CHECK(pthread_join(collector, NULL) == 0);
  CHECK(!tally_trigger_poll(trigger));
  tally_trigger_destroy(trigger);
  tally_account_destroy(account);
}

int main(void) {
  CHECK(tally_version_number() == TALLY_VERSION);
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", TALLY_VERSION >> 16,
           TALLY_VERSION >> 8 & 255, TALLY_VERSION & 255);
  CHECK(strcmp(tally_version(), version) == 0);
  CHECK(strcmp(tally_status_message(TALLY_OK), "done") == 0);
  CHECK(strcmp(tally_status_message(12345), "unknown status") == 0);

  for (uint32_t mode = TALLY_BATCHED; mode <= TALLY_EXACT; mode++) {
    blocks_are_counted_by_the_size_asked_for(mode);
    usable_blocks_are_counted_by_the_room_they_have(mode);
    eight_threads_lose_nothing(mode);
  }
  null_accounts_and_pointers_are_refused();
  published_figures_keep_their_promises();
  a_trigger_fires_once_for_each_crossing();
  a_collector_thread_is_woken_by_the_thread_that_crosses();
  puts("all as promised");
  return 0;
}

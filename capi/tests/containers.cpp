// The header from C++: a standard allocator that charges an account, in two containers and eight
// threads.
#include "tally_alloc.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

struct destroy {
  void operator()(tally_account *account) const {
    tally_account_destroy(account);
  }
};
using account_ptr = std::unique_ptr<tally_account, destroy>;

static account_ptr make(uint32_t mode) {
  tally_account *account = nullptr;
  CHECK(tally_account_create(mode, &account) == TALLY_OK);
  return account_ptr(account);
}

template <class T> struct charged {
  using value_type = T;
  tally_account *account;

  explicit charged(tally_account *account) : account(account) {}
  template <class U>
  charged(const charged<U> &other) : account(other.account) {}

  T *allocate(std::size_t count) {
    void *block = tally_calloc(account, count, sizeof(T));
    if (block == nullptr)
      throw std::bad_alloc();
    return static_cast<T *>(block);
  }
  void deallocate(T *block, std::size_t count) noexcept {
    tally_free(account, block, count * sizeof(T));
  }
  template <class U> bool operator==(const charged<U> &other) const {
    return account == other.account;
  }
  template <class U> bool operator!=(const charged<U> &other) const {
    return account != other.account;
  }
};

static std::size_t live(const account_ptr &account) {
  tally_totals totals;
  CHECK(tally_account_totals(account.get(), &totals) == TALLY_OK);
  return totals.live_bytes;
}

using numbers = std::vector<int, charged<int>>;
using table =
    std::map<int, int, std::less<int>, charged<std::pair<const int, int>>>;

static void containers_are_charged(uint32_t mode) {
  account_ptr account = make(mode);
  {
    numbers vector{charged<int>(account.get())};
    for (int i = 0; i < 10000; i++)
      vector.push_back(i);
    CHECK(live(account) == vector.capacity() * sizeof(int));
    vector.resize(3);
    vector.shrink_to_fit();
    CHECK(live(account) == vector.capacity() * sizeof(int));
    bool refused = false;
    try {
      vector.reserve(vector.max_size());
    } catch (const std::bad_alloc &) {
      refused = true;
    }
    CHECK(refused);
    CHECK(live(account) == vector.capacity() * sizeof(int));
  }
  CHECK(live(account) == 0);
}

static void eight_threads_share_an_account(uint32_t mode) {
  account_ptr account = make(mode);
  std::vector<table> tables(
      8, table(std::less<int>(),
               charged<std::pair<const int, int>>(account.get())));
  std::vector<std::thread> threads;
  for (table &mine : tables)
    threads.emplace_back([&mine] {
      for (int i = 0; i < 2000; i++)
        mine[i % 500] = i;
    });
  for (std::thread &thread : threads)
    thread.join();
  tally_totals totals;
  CHECK(tally_account_totals(account.get(), &totals) == TALLY_OK);
  CHECK(totals.live_blocks == 8 * 500);
  tables.clear();
  CHECK(live(account) == 0);
}

int main() {
  for (uint32_t mode : {uint32_t(TALLY_BATCHED), uint32_t(TALLY_EXACT)}) {
    containers_are_charged(mode);
    eight_threads_share_an_account(mode);
  }
  std::puts("all as promised");
}

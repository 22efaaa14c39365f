// SPDX-License-Identifier: Apache-2.0
// Output of a scanner of a whole object: columns of numbers and bytes of unknown length. Python takes them over as
// arrays without a copy, and frees them by table_free.
#pragma once
#include <cstring>

#include "core/kernel.h"

// Grows by realloc, which moves pages instead of copying if the column is large.
struct Column {
  char *data = nullptr;
  int64_t bytes = 0, room = 0;

  char *extend(int64_t n) {
    if (n > room - bytes) {
      int64_t more = bytes + n + (bytes + n) / 2 + 256;
      char *moved = (char *)std::realloc(data, more);
      if (!moved) throw std::bad_alloc();
      data = moved, room = more;
    }
    char *at = data + bytes;
    bytes += n;
    return at;
  }
  template <class T>
  void push(T value) {
    memcpy(extend(sizeof(T)), &value, sizeof(T));
  }
  void append(const void *from, int64_t n) {
    if (n) memcpy(extend(n), from, n);
  }
  template <class T>
  T *as() const {
    return (T *)data;
  }
  template <class T>
  int64_t count() const {
    return bytes / (int64_t)sizeof(T);
  }
  void shorten(int64_t to) { bytes = to; }
};

constexpr int kMaxColumns = 24, kTableErrorSize = 1024;

struct Table {
  Column columns[kMaxColumns];
  char error[kTableErrorSize];
  Column &operator[](int i) { return columns[i]; }
};

EXPORT void table_free(void *column);

// Allows longer texts than `fail`, as they name objects.
[[noreturn]] void fail_scan(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Runs f(table) and catches its exceptions: returns 0, or 1 with the reason in table->error.
template <class F>
int fill_table(Table *table, F f) {
  try {
    f(*table);
    return 0;
  } catch (const std::bad_alloc &) {
    snprintf(table->error, kTableErrorSize, "out of memory");
  } catch (const std::exception &e) {
    snprintf(table->error, kTableErrorSize, "%s", e.what());
  }
  for (Column &c : table->columns) {
    std::free(c.data);
    c = Column();
  }
  return 1;
}

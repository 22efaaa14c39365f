// SPDX-License-Identifier: Apache-2.0
#include "read/lmdb.h"

#include <vector>

#include "core/native_time.h"

namespace {

constexpr uint32_t kMagic = 0xbeefc0de;
constexpr int64_t kPageHeader = 16, kNodeHeader = 8, kMetaSize = 136, kLargestPage = 65536;
constexpr uint64_t kNoPage = ~0ull;
enum PageFlags { kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8 };
enum NodeFlags { kBigData = 1, kSubDatabase = 2, kDuplicates = 4 };
// Offsets in a meta page, after the page's header. The main database is the second of two.
enum { kAtMagic = 0, kAtVersion = 4, kAtPageSize = 24, kAtMain = 72, kAtTransaction = 128 };
enum { kAtFlags = 4, kAtDepth = 6, kAtEntries = 32, kAtRoot = 40 };
constexpr int kDeepest = 32;  // as in the library

template <class T>
T get(const uint8_t *at) {
  T value;
  memcpy(&value, at, sizeof value);
  return value;
}

class Walk {
 public:
  Walk(Object &input, Table &table) : input_(input), table_(table) {}

  void run() {
    size_ = input_.length();
    uint8_t meta[kPageHeader + kMetaSize], best[kMetaSize] = {};
    if (input_.read(0, sizeof meta, (char *)meta) < (int64_t)sizeof meta || get<uint32_t>(meta + kPageHeader) != kMagic)
      fail_scan("this is no LMDB file: its first page lacks the magic number");
    page_size_ = get<uint32_t>(meta + kPageHeader + kAtPageSize);
    if (page_size_ < 512 || page_size_ > kLargestPage || page_size_ & (page_size_ - 1))
      fail_scan("the LMDB file says that its pages have %lld bytes", (long long)page_size_);
    // Of the two meta pages the one with the later transaction is valid.
    bool found = false;
    for (int i = 0; i < 2; i++) {
      if (input_.read(i * page_size_, sizeof meta, (char *)meta) < (int64_t)sizeof meta) continue;
      const uint8_t *m = meta + kPageHeader;
      if (get<uint32_t>(m + kAtMagic) != kMagic || !(get<uint16_t>(meta + 10) & kMeta)) continue;
      if (get<uint32_t>(m + kAtVersion) != 1)
        fail_scan("the LMDB file is of data version %u; version 1 can be read", get<uint32_t>(m + kAtVersion));
      if (found && get<uint64_t>(m + kAtTransaction) <= get<uint64_t>(best + kAtTransaction)) continue;
      memcpy(best, m, sizeof best);
      found = true;
    }
    if (!found) fail_scan("both meta pages of the LMDB file are damaged");
    n_pages_ = size_ / page_size_;
    seen_.resize((n_pages_ + 63) / 64);
    const uint8_t *main = best + kAtMain;
    const uint16_t flags = get<uint16_t>(main + kAtFlags);
    if (flags & 0x04) fail_scan("the LMDB database keeps several values for a key (MDB_DUPSORT), which can't be read");
    const uint64_t entries = get<uint64_t>(main + kAtEntries), root = get<uint64_t>(main + kAtRoot);
    const int depth = get<uint16_t>(main + kAtDepth);
    if (depth > kDeepest) fail_scan("the LMDB file says that its tree is %d pages deep", depth);
    if (root != kNoPage) page(root, depth);
    const uint64_t got = (uint64_t)table_[LMDB_OFFSET].count<int64_t>();
    if (got != entries)
      fail_scan("the LMDB file says that it has %llu entries, but its tree has %llu", (unsigned long long)entries,
                (unsigned long long)got);
  }

 private:
  [[noreturn]] void damaged(uint64_t number, const char *what) {
    fail_scan("page %llu of the LMDB file (byte %llu) %s", (unsigned long long)number,
              (unsigned long long)number * (unsigned long long)page_size_, what);
  }

  void page(uint64_t number, int levels) {
    if (levels < 1) damaged(number, "lies deeper than the tree says that it is");
    if (number >= (uint64_t)n_pages_) damaged(number, "is referred to, but the file ends before it");
    // A page has one parent, so a valid walk visits it once.
    uint64_t &bits = seen_[number / 64];
    const uint64_t bit = 1ull << number % 64;
    if (bits & bit) damaged(number, "is referred to twice");
    bits |= bit;
    std::vector<uint8_t> bytes(page_size_);
    if (input_.read((int64_t)number * page_size_, page_size_, (char *)bytes.data()) < page_size_)
      damaged(number, "can't be read: the file shrank");
    const uint8_t *p = bytes.data();
    const int flags = get<uint16_t>(p + 10), lower = get<uint16_t>(p + 12);
    const bool leaf = flags & kLeaf;
    if (get<uint64_t>(p) != number) damaged(number, "has another page's number");
    if ((flags & (kBranch | kLeaf | kOverflow | kMeta)) != (leaf ? kLeaf : kBranch))
      damaged(number, "is neither a branch nor a leaf");
    if (leaf != (levels == 1)) damaged(number, "is not at the depth that the tree says");
    if (lower < kPageHeader || lower > page_size_) damaged(number, "has a damaged header");
    const int n = (lower - (int)kPageHeader) / 2;
    int64_t used = lower;  // nodes must not overlap, so that a page has no more keys than bytes
    for (int i = 0; i < n; i++) {
      const int64_t at = get<uint16_t>(p + kPageHeader + 2 * i);
      if (at < lower || at + kNodeHeader > page_size_) damaged(number, "has a node outside of itself");
      const uint8_t *node = p + at;
      const uint64_t low = get<uint16_t>(node), high = get<uint16_t>(node + 2), node_flags = get<uint16_t>(node + 4);
      const int64_t key_size = get<uint16_t>(node + 6);
      if (at + kNodeHeader + key_size > page_size_) damaged(number, "has a key that goes on past its end");
      used += kNodeHeader + key_size;
      if (used > page_size_) damaged(number, "has nodes that overlap");
      if (leaf)
        value(number, at, node, (int64_t)(low | high << 16), (int)node_flags, key_size);
      else
        page(low | high << 16 | node_flags << 32, levels - 1);
    }
  }

  void value(uint64_t number, int64_t at, const uint8_t *node, int64_t length, int flags, int64_t key_size) {
    if (flags & (kSubDatabase | kDuplicates))
      damaged(number, "has an entry that is a database itself; only the values of the main one can be read");
    int64_t offset;
    if (flags & kBigData) {
      if (at + kNodeHeader + key_size + 8 > page_size_) damaged(number, "has an entry that goes on past its end");
      const uint64_t first = get<uint64_t>(node + kNodeHeader + key_size);
      if (first >= (uint64_t)n_pages_) damaged(number, "has a value that lies beyond the end of the file");
      offset = (int64_t)first * page_size_ + kPageHeader;
      if (length > size_ - offset) damaged(number, "has a value that goes on past the end of the file");
    } else {
      if (at + kNodeHeader + key_size + length > page_size_) damaged(number, "has a value that goes on past its end");
      offset = (int64_t)number * page_size_ + at + kNodeHeader + key_size;
    }
    table_[LMDB_OFFSET].push(offset);
    table_[LMDB_LENGTH].push(length);
    table_[LMDB_KEYS].append(node + kNodeHeader, key_size);
    table_[LMDB_KEY_END].push(table_[LMDB_KEYS].bytes);
  }

  Object &input_;
  Table &table_;
  int64_t size_ = 0, page_size_ = 0, n_pages_ = 0;
  std::vector<uint64_t> seen_;
};

}  // namespace

void scan_lmdb(Object &input, Table &table) {
  NativeTime time;
  Walk(input, table).run();
}

EXPORT int lmdb_values(const char *path, Table *table) {
  return fill_table(table, [&](Table &t) {
    const auto object = open_object(path, Storage::kKept);
    scan_lmdb(*object, t);
  });
}
EXPORT_LONG(lmdb_values)

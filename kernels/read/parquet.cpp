// SPDX-License-Identifier: Apache-2.0
#include "read/parquet.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/memory.h"
#include "read/decompress.h"
#include "read/parquet_header.h"

namespace {

constexpr int64_t kMostRows = 1 << 26;
constexpr int kAtOnce = 1024;  // levels and indices: a few bytes may encode any number of them

int64_t left(const uint8_t *at, const uint8_t *end) { return end - at; }

uint32_t little_endian(const uint8_t *at, int bytes) {
  uint32_t value = 0;
  memcpy(&value, at, bytes);
  return value;
}

// Numbers of `width` bits: runs of equal ones, and bit-packed groups of eight.
class Hybrid {
 public:
  Hybrid() = default;
  Hybrid(const uint8_t *at, const uint8_t *end, int width) : at_(at), end_(end), width_(width) {
    if (width > 32) fail("it has numbers of %d bits", width);
  }
  void take(uint32_t *to, int64_t n) {
    while (n > 0) {
      if (!left_) begin_run();
      const int64_t m = std::min(n, left_);
      if (is_packed_)
        for (int64_t i = 0; i < m; i++) to[i] = next();
      else
        std::fill_n(to, m, value_);
      to += m, n -= m, left_ -= m;
    }
  }

 private:
  void begin_run() {
    const uint64_t head = read_varint(at_, end_), n = head >> 1;
    if (n > (uint64_t)INT32_MAX) fail("it has a run of %llu numbers", (unsigned long long)n);
    is_packed_ = head & 1, left_ = (int64_t)n * (is_packed_ ? 8 : 1);
    bits_ = 0, n_bits_ = 0;
    if (is_packed_) return;
    const int bytes = (width_ + 7) / 8;
    if (left(at_, end_) < bytes) fail("it ends within a run");
    value_ = little_endian(at_, bytes);
    at_ += bytes;
  }
  uint32_t next() {
    for (; n_bits_ < width_; n_bits_ += 8) {
      if (at_ == end_) fail("it ends within packed numbers");
      bits_ |= (uint64_t)*at_++ << n_bits_;
    }
    const uint32_t value = (uint32_t)(bits_ & ((1ull << width_) - 1));
    bits_ >>= width_, n_bits_ -= width_;
    return value;
  }
  const uint8_t *at_ = nullptr, *end_ = nullptr;
  int width_ = 0, n_bits_ = 0;
  uint64_t bits_ = 0;
  bool is_packed_ = false;
  int64_t left_ = 0;
  uint32_t value_ = 0;
};

// Reads numbers from their differences, in blocks of miniblocks. Moves `at` past them.
std::vector<int64_t> read_deltas(const uint8_t *&at, const uint8_t *end, int64_t most) {
  const uint64_t block = read_varint(at, end), n_mini = read_varint(at, end), n = read_varint(at, end);
  if (n > (uint64_t)most) fail("it has %llu lengths of at most %lld values", (unsigned long long)n, (long long)most);
  if (block < 1 || block > 1 << 20 || n_mini < 1 || n_mini > 1 << 10 || block % n_mini || block / n_mini % 8)
    fail("it has blocks of %llu numbers in %llu parts", (unsigned long long)block, (unsigned long long)n_mini);
  const int64_t mini = (int64_t)(block / n_mini);
  std::vector<int64_t> values;
  uint64_t value = (uint64_t)unzigzag(read_varint(at, end));
  if (n) values.push_back((int64_t)value);
  while (values.size() < n) {
    const uint64_t least = (uint64_t)unzigzag(read_varint(at, end));
    if (left(at, end) < (int64_t)n_mini) fail("it ends within a block of lengths");
    const uint8_t *widths = at;
    at += n_mini;
    for (uint64_t k = 0; k < n_mini && values.size() < n; k++) {
      const int width = widths[k];
      const int64_t bytes = mini / 8 * width;
      if (width > 64 || bytes > left(at, end)) fail("it ends within a block of lengths");
      for (int64_t i = 0; i < mini && values.size() < n; i++) {
        uint64_t delta = 0;
        for (int b = 0; b < width; b++) {
          const int64_t bit = i * width + b;
          delta |= (uint64_t)(at[bit >> 3] >> (bit & 7) & 1) << b;
        }
        value += least + delta;
        values.push_back((int64_t)value);
      }
      at += bytes;
    }
  }
  return values;
}

struct Span {
  const uint8_t *data;
  int64_t size;
};

class Column {
 public:
  Column(const ParquetChunk &chunk, ParquetValues &values) : c_(chunk), v_(values) {}

  void read() {
    if (c_.n_rows > kMostRows) throw ParquetUnknown{};
    each_page([&](const ParquetPage &p, Span) { check(p); });
    v_.memory = (char *)memory_take(std::max<int64_t>(v_.bytes, 1));
    if (!v_.memory) fail("out of memory: it has %lld bytes when decompressed", (long long)v_.bytes);
    to_ = v_.memory;
    n_ = 0;
    each_page([&](const ParquetPage &p, Span body) {
      if (p.type == ParquetPage::kDictionary) read_dictionary(p, unpacked(body, p.size, true));
      if (p.type == ParquetPage::kData) read_first(p, unpacked(body, p.size, true));
      if (p.type == ParquetPage::kDataV2) read_second(p, body);
    });
  }
  int page = 0;  // the last one begun, counted from 1

 private:
  static bool is_data(const ParquetPage &p) { return p.type == ParquetPage::kData || p.type == ParquetPage::kDataV2; }

  // Iterates until all rows are found.
  template <class Use>
  void each_page(Use use) {
    const uint8_t *at = (const uint8_t *)c_.data, *const end = at + c_.size;
    int64_t n = 0;
    for (page = 1; n < c_.n_rows; page++) {
      if (at == end) fail("the column ends after %lld of %lld rows", (long long)n, (long long)c_.n_rows);
      const ParquetPage p = read_page_header(at, end);
      if (p.packed_size > left(at, end))
        fail("it has %d bytes, of which only %lld are there", p.packed_size, (long long)left(at, end));
      if (is_data(p)) {
        if (p.n_values < 0 || p.n_values > c_.n_rows - n)
          fail("it has %d values, where %lld rows are left", p.n_values, (long long)(c_.n_rows - n));
        n += p.n_values;
      }
      use(p, Span{at, p.packed_size});
      at += p.packed_size;
    }
  }

  // Adds the memory that the page needs.
  void check(const ParquetPage &p) {
    const bool is_known = p.encoding == ParquetPage::kPlain || p.encoding == ParquetPage::kPlainDictionary ||
                          (is_data(p) && p.encoding == ParquetPage::kRleDictionary) ||
                          (is_data(p) && p.encoding == ParquetPage::kDeltaLengths && !c_.width);
    if (p.type == ParquetPage::kIndex || p.type > ParquetPage::kDataV2) return;
    if (!is_known) throw ParquetUnknown{};
    if (p.type == ParquetPage::kData && c_.most_defined && p.definition_encoding != ParquetPage::kRle)
      throw ParquetUnknown{};
    const int64_t levels = p.type == ParquetPage::kDataV2 ? (int64_t)p.definition_bytes + p.repetition_bytes : 0;
    if (p.definition_bytes < 0 || p.repetition_bytes < 0 || levels > p.packed_size || levels > p.size)
      fail("it has levels of %lld bytes, and %d in all", (long long)levels, p.packed_size);
    if (c_.codec == ParquetChunk::kNone) return;
    const int64_t packed = p.packed_size - levels, size = p.size - levels;
    const bool is_packed = p.type != ParquetPage::kDataV2 || p.is_packed;
    const int64_t most = !is_packed                          ? packed
                         : c_.codec == ParquetChunk::kSnappy ? most_of_snappy(packed)
                                                             : most_of_zstd(packed);
    if (size > most)
      fail("it says that it has %lld bytes when decompressed, which %lld can't become", (long long)size,
           (long long)packed);
    v_.bytes += size;
  }

  // Decompresses to `to_`; uncompressed columns stay in the chunk.
  Span unpacked(Span body, int64_t size, bool is_packed) {
    if (c_.codec == ParquetChunk::kNone) return body;
    if (!is_packed || !size)
      memcpy(to_, body.data, size);
    else
      (c_.codec == ParquetChunk::kSnappy ? unpack_snappy : unpack_zstd)((const char *)body.data, body.size, to_, size);
    const Span found{(const uint8_t *)to_, size};
    to_ += size;
    return found;
  }

  void read_dictionary(const ParquetPage &p, Span body) {
    if (has_dictionary_) fail("it is a second dictionary");
    has_dictionary_ = true;
    const uint8_t *at = body.data, *const end = at + body.size;
    for (int32_t i = 0; i < p.n_values; i++) dictionary_.push_back(plain(at, end));
  }
  void read_first(const ParquetPage &p, Span body) {
    const uint8_t *at = body.data, *const end = at + body.size;
    if (!c_.most_defined) return read_values(p, {}, at, end);
    const int64_t bytes = left(at, end) < 4 ? -1 : little_endian(at, 4);
    if (bytes < 0 || bytes > left(at, end) - 4) fail("it has levels of %lld bytes", (long long)bytes);
    at += 4;
    read_values(p, levels(at, at + bytes), at + bytes, end);
  }
  void read_second(const ParquetPage &p, Span body) {
    const uint8_t *at = body.data + p.repetition_bytes, *const rest = at + p.definition_bytes;
    const int64_t before = rest - body.data;
    const Span found = unpacked({rest, body.size - before}, p.size - before, p.is_packed);
    read_values(p, levels(at, rest), found.data, found.data + found.size);
  }
  Hybrid levels(const uint8_t *at, const uint8_t *end) {
    return c_.most_defined ? Hybrid(at, end, 32 - __builtin_clz(c_.most_defined)) : Hybrid();
  }

  void read_values(const ParquetPage &p, Hybrid levels, const uint8_t *at, const uint8_t *end) {
    if (p.encoding == ParquetPage::kPlain) return give(p, levels, [&] { return plain(at, end); });
    if (p.encoding == ParquetPage::kDeltaLengths) {
      const std::vector<int64_t> lengths = read_deltas(at, end, p.n_values);
      size_t i = 0;
      return give(p, levels, [&] {
        if (i == lengths.size()) fail("it has only %lld values", (long long)i);
        return take(at, end, lengths[i++]);
      });
    }
    Hybrid indices = at == end ? Hybrid() : Hybrid(at + 1, end, *at);
    give(p, levels, [&] {
      uint32_t i;
      indices.take(&i, 1);
      if (i >= dictionary_.size()) fail("it has the index %u of a dictionary of %zu", i, dictionary_.size());
      return dictionary_[i];
    });
  }
  // Sets the rows of a page; next() returns the next value that is not null.
  template <class Next>
  void give(const ParquetPage &p, Hybrid &levels, Next next) {
    uint32_t defined[kAtOnce];
    for (int64_t i = 0; i < p.n_values; i += kAtOnce) {
      const int64_t n = std::min<int64_t>(kAtOnce, p.n_values - i);
      if (c_.most_defined) levels.take(defined, n);
      for (int64_t k = 0; k < n; k++, n_++) {
        const bool has_value = !c_.most_defined || defined[k] == (uint32_t)c_.most_defined;
        const Span value = has_value ? next() : Span{nullptr, -1};
        v_.address[n_] = (uint64_t)(uintptr_t)value.data;
        v_.length[n_] = value.size;
      }
    }
  }
  Span plain(const uint8_t *&at, const uint8_t *end) {
    if (c_.width) return take(at, end, c_.width);
    if (left(at, end) < 4) fail("it ends within its values");
    const int64_t size = little_endian(at, 4);
    at += 4;
    return take(at, end, size);
  }
  static Span take(const uint8_t *&at, const uint8_t *end, int64_t size) {
    if (size < 0 || size > left(at, end))
      fail("a value has %lld bytes, of which %lld are there", (long long)size, (long long)left(at, end));
    at += size;
    return {at - size, size};
  }

  const ParquetChunk &c_;
  ParquetValues &v_;
  char *to_ = nullptr;
  int64_t n_ = 0;
  bool has_dictionary_ = false;
  std::vector<Span> dictionary_;
};

}  // namespace

void read_parquet_column(const ParquetChunk &chunk, ParquetValues &values) {
  values.memory = nullptr, values.bytes = 0;
  Column column(chunk, values);
  try {
    column.read();
  } catch (const std::exception &e) {
    const std::string reason = e.what();
    fail("page %d: %s", column.page, reason.c_str());
  }
}

// Returns 0; 1 with the reason in `error`; 2 if the encoding of a page is not supported.
EXPORT int parquet_column(const ParquetChunk *chunk, ParquetValues *values, char *error) {
  try {
    read_parquet_column(*chunk, *values);
    return 0;
  } catch (const ParquetUnknown &) {
    return 2;
  } catch (const std::exception &e) {
    snprintf(error, kErrorSize, "%s", e.what());
    return 1;
  }
}
EXPORT_LONG(parquet_column)

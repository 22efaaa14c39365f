// SPDX-License-Identifier: Apache-2.0
#include "read/npy_header.h"

#include <cstring>
#include <string_view>

#include "core/kernel.h"

namespace {

constexpr int64_t kLongestHeader = 1 << 20;

// Parses a Python dictionary of a text, a boolean and a tuple of integers.
class Dictionary {
 public:
  Dictionary(const char *text, int64_t n) : at_(text), end_(text + n), text_(text, (size_t)n) {}

  NpyHeader read() {
    NpyHeader h{};
    int has = 0;
    expect('{');
    while (peek() != '}') {
      std::string_view key = text();
      expect(':');
      const int which = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
      if (!which || (has & which)) damaged();
      has |= which;
      if (which == 1)
        h.dtype = dtype(text());
      else if (which == 2)
        h.columns_first = boolean();
      else
        tuple(h);
      if (peek() == ',')
        at_++;
      else if (peek() != '}')
        damaged();
    }
    at_++;
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) at_++;
    if (has != 7 || at_ != end_) damaged();
    h.bytes = item_size(h.dtype);
    for (int d = 0; d < h.ndim; d++)
      if (!h.shape[d]) h.bytes = 0;
    for (int d = 0; d < h.ndim && h.bytes; d++)
      if (__builtin_mul_overflow(h.bytes, h.shape[d], &h.bytes))
        fail("the header says that the array has more than 2^63 bytes");
    return h;
  }

 private:
  [[noreturn]] void damaged() {
    const int n = text_.size() < 80 ? (int)text_.size() : 80;
    fail("the header of a .npy file can't be read: %.*s", n, text_.data());
  }
  char peek() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) at_++;
    if (at_ == end_) damaged();
    return *at_;
  }
  void expect(char c) {
    if (peek() != c) damaged();
    at_++;
  }
  std::string_view text() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') damaged();
    const char *begin = ++at_;
    while (at_ < end_ && *at_ != quote && *at_ != '\\') at_++;
    if (at_ == end_ || *at_ != quote) damaged();
    return {begin, (size_t)(at_++ - begin)};
  }
  bool boolean() {
    peek();
    for (std::string_view word : {"True", "False"})
      if ((size_t)(end_ - at_) >= word.size() && !memcmp(at_, word.data(), word.size())) {
        at_ += word.size();
        return word[0] == 'T';
      }
    damaged();
  }
  void tuple(NpyHeader &h) {
    expect('(');
    bool comma = true;
    while (peek() != ')') {
      if (!comma) damaged();
      if (h.ndim == kMaxDims) fail("the array has more than %d dimensions", kMaxDims);
      const char *begin = at_;
      int64_t value = 0;
      for (; at_ < end_ && *at_ >= '0' && *at_ <= '9' && at_ - begin < 19; at_++)
        if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, (int64_t)(*at_ - '0'), &value))
          damaged();
      if (at_ == begin) damaged();
      if (at_ < end_ && *at_ == 'L') at_++;  // Python 2
      h.shape[h.ndim++] = value;
      comma = peek() == ',';
      if (comma) at_++;
    }
    if (h.ndim == 1 && !comma) damaged();  // (3) is a number
    at_++;
  }
  int dtype(std::string_view name) {
    const std::string_view given = name;
    if (name.size() == 3) {
      const bool wide = name[2] != '1';
      if (name[0] == '>' && wide)
        fail("an array of %.*s is in the other byte order; save it in this machine's", (int)given.size(), given.data());
      if (name[0] == '<' || name[0] == '|' || name[0] == '=' || name[0] == '>') name.remove_prefix(1);
    }
    struct Name {
      const char *name;
      int dtype;
    };
    static constexpr Name names[] = {{"u1", UINT8},   {"u2", UINT16}, {"u4", UINT32},  {"u8", UINT64},
                                     {"i1", INT8},    {"i2", INT16},  {"i4", INT32},   {"i8", INT64},
                                     {"f2", FLOAT16}, {"f4", FLOAT},  {"f8", FLOAT64}, {"b1", BOOL}};
    for (const Name &n : names)
      if (name == n.name) return n.dtype;
    fail("arrays of the type '%.*s' are not supported; accepted are numbers and booleans",
         (int)(given.size() < 40 ? given.size() : 40), given.data());
  }

  const char *at_, *end_;
  const std::string_view text_;
};

}  // namespace

int64_t npy_header_size(const char *file, int64_t n, int64_t &text_begin) {
  const uint8_t *b = (const uint8_t *)file;
  if (n < 10 || memcmp(file, "\x93NUMPY", 6)) fail("this is no .npy file: it does not begin with \\x93NUMPY");
  if (b[6] < 1 || b[6] > 3) fail("a .npy file of version %d.%d; accepted are 1.0, 2.0 and 3.0", b[6], b[7]);
  if (b[6] > 1 && n < 12) fail("the .npy file ends within its header");
  text_begin = b[6] > 1 ? 12 : 10;
  int64_t size = b[8] | b[9] << 8;
  if (b[6] > 1) size |= (int64_t)b[10] << 16 | (int64_t)b[11] << 24;
  if (size > kLongestHeader)
    fail("the header of a .npy file has %lld bytes, at most %lld are accepted", (long long)size,
         (long long)kLongestHeader);
  return text_begin + size;
}

NpyHeader npy_header(const char *text, int64_t n) { return Dictionary(text, n).read(); }

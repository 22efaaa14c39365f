// SPDX-License-Identifier: Apache-2.0
// A streaming JSON parser: the caller requests the next value; nothing is kept.
#pragma once
#include <string>
#include <vector>

#include "read/storage.h"
#include "read/table.h"

class Json {
 public:
  explicit Json(Object &input);

  // The next character that is not white space, not consumed; 0 at the end.
  char peek() {
    while (true) {
      while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) at_++;
      if (at_ < end_) return *at_;
      if (!refill()) return 0;
    }
  }
  // Moves to the next value of an array; `first` marks the first call. Returns false at the end of the array.
  bool next_value(bool &first);
  // Moves to the next key of an object, and returns it.
  bool next_key(bool &first, std::string &key);
  void open(char bracket, const char *what);
  void string(std::string &out);
  int64_t integer(const char *what, int64_t least, int64_t most);
  double number();
  // Reads the numbers of an array whose bracket was consumed; returns how many there are.
  int64_t numbers(Column &floats);
  void skip();
  int64_t offset() const { return begins_ + (at_ - buffer_.data()); }
  [[noreturn]] void fail_here(const char *what);

  std::string place;  // named in errors, besides the byte

 private:
  static constexpr int64_t kChunk = 1 << 18, kLongestNumber = 512;
  static constexpr int kDeepest = 500;

  bool refill();
  // Makes n bytes available, unless the object ends before.
  void need(int64_t n) {
    if (end_ - at_ < n) refill();
  }
  void skip_string();

  Object &input_;
  const int64_t chunk_;  // smaller for short objects
  std::vector<char> buffer_;
  const char *at_, *end_;  // *end_ is a zero
  int64_t begins_ = 0;     // offset of the buffer's first byte
  bool at_end_ = false;
};

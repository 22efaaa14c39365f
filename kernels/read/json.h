// SPDX-License-Identifier: Apache-2.0
// Reads JSON from its beginning to its end, without keeping it: the caller asks for what comes next.
#pragma once
#include <string>
#include <vector>

#include "read/storage.h"
#include "read/table.h"

class Json {
 public:
  explicit Json(Object &input);

  // The next character that is no white space, not consumed; 0 at the end.
  char peek() {
    while (true) {
      while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) at_++;
      if (at_ < end_) return *at_;
      if (!refill()) return 0;
    }
  }
  // Goes to the next value of an array: `first` tells the first call from the others. False: it ends here.
  bool next_value(bool &first);
  // Goes to the next key of an object, and gives it.
  bool next_key(bool &first, std::string &key);
  void open(char bracket, const char *what);
  void string(std::string &out);
  int64_t integer(const char *what, int64_t least, int64_t most);
  double number();
  // The numbers of an array, of which the bracket was consumed, and how many there are.
  int64_t numbers(Column &floats);
  void skip();
  int64_t offset() const { return begins_ + (at_ - buffer_.data()); }
  [[noreturn]] void fail_here(const char *what);

  std::string place;  // what errors name, besides the byte

 private:
  static constexpr int64_t kChunk = 1 << 18, kLongestNumber = 512;
  static constexpr int kDeepest = 500;

  bool refill();
  // So many bytes lie ahead, unless the object ends before.
  void need(int64_t n) {
    if (end_ - at_ < n) refill();
  }
  void skip_string();

  Object &input_;
  const int64_t chunk_;  // of short objects less is read at once
  std::vector<char> buffer_;
  const char *at_, *end_;  // *end_ is a zero
  int64_t begins_ = 0;     // offset of the buffer's first byte
  bool at_end_ = false;
};

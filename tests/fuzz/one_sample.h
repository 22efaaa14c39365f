// SPDX-License-Identifier: Apache-2.0
// Lets a parser of read/parser.h loose on bytes in memory of exactly their size, and reads all of what it says.
#pragma once
#include <memory>
#include <vector>

#include "damage.h"
#include "read/parser.h"
#include "read/storage.h"

// Bytes in memory of exactly their size.
class Memory : public Object {
 public:
  explicit Memory(const File &f) : size_((int64_t)f.size()), data_(new char[f.size()]) {
    if (size_) memcpy(data_.get(), f.data(), f.size());
  }
  int64_t length() override { return size_; }
  int64_t read(int64_t offset, int64_t n, char *to) override {
    if (offset < 0 || n < 0) abort();
    if (offset >= size_) return 0;
    n = std::min(n, size_ - offset);
    if (n) memcpy(to, data_.get() + offset, n);
    return n;
  }
  const char *data() const { return data_.get(); }

 private:
  int64_t size_;
  std::unique_ptr<char[]> data_;
};

// The only sample of a batch. What it takes is of exactly its size, and what it says of its outputs is read.
class OneSample : public Sample {
 public:
  OneSample(Memory &object, const std::vector<Part> &parts, Tensor *out, Scratch &s, int64_t most = kMost)
      : Sample(0, 0, parts.data(), (int)parts.size(), out, 1, s), object_(object), most_(most) {}
  void *take(int64_t bytes) override {
    if (bytes < 0) abort();
    if (bytes > most_) throw std::bad_alloc();
    taken_.emplace_back(new char[bytes]);
    memset(taken_.back().get(), 0x5c, bytes);
    return taken_.back().get();
  }
  int64_t object_length(int) override { return object_.length(); }
  void read(int, int64_t offset, int64_t length, void *to) override {
    if (object_.read(offset, length, (char *)to) < length) fail("the object ends before");
  }
  bool is_at_hand(int) override { return is_near; }
  bool is_near = false;
  void leave_rest(int, const void *, int64_t n) override { begun = n; }
  int64_t begun = -1;  // bytes of the object that were read; -1: all that is given out
  static constexpr int64_t kMost = 1 << 28;

 private:
  Memory &object_;
  const int64_t most_;
  std::vector<std::unique_ptr<char[]>> taken_;
};

struct Span {
  int64_t begin, size;
};

inline void read_all(const Tensor &t) {
  if (t.ndim < 0 || t.ndim > kMaxDims) abort();
  const int64_t n = t.volume() * item_size(t.dtype);
  if (n < 0 || n > OneSample::kMost) abort();
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += t.as<uint8_t>()[i];
  static volatile uint64_t kept;
  kept = sum;
}

// Whether it parsed. `spans` says where in the file the parts of the sample lie; `fixed` are outputs that the reader
// has described already.
inline bool parse(Parser parser, const void *args, const File &f, const std::vector<Span> &spans, int n_out,
                  const std::vector<Tensor> &fixed = {}) {
  Memory memory(f);
  std::vector<std::unique_ptr<char[]>> copies;
  std::vector<Part> parts;
  for (const Span &span : spans) {
    copies.emplace_back(new char[span.size]);
    memcpy(copies.back().get(), memory.data() + span.begin, span.size);
    parts.push_back({copies.back().get(), span.size});
  }
  std::vector<Tensor> out(n_out);
  std::copy(fixed.begin(), fixed.end(), out.begin());
  static Scratch scratch;
  OneSample sample(memory, parts, out.data(), scratch);
  char error[kErrorSize];
  if (parser(&sample, args, error)) return false;
  for (const Tensor &t : out)
    if (t.data) read_all(t);  // else it stays in the file
  return true;
}

// One part, which is the beginning of the file.
inline bool parse(Parser parser, const void *args, const File &f, int64_t part_size, int n_out,
                  const std::vector<Tensor> &fixed = {}) {
  return parse(parser, args, f, std::vector<Span>{{0, part_size}}, n_out, fixed);
}

// SPDX-License-Identifier: Apache-2.0
// Reads a file in small pieces, for containers with headers all over the file.
#pragma once
#include <algorithm>

#include "video/index.h"

class Pieces {
 public:
  explicit Pieces(const Source &file, int64_t at_once = 4096) : file_(file), at_once_(at_once) {}

  int64_t size() const { return file_.size; }
  // Up to `n` bytes from `place` on, fewer at the end of the file; valid until the next call.
  Bytes at(int64_t place, int64_t n) {
    n = std::clamp<int64_t>(n, 0, std::max<int64_t>(0, file_.size - place));
    if (n && (place < begin_ || place + n > begin_ + (int64_t)piece_.size())) {
      piece_.resize((size_t)std::min(std::max(n, at_once_), file_.size - place));
      begin_ = place;
      file_.read(place, (int64_t)piece_.size(), piece_.data());
    }
    return {n ? piece_.data() + (place - begin_) : piece_.data(), n};
  }
  // The available bytes of a part of the file.
  std::vector<uint8_t> all(int64_t place, int64_t n) {
    std::vector<uint8_t> bytes((size_t)std::clamp<int64_t>(n, 0, std::max<int64_t>(0, file_.size - place)));
    if (!bytes.empty()) file_.read(place, (int64_t)bytes.size(), bytes.data());
    return bytes;
  }

 private:
  const Source &file_;
  const int64_t at_once_;
  std::vector<uint8_t> piece_;
  int64_t begin_ = 0;
};

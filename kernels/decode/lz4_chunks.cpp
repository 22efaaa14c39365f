// SPDX-License-Identifier: Apache-2.0
#include "decode/lz4_chunks.h"

#include <algorithm>
#include <cstring>

#include "core/kernel.h"

namespace {

constexpr int64_t kStep = 16;  // bytes copied at once, where bytes after the target may be overwritten

struct Input {
  const uint8_t *at, *end;
  int64_t left() const { return end - at; }
  int byte() { return *at++; }
  bool extend(int64_t &n) {
    while (at < end) {
      const int more = *at++;
      n += more;
      if (more != 255) return true;
    }
    return false;
  }
};

struct Output {
  uint8_t *const begin, *at, *const end;
  int64_t room() const { return end - at; }
  int64_t made() const { return at - begin; }
  void literals(Input &in, int64_t n) {
    if (n <= kStep && in.left() >= kStep && room() >= kStep)
      memcpy(at, in.at, kStep);
    else if (n > 0)
      memcpy(at, in.at, n);
    at += n, in.at += n;
  }
  void match(int64_t offset, int64_t n) {
    const uint8_t *const from = at - offset;
    if (offset >= kStep && room() >= n + kStep) {
      for (int64_t i = 0; i < n; i += kStep) memcpy(at + i, from + i, kStep);
      at += n;
      return;
    }
    // The output repeats from `from` on, so each copy can be twice as long.
    for (uint8_t *const last = at + n; at < last;) {
      const int64_t some = std::min<int64_t>(at - from, last - at);
      memcpy(at, from, some);
      at += some;
    }
  }
};

// Counts the decompressed bytes of a block.
struct Counted {
  int64_t n = 0;
  int64_t room() const { return INT64_MAX; }
  int64_t made() const { return n; }
  void literals(Input &in, int64_t more) { n += more, in.at += more; }
  void match(int64_t, int64_t more) { n += more; }
};

// A hint about data that is no block, or "".
const char *mistake(const uint8_t *data, int64_t size, int64_t room) {
  if (size < 4) return "";
  const uint32_t begin = data[0] | data[1] << 8 | data[2] << 16 | (uint32_t)data[3] << 24;
  if (begin == 0x184D2204) return "; it is a frame of LZ4: take out the blocks, or use lz4.block instead of lz4.frame";
  if (begin == 0xFD2FB528) return "; it was compressed by Zstandard; supported is LZ4";
  if ((begin & 0xFFFF) == 0x8B1F) return "; it was compressed by gzip; supported is LZ4";
  if (data[0] == 0x78 && (data[0] << 8 | data[1]) % 31 == 0) return "; it was compressed by zlib; supported is LZ4";
  if ((int64_t)begin == room) return "; it begins with its size: leave these 4 bytes out (store_size=False)";
  return "";
}

[[noreturn]] void complain(Lz4Fault fault, const Lz4ChunksArgs &a, int64_t chunk, const uint8_t *data, const Input &in,
                           int64_t made, int64_t room) {
  const int64_t size = a.sizes[chunk];
  char where[96] = "";
  if (a.chunks > 1)
    snprintf(where, sizeof where, "chunk %lld (%lld bytes from %lld on): ", (long long)chunk, (long long)size,
             (long long)a.offsets[chunk]);
  const char *hint = mistake(data, size, room);
  if (fault == LZ4_ROOM) {
    Input again{data, data + size};
    Counted all;
    if (lz4_decode(again, all) == LZ4_FINE)
      fail("%sthe data becomes %lld bytes, the output has %lld (`shape`, `dtype`)%s", where, (long long)all.n,
           (long long)room, hint);
  }
  const char *what = fault == LZ4_CUT    ? "it ends within a sequence"
                     : fault == LZ4_ROOM ? "it makes more than the output has room for"
                                         : "a match begins before the output";
  fail("%sthe data is no block of LZ4, or damaged: %s, at byte %lld of %lld (%lld of %lld bytes made)%s", where, what,
       (long long)(in.at - data), (long long)size, (long long)made, (long long)room, hint);
}

void run(const Tensor *out, const Tensor *in, const Lz4ChunksArgs &a, Scratch &) {
  if (a.chunks == 0) return;
  const int64_t each = out->volume() * item_size(out->dtype) / a.chunks;
  for (int64_t i = 0; i < a.chunks; i++) {
    const uint8_t *const data = in->as<uint8_t>() + a.offsets[i];
    uint8_t *const to = out->as<uint8_t>() + i * each;
    Input from{data, data + a.sizes[i]};
    Output made{to, to, to + each};
    const Lz4Fault fault = lz4_decode(from, made);
    if (fault != LZ4_FINE) complain(fault, a, i, data, from, made.made(), each);
    if (made.room()) memset(made.at, 0, made.room());
  }
}

}  // namespace

EXPORT_KERNEL(lz4_chunks, Lz4ChunksArgs, run)

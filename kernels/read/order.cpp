// SPDX-License-Identifier: Apache-2.0
// The order of samples as a function of (key, epoch, position).
#include <cmath>
#include <vector>

#include "core/kernel.h"
#include "core/native_time.h"
#include "core/philox.h"

namespace {

// Few pairs mix slowly: 8 rounds leave permutations of 6 measurably uneven, 16 do not.
constexpr uint64_t kSmall = 4096;
constexpr int kRounds = 10, kRoundsIfSmall = 24;
// In the counter's last word; separates these random streams. Operators' random numbers use other keys.
enum Use : uint32_t { kPermute, kBuffer };

// A permutation of 0..n-1 without a table: a generalised Feistel network on pairs (l, r) with l < a and r < b, a * b >=
// n, whose halves are alternately shifted by a random function of the other; results out of range are permuted again
// until they are in range. Black, Rogaway: Ciphers with Arbitrary Finite Domains (CT-RSA 2002), with Philox as round
// function.
struct Permutation {
  Philox philox;
  uint32_t epoch;
  uint64_t n, a, b;

  Permutation(uint64_t key, uint32_t e, uint64_t size)
      : philox{{(uint32_t)key, (uint32_t)(key >> 32)}}, epoch(e), n(size) {
    a = (uint64_t)std::sqrt((double)n);
    while (a * a < n) a++;
    b = (n + a - 1) / a;
  }
  uint64_t shift(uint64_t other, int round, uint64_t m) const {
    uint32_t c[4] = {(uint32_t)other, (uint32_t)(other >> 32), epoch, kPermute << 16 | (uint32_t)round};
    philox.block(c);
    return ((uint64_t)c[0] << 32 | c[1]) % m;
  }
  uint64_t operator()(uint64_t x) const {
    const int rounds = n <= kSmall ? kRoundsIfSmall : kRounds;
    do {
      uint64_t l = x / b, r = x % b;
      for (int round = 0; round < rounds; round += 2) {
        l = (l + shift(r, round, a)) % a;
        r = (r + shift(l, round + 1, b)) % b;
      }
      x = l * b + r;
    } while (x >= n);
    return x;
  }
};

}  // namespace

// out[i] = the element at `positions[i]` of a random permutation of 0..n-1. Terminates, as every bijection has finite
// cycles.
EXPORT void permute(uint64_t key, uint32_t epoch, int64_t n, const int64_t *positions, int64_t count, int64_t *out) {
  Permutation p(key, epoch, (uint64_t)n);
  for (int64_t i = 0; i < count; i++) out[i] = (int64_t)p((uint64_t)positions[i]);
}
EXPORT_SHORT(permute)

// The order in which 0..n-1 leave a shuffle buffer of `fill` places: each time a random one leaves and the next enters;
// at the end the buffer drains. The buffer is the window of `out` that begins at i. `shard` makes the random numbers of
// shards differ.
EXPORT void buffer_shuffle(uint64_t key, uint32_t epoch, uint64_t shard, int64_t n, int64_t fill, int64_t *out) {
  NativeTime time;
  Philox p{{(uint32_t)key, (uint32_t)(key >> 32)}};
  for (int64_t i = 0; i < n; i++) out[i] = i;
  uint32_t words[4];
  for (int64_t i = 0; i < n; i++) {
    if (i % 4 == 0) {
      words[0] = (uint32_t)(i / 4);
      words[1] = (uint32_t)shard;
      words[2] = epoch;
      words[3] = kBuffer << 16;
      p.block(words);
    }
    int64_t have = fill < n - i ? fill : n - i;
    int64_t j = i + (int64_t)((uint64_t)words[i % 4] * (uint64_t)have >> 32);
    int64_t leaves = out[j];
    out[j] = out[i];
    out[i] = leaves;
  }
}
EXPORT_LONG(buffer_shuffle)

// The picks of several consecutive spans, each given by: epoch, part of the data set, the part's begin and length, and
// the wanted range of offsets in it. `shuffled` is the data set in the order of entering the buffer. Fills 5 columns of
// `count` each: offset, epoch, sample, epoch, sample.
EXPORT void shuffled_picks(uint64_t key, int64_t fill, const int64_t *shuffled, const int64_t *spans, int64_t n,
                           int64_t *columns, int64_t count) {
  NativeTime time;
  std::vector<int64_t> order;
  for (int64_t s = 0, at = 0; s < n; s++, spans += 6) {
    const int64_t epoch = spans[0], part = spans[1], begin = spans[2], length = spans[3], first = spans[4],
                  end = spans[5];
    order.resize(length);
    buffer_shuffle(key, (uint32_t)epoch, (uint64_t)part, length, fill, order.data());
    for (int64_t offset = first; offset < end; offset++, at++) {
      const int64_t sample = shuffled[begin + order[offset]];
      const int64_t row[] = {offset, epoch, sample, epoch, sample};
      for (int c = 0; c < 5; c++) columns[c * count + at] = row[c];
    }
  }
}
EXPORT_LONG(shuffled_picks)

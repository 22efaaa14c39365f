// SPDX-License-Identifier: Apache-2.0
#include "noise/shot.h"

#include <cmath>
#include <cstring>

#include "core/kernel.h"
#include "random/lanes.h"

namespace {

template <class T>
void count_each(T *out, const T *in, int64_t n, const DistributionArgs &r, double factor) {
  for (int64_t begin = 0; begin < n; begin += kLaneWords) {
    uint32_t w[kLaneWords];
    lane_words(r, (uint32_t)(begin / 4), w);
    for (int i = 0; i < kLaneWords && begin + i < n; i++)
      out[begin + i] = counted(in[begin + i], factor, w[i], r, (uint32_t)(begin + i));
  }
}

// Tables for inversion, for the mean of each value of a byte: the largest word that gives 0, 1, 2, ... The highest 8
// bits of a word select where the search begins.
template <class T>
class Inversions {
 public:
  Inversions(double factor, Scratch &scratch) : factor_(factor) {
    last_ = scratch.array<uint32_t>(256 * kNumbers, 0);
    begin_ = scratch.array<uint8_t>(256 * 256, 1);
    std::memset(known_, 0, sizeof known_);
    for (int k = 0; k < kNumbers; k++) results_[k] = saturate<T>(k * factor);
  }
  // Whether x is handled by inversion.
  bool has(T x) {
    uint8_t &known = known_[(uint8_t)x];
    if (!known) {
      const double mean = (double)x / factor_;
      known = mean > 0 && mean <= kInversion ? 1 : 2;
      if (known == 1) prepare((uint8_t)x, mean);
    }
    return known == 1;
  }
  T at(T x, uint32_t word) const {
    const uint32_t *last = last_ + (uint8_t)x * kNumbers;
    int k = begin_[(uint8_t)x * 256 + (word >> 24)];
    while (word > last[k]) k++;
    return results_[k];
  }

 private:
  static constexpr int kNumbers = kMostInversion + 1;
  // unit_of(word) < sum is the same as word < ceil(2^32 * sum).
  void prepare(int value, double mean) {
    uint32_t *last = last_ + value * kNumbers;
    uint8_t *begin = begin_ + value * 256;
    uint32_t next = 0;
    for (PoissonSum s(mean);; s.next()) {
      const double words = std::ceil(s.sum * 4294967296.0);
      const bool all = words >= 4294967296.0 || s.k == kMostInversion;
      last[s.k] = all ? 0xFFFFFFFFu : (uint32_t)(words - 1);
      for (; next < 256 && next << 24 <= last[s.k]; next++) begin[next] = (uint8_t)s.k;
      if (all) break;
    }
  }
  double factor_;
  uint32_t *last_;
  uint8_t *begin_;
  uint8_t known_[256];
  T results_[kNumbers];
};

template <class T>
void count_bytes(T *out, const T *in, int64_t n, const DistributionArgs &r, double factor, Scratch &scratch) {
  Inversions<T> inversions(factor, scratch);
  for (int64_t begin = 0; begin < n; begin += kLaneWords) {
    uint32_t w[kLaneWords];
    lane_words(r, (uint32_t)(begin / 4), w);
    for (int i = 0; i < kLaneWords && begin + i < n; i++) {
      const T x = in[begin + i];
      out[begin + i] = inversions.has(x) ? inversions.at(x, w[i]) : counted(x, factor, w[i], r, (uint32_t)(begin + i));
    }
  }
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const ShotArgs &a, Scratch &scratch) {
  const DistributionArgs r = noise_draws(a);
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float>(in->dtype, [&](auto t) {
    typedef decltype(t) T;
    if constexpr (sizeof(T) == 1)
      if (a.factor > 0 && in->volume() >= 4096)
        return count_bytes(out->as<T>(), in->as<T>(), in->volume(), r, a.factor, scratch);
    count_each(out->as<T>(), in->as<T>(), in->volume(), r, a.factor);
  });
}

EXPORT_KERNEL(shot, ShotArgs, run)

// SPDX-License-Identifier: Apache-2.0
#include "audio/sinc_filter.h"

#include <algorithm>
#include <cmath>

#include "audio/lanes.h"

constexpr int64_t kBlock = 256;  // positions are accumulated in float within blocks of this many outputs, as in DALI
constexpr int kSide = 4;         // blocks at once, as each sum waits for the one before it

SincFilter::SincFilter(int lobes, double bandwidth) : lobes_(lobes), bandwidth_(bandwidth) {
  const bool is_plain = bandwidth >= 1;
  phases_ = is_plain ? 32 : 256;
  reach_ = is_plain ? lobes : (int64_t)std::ceil(lobes / bandwidth);
  taps_ = (2 * reach_ + kLanes - 1) / kLanes * kLanes;
  const double width = is_plain ? lobes + 1 / 64.0 : lobes;  // the window ends half a step of DALI's table further out
  auto weight = [&](int64_t step) {                          // of a tap `step` phases away
    const double x = (double)step / phases_ * (is_plain ? 1 : bandwidth);
    if (std::abs(x) > lobes + 1e-9) return 0.0;
    const double sinc = step ? std::sin(M_PI * x) / (M_PI * x) : 1;
    return sinc * 0.5 * (1 + std::cos(M_PI * x / width)) * (is_plain ? 1 : bandwidth);
  };
  weights_.assign(phases_ * 2 * taps_, 0);
  for (int64_t phase = 0; phase < phases_; phase++)
    for (int64_t k = 0; k < 2 * reach_; k++) {
      const int64_t step = phase + (k - reach_) * phases_;
      float *at = &weights_[phase * 2 * taps_ + k];
      at[0] = (float)weight(step), at[taps_] = (float)weight(step + 1) - at[0];
    }
}

// For each position: the filter's first element, the phase of its weights, and the distance to the next phase.
CLONES static void split_places(int32_t *__restrict first, int32_t *__restrict phase, float *__restrict rest,
                                const float *__restrict place, int64_t n, int32_t reach, int32_t phases) {
  for (int64_t i = 0; i < n; i++) {
    const int32_t whole = (int32_t)place[i], next = whole + ((float)whole < place[i]);  // positions are not negative
    const float f = ((float)next - place[i]) * (float)phases;
    const int32_t p = (int32_t)f < phases - 1 ? (int32_t)f : phases - 1;
    phase[i] = p, rest[i] = f - (float)p, first[i] = next - reach;
  }
}

// The sums of eight vectors, one per lane.
ALWAYS_INLINE static Lanes sums_of(const Lanes (&x)[kLanes]) {
  typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
  Lanes pairs[4], fours[2];
  for (int i = 0; i < 4; i++)
    pairs[i] = __builtin_shuffle(x[2 * i], x[2 * i + 1], Ints{0, 8, 2, 10, 4, 12, 6, 14}) +
               __builtin_shuffle(x[2 * i], x[2 * i + 1], Ints{1, 9, 3, 11, 5, 13, 7, 15});
  for (int i = 0; i < 2; i++)
    fours[i] = __builtin_shuffle(pairs[2 * i], pairs[2 * i + 1], Ints{0, 1, 8, 9, 4, 5, 12, 13}) +
               __builtin_shuffle(pairs[2 * i], pairs[2 * i + 1], Ints{2, 3, 10, 11, 6, 7, 14, 15});
  return __builtin_shuffle(fours[0], fours[1], Ints{0, 1, 2, 3, 8, 9, 10, 11}) +
         __builtin_shuffle(fours[0], fours[1], Ints{4, 5, 6, 7, 12, 13, 14, 15});
}

// Positions of outputs in the input: element i is at i * kSide, as kSide blocks are accumulated at once.
struct Places {
  const int32_t *first, *phase;
  const float *rest;
};

// out[i] = sum of in[first[i] + k] * (weights[k] + rest[i] * steps[k]), with the weights of phase[i]; without
// `kBetween`, no position is between two phases.
template <int64_t kTaps, bool kBetween>
CLONES static void convolve(float *out, int64_t out_step, int64_t n, const float *in, const Places &places,
                            const float *weights, int64_t any_taps) {
  const int64_t taps = kTaps ? kTaps : any_taps;
  for (int64_t i = 0; i < n; i += kLanes) {
    Lanes parts[kLanes];
    for (int j = 0; j < kLanes; j++) {
      const int64_t at = std::min(i + j, n - 1) * kSide;
      const float *x = in + places.first[at], *w = weights + places.phase[at] * 2 * taps;
      Lanes sum = {}, change = {};
      for (int64_t k = 0; k < taps; k += kLanes) {
        const Lanes v = load<Lanes>(x + k);
        sum += v * load<Lanes>(w + k);
        if (kBetween) change += v * load<Lanes>(w + taps + k);
      }
      parts[j] = kBetween ? sum + places.rest[at] * change : sum;
    }
    const Lanes sums = sums_of(parts);
    if (out_step == 1 && i + kLanes <= n)
      store(out + i, sums);
    else
      for (int j = 0; j < kLanes && i + j < n; j++) out[(i + j) * out_step] = sums[j];
  }
}

void SincFilter::run(float *out, int64_t out_step, int64_t first_out, int64_t n_out, const float *in, double in_rate,
                     double out_rate) const {
  const double scale = in_rate / out_rate;
  const float step = (float)scale;
  int32_t first[kBlock * kSide], phase[kBlock * kSide];
  float rest[kBlock * kSide], place[kBlock * kSide];
  const bool is_between = scale != std::floor(scale);
  const auto convolve_taps = is_between    ? taps_ == 32 ? convolve<32, true> : convolve<0, true>
                                : taps_ == 64 ? convolve<64, false>
                                           : convolve<0, false>;
  const int64_t end = first_out + n_out;
  for (int64_t group = first_out / kBlock * kBlock; group < end; group += kBlock * kSide) {
    int64_t whole[kSide];
    Four at;
    for (int k = 0; k < kSide; k++) {
      const double start = (double)(group + k * kBlock) * scale;
      whole[k] = (int64_t)std::floor(start);
      at[k] = (float)(start - (double)whole[k]);
    }
    const int64_t rows = std::min(kBlock, end - group);
    for (int64_t i = 0; i < rows; i++, at += step) store(place + i * kSide, at);
    split_places(first, phase, rest, place, rows * kSide, (int32_t)reach_, (int32_t)phases_);
    for (int64_t k = 0, block = group; k < kSide && block < end; k++, block += kBlock) {
      const int64_t skipped = std::max<int64_t>(first_out - block, 0), n = std::min(kBlock, end - block) - skipped;
      const int64_t begin = skipped * kSide + k;
      convolve_taps(out + (block + skipped - first_out) * out_step, out_step, n, in + whole[k],
                    {first + begin, phase + begin, rest + begin}, weights_.data(), taps_);
    }
  }
}

SincFilter::Span SincFilter::needs(int64_t first, int64_t n, double in_rate, double out_rate) const {
  const double scale = in_rate / out_rate;
  // Positions are rounded to float within a block, so they may be slightly too large.
  const int64_t slack = 2 + (int64_t)(scale * kBlock * kBlock * 1e-6);
  const int64_t begin = (int64_t)std::floor(first * scale), end = (int64_t)std::ceil((first + n) * scale);
  return {begin - reach_ - slack, end + taps_ + slack};
}

const SincFilter &SincFilter::of(int lobes, double bandwidth) {
  static thread_local std::unique_ptr<SincFilter> last;
  bandwidth = std::min(bandwidth, 1.0);
  if (!last || last->lobes_ != lobes || std::min(last->bandwidth_, 1.0) != bandwidth)
    last = std::make_unique<SincFilter>(lobes, bandwidth);
  return *last;
}

void resample_channels(float *out, int64_t n_out, const float *in, int64_t n, int64_t channels, double in_rate,
                       double out_rate, int lobes, bool antialias, Scratch &scratch, int part) {
  const SincFilter &filter = SincFilter::of(lobes, antialias ? out_rate / in_rate : 1);
  const SincFilter::Span need = filter.needs(0, n_out, in_rate, out_rate);
  const int64_t end = std::max(need.end, n);
  float *padded = scratch.array<float>(end - need.begin, part), *at = padded - need.begin;
  std::fill(padded, at, 0.0f);
  std::fill(at + n, at + end, 0.0f);
  for (int64_t c = 0; c < channels; c++) {
    if (channels == 1)
      std::copy_n(in, n, at);
    else
      for (int64_t i = 0; i < n; i++) at[i] = in[i * channels + c];
    filter.run(out + c, channels, 0, n_out, at, in_rate, out_rate);
  }
}

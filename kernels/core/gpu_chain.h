// SPDX-License-Identifier: Apache-2.0
// LOCALs and chains of them.
#pragma once
#include "core/gpu.h"

// Base of LOCALs with what most of them do. `c` is the coordinate along the channels of the step's output; where a
// pixel is a unit it is 0, and the index into the pixel is the channel.
template <class To_, class From_>
struct Local {
  typedef To_ To;
  typedef From_ From;
  typedef typename To::T Out;
  typedef typename From::T In;
  static constexpr bool kFills = false;      // locate may report that a place lies outside
  static constexpr bool kByChannel = false;  // `map` needs the channel where a pixel is no unit
  template <class Args>
  DEVICE void begin(const Args &, const Tensor &, const Tensor &) {}
  // Maps a place of the output to one of the input; false if it lies outside and `fill` gives its value.
  DEVICE bool locate(int32_t (&)[To::N]) const { return true; }
  // For those that fill: clips a located rectangle [lo, hi] to the input; false if nothing is left.
  DEVICE bool clamp(int32_t (&)[To::N], int32_t (&)[To::N]) const { return true; }
  DEVICE void fill(Out (&)[To::C], int) const {}
  // Whether neighbours in the output are neighbours in the input wherever both lie inside.
  DEVICE bool is_straight() const { return true; }
  // The `map` of a LOCAL that keeps its values.
  DEVICE void map(Out (&out)[To::C], const In (&in)[From::C], int) const {
#pragma unroll
    for (int c = 0; c < To::C; c++) out[c] = (Out)in[c];
  }
};

// How a place of the last output was located.
template <int STEPS>
struct Found {
  int filled = 0;                   // the step that fills, counted from 1; 0 if the source has the value
  int32_t channel[STEPS + 1] = {};  // per step: the channel coordinate of its output
};

// The start of a chain: the tensor that is read, or the head's output.
template <class K>
struct Source {
  typedef K Kind;
  typedef K From;
  static constexpr int kSteps = 0;
  static constexpr bool kFills = false, kByChannel = false;
  DEVICE void begin(const Launch &, int) {}
  template <int STEPS>
  DEVICE void locate(int32_t (&)[K::N], Found<STEPS> &) const {}
  DEVICE bool region(int32_t (&)[K::N], int32_t (&)[K::N]) const { return true; }
  DEVICE bool is_straight() const { return true; }
  template <int STEPS>
  DEVICE void map(typename K::T (&out)[K::C], const typename K::T (&source)[K::C], const Found<STEPS> &) const {
#pragma unroll
    for (int c = 0; c < K::C; c++) out[c] = source[c];
  }
};

// A LOCAL behind a chain. ARGS, OUT and IN are indices into l.args and l.tensors.
template <class Before, template <class, class> class X, class To, int ARGS, int OUT, int IN>
struct Then {
  typedef To Kind;                     // of the last output
  typedef typename Before::From From;  // of the source
  typedef X<To, typename Before::Kind> Step;
  static constexpr int kSteps = Before::kSteps + 1;
  static constexpr bool kFills = Before::kFills || Step::kFills;
  static constexpr bool kByChannel = Before::kByChannel || Step::kByChannel;
  Before before;
  Step step;

  // Prepares what is the same for a whole sample.
  DEVICE void begin(const Launch &l, int sample) {
    before.begin(l, sample);
    const typename Step::Args args = ((const typename Step::Args *)l.args[ARGS])[sample];
    step.begin(args, l.tensors[OUT][sample], l.tensors[IN][sample]);
  }
  // Maps a place of the last output back to the source; meaningless if a step fills.
  template <int STEPS>
  DEVICE void locate(int32_t (&at)[To::N], Found<STEPS> &found) const {
    if constexpr (!To::kUnit && To::kAxis >= 0) found.channel[kSteps] = at[To::kAxis];
    const bool inside = step.locate(at);
    if (Step::kFills && !inside)
      found.filled = kSteps;
    else
      before.locate(at, found);
  }
  DEVICE bool is_straight() const { return step.is_straight() && before.is_straight(); }
  // Maps a rectangle [lo, hi] of places of the last output back to the rectangle of the source that it needs;
  // false: it is filled altogether. (A chain behind a block kernel has no borders that reflect, repeat or wrap.)
  DEVICE bool region(int32_t (&lo)[To::N], int32_t (&hi)[To::N]) const {
    step.locate(lo);
    step.locate(hi);
#pragma unroll
    for (int d = 0; d < To::N; d++) {
      const int32_t a = lo[d], b = hi[d];
      lo[d] = a < b ? a : b, hi[d] = a < b ? b : a;
    }
    if (Step::kFills && !step.clamp(lo, hi)) return false;
    return before.region(lo, hi);
  }
  // Maps the source's values to those of the last output.
  template <int STEPS>
  DEVICE void map(typename To::T (&out)[To::C], const typename From::T (&source)[From::C],
                  const Found<STEPS> &found) const {
    if (Step::kFills && found.filled == kSteps) {
      step.fill(out, found.channel[kSteps]);
    } else {
      typename Before::Kind::T x[Before::Kind::C];
      before.map(x, source, found);
      step.map(out, x, found.channel[kSteps]);
    }
  }
};

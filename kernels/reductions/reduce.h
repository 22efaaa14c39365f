// SPDX-License-Identifier: Apache-2.0
// Reduces a tensor along some axes. An Op defines what is done with the elements:
//
//   struct Op {
//     typedef .. In, Fast, Wide;       // element; result of a few elements; of all
//     static constexpr int kFew;       // most elements that a Fast can take
//     static constexpr bool kCentered; // whether `center`, a number per parameter, is used
//     SHARED static Fast begin();
//     SHARED static Wide first();
//     SHARED static Fast add(Fast to, In x, double center);
//     SHARED static Wide join(Wide a, Fast b);
//     SHARED static Wide merge(Wide a, Wide b);
//   };
//
// The order in which elements are joined depends on the shape only, so results are the same for all instruction sets.
#pragma once
#include <algorithm>
#include <type_traits>

#include "core/kernel.h"
#include "math/groups.h"

template <class Op>
struct Reduction {
  typedef typename Op::In In;
  typedef typename Op::Fast Fast;
  typedef typename Op::Wide Wide;
  // kFold is a multiple of many numbers of channels and of all vector lengths, kLanes of kFold.
  static constexpr int kFold = 48, kLanes = kFold * 8 / sizeof(Fast), kMid = 8;
  static constexpr int64_t kColumns = 1024;
  static constexpr int64_t kScratch = kColumns > kLanes ? kColumns : kLanes;

  static double center_of(const double *center, int64_t i) { return Op::kCentered ? center[i] : 0; }

  // Element i is added to lane i % kLanes.
  CLONES static void add_lanes(Fast *__restrict lanes, const In *__restrict in, int64_t n,
                               const double *__restrict center) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (int j = 0; j < kLanes; j++) lanes[j] = Op::add(lanes[j], in[i + j], center_of(center, j));
    for (int64_t j = 0; i + j < n; j++) lanes[j] = Op::add(lanes[j], in[i + j], center_of(center, j));
  }

  // Joins the lanes of the same parameter; there are `period` parameters.
  CLONES static void fold(Wide *__restrict out, const Fast *__restrict lanes, int64_t period) {
    Wide w[kFold];
    for (int j = 0; j < kFold; j++) w[j] = Op::join(Op::first(), lanes[j]);
    for (int i = kFold; i < kLanes; i += kFold)
      for (int j = 0; j < kFold; j++) w[j] = Op::join(w[j], lanes[i + j]);
    for (int i = 0; i < kFold; i += period)
      for (int64_t j = 0; j < period; j++) out[j] = Op::merge(out[j], w[i + j]);
  }

  // Adds rows of `columns` elements to lanes, four rows at a time.
  CLONES static void add_rows(Fast *__restrict lanes, const In *__restrict in, int64_t rows, int64_t columns,
                              int64_t step, const double *__restrict center) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4, in += 4 * step)
      for (int64_t j = 0; j < columns; j++) {
        Fast s = lanes[j];
        double c = center_of(center, j);
        s = Op::add(s, in[j], c);
        s = Op::add(s, in[step + j], c);
        s = Op::add(s, in[2 * step + j], c);
        lanes[j] = Op::add(s, in[3 * step + j], c);
      }
    for (; r < rows; r++, in += step)
      for (int64_t j = 0; j < columns; j++) lanes[j] = Op::add(lanes[j], in[j], center_of(center, j));
  }

  // Each `rows` consecutive elements belong to a parameter.
  template <int ROWS>
  CLONES static void add_short(Wide *__restrict out, const In *__restrict in, int64_t n,
                               const double *__restrict center) {
    for (int64_t i = 0; i < n; i++) {
      Fast s = Op::begin();
      for (int r = 0; r < ROWS; r++) s = Op::add(s, in[i * ROWS + r], center_of(center, i));
      out[i] = Op::join(out[i], s);
    }
  }
  CLONES static void add_short(Wide *__restrict out, const In *__restrict in, int64_t n, int64_t rows,
                               const double *__restrict center) {
    for (int64_t i = 0; i < n; i++, in += rows) {
      Fast s[kMid];
      for (int j = 0; j < kMid; j++) s[j] = Op::begin();
      int64_t r = 0;
      for (; r + kMid <= rows; r += kMid)
        for (int j = 0; j < kMid; j++) s[j] = Op::add(s[j], in[r + j], center_of(center, i));
      for (int j = 0; r + j < rows; j++) s[j] = Op::add(s[j], in[r + j], center_of(center, i));
      for (int j = 0; j < kMid; j++) out[i] = Op::join(out[i], s[j]);
    }
  }

  // out[p] = result for parameter p. `fast` and `centers` hold kScratch numbers each.
  static void run(Wide *out, const In *in, const Groups &g, const double *center, Fast *fast, double *centers) {
    std::fill_n(out, g.n_params, Op::first());
    if (g.n_params == 0 || g.count() == 0) return;
    if (g.period == 1 && g.rows <= kLanes)
      run_short(out, in, g, center);
    else if (kFold % g.period == 0 && g.rows * g.period >= kLanes)
      run_lanes(out, in, g, center, fast, centers);
    else
      run_rows(out, in, g, center, fast);
  }

 private:
  // For few adjacent elements per parameter.
  static void run_short(Wide *out, const In *in, const Groups &g, const double *center) {
    Groups outer = g;
    if (g.n_outer) {
      outer.rows *= g.extent[g.n_outer - 1];
      outer.n_blocks /= g.extent[--outer.n_outer];
    }
    int64_t n = outer.rows / g.rows;
    outer.for_blocks([&](int64_t offset, int64_t param) {
      const double *c = Op::kCentered ? center + param : nullptr;
      if (g.rows == 2)
        add_short<2>(out + param, in + offset, n, c);
      else if (g.rows == 3)
        add_short<3>(out + param, in + offset, n, c);
      else if (g.rows == 4)
        add_short<4>(out + param, in + offset, n, c);
      else
        add_short(out + param, in + offset, n, g.rows, c);
    });
  }

  // For adjacent elements of different parameters with a short period.
  static void run_lanes(Wide *out, const In *in, const Groups &g, const double *center, Fast *fast, double *centers) {
    const int64_t n = g.rows * g.period, most = (int64_t)Op::kFew * kLanes;
    g.for_blocks([&](int64_t offset, int64_t param) {
      if (Op::kCentered)
        for (int i = 0; i < kLanes; i += (int)g.period) std::copy_n(center + param, g.period, centers + i);
      for (int64_t i = 0; i < n; i += most) {
        std::fill_n(fast, kLanes, Op::begin());
        add_lanes(fast, in + offset + i, std::min(n - i, most), centers);
        fold(out + param, fast, g.period);
      }
    });
  }

  // For rows of many parameters.
  static void run_rows(Wide *out, const In *in, const Groups &g, const double *center, Fast *fast) {
    g.for_blocks([&](int64_t offset, int64_t param) {
      for (int64_t x = 0; x < g.period; x += kColumns) {
        const int64_t columns = std::min(kColumns, g.period - x);
        for (int64_t r = 0; r < g.rows; r += Op::kFew) {
          std::fill_n(fast, columns, Op::begin());
          add_rows(fast, in + offset + r * g.period + x, std::min<int64_t>(g.rows - r, Op::kFew), columns, g.period,
                   Op::kCentered ? center + param + x : nullptr);
          for (int64_t j = 0; j < columns; j++) out[param + x + j] = Op::join(out[param + x + j], fast[j]);
        }
      }
    });
  }
};

// Reduces into out, which holds g.n_params numbers. Uses parts 1 and 2 of the scratch memory.
template <class Op>
void reduce(typename Op::Wide *out, const Tensor &in, const Groups &g, const double *center, Scratch &scratch) {
  typedef Reduction<Op> R;
  R::run(out, in.as<typename Op::In>(), g, center, scratch.array<typename Op::Fast>(R::kScratch, 1),
         scratch.array<double>(R::kScratch, 2));
}

// SPDX-License-Identifier: Apache-2.0
#include "geometry/window.h"

#include <algorithm>
#include <cstring>

#include "core/kernel.h"
#include "geometry/fill.h"
#include "geometry/truncated.h"

namespace {

typedef void (*Copy)(void *out, const void *in, int64_t n);

template <class Out, class In>
CLONES void copy_converted(void *out, const void *in, int64_t n) {
  Out *__restrict o = static_cast<Out *>(out);
  const In *__restrict x = static_cast<const In *>(in);
  for (int64_t i = 0; i < n; i++) o[i] = truncated<Out>(x[i]);
}

template <int kSize>
void copy_same(void *out, const void *in, int64_t n) {
  std::memcpy(out, in, n * kSize);
}

Copy copy_for(int out, int in) {
  if (out == in) {
    switch (item_size(in)) {
      case 1:
        return copy_same<1>;
      case 2:
        return copy_same<2>;
      case 4:
        return copy_same<4>;
      default:
        return copy_same<8>;
    }
  }
  Copy copy = nullptr;
  for_types<uint8_t, half, float>(out, [&](auto o) {
    for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, half, float, double>(
        in, [&](auto i) {
          if constexpr (DTypeOf<decltype(o)>::value != DTypeOf<decltype(i)>::value)
            copy = copy_converted<decltype(o), decltype(i)>;
        });
  });
  return copy;
}

struct Walk {
  Fill fill;
  Copy copy;
  int border, last;         // last: input and output are alike in the axes after this one
  int64_t begin[kMaxDims];  // [begin, end) of the output lies inside of the input
  int64_t end[kMaxDims];
  int64_t first[kMaxDims];  // index in the stored input of index 0 of the output
  int64_t start[kMaxDims], extent[kMaxDims], origin[kMaxDims];
  int64_t in_step[kMaxDims];  // bytes
  int64_t out_step[kMaxDims];

  void visit(char *out, const char *in, int d, int64_t c) const {
    const int64_t b = begin[d], e = end[d], n = fill.extent[d];
    if (border == BORDER_CONSTANT) {
      fill.range(out, d, 0, b, c);
      fill.range(out, d, e, n, c);
    } else {
      for (int64_t i = 0; i < b; i++) descend(out, in, d, i, border_at(d, i), 1, c);
      for (int64_t i = e; i < n; i++) descend(out, in, d, i, border_at(d, i), 1, c);
    }
    if (e <= b) return;
    if (d == last)
      copy(out + b * out_step[d], in + (first[d] + b) * in_step[d], (e - b) * fill.step[d]);
    else
      for (int64_t i = b; i < e; i++) descend(out, in, d, i, first[d] + i, 1, c);
  }
  int64_t border_at(int d, int64_t i) const { return border_index(start[d] + i, extent[d], border) - origin[d]; }
  void descend(char *out, const char *in, int d, int64_t to, int64_t from, int64_t n, int64_t c) const {
    out += to * out_step[d];
    in += from * in_step[d];
    if (d == last)
      copy(out, in, n * fill.step[d]);
    else
      visit(out, in, d + 1, d == fill.channels ? to : c);
  }
};

}  // namespace

static void run(const Tensor *out, const Tensor *in, const WindowArgs &a, Scratch &scratch) {
  if (out->volume() == 0) return;
  Walk w;
  w.fill.of(out, a.channels);
  w.fill.values = scratch.array<char>(w.fill.count() * w.fill.size);
  for_any_dtype(out->dtype, [&](auto o) {
    typedef decltype(o) Out;
    for (int64_t c = 0; c < w.fill.count(); c++) ((Out *)w.fill.values)[c] = truncated<Out>(a.fill[c]);
  });
  if (in->ndim == 0) return out->data == in->data ? void() : copy_for(out->dtype, in->dtype)(out->data, in->data, 1);
  w.copy = copy_for(out->dtype, in->dtype);
  w.border = a.border;
  w.last = 0;
  bool is_same = out->dtype == in->dtype;
  int64_t step = item_size(in->dtype);
  for (int d = in->ndim - 1; d >= 0; d--) {
    const int64_t n = out->shape[d];
    w.in_step[d] = step, step *= in->shape[d];
    w.out_step[d] = w.fill.step[d] * w.fill.size;
    w.start[d] = a.start[d], w.extent[d] = a.extent[d], w.origin[d] = a.origin[d];
    w.first[d] = a.start[d] - a.origin[d];
    w.begin[d] = std::min(std::max<int64_t>(-a.start[d], 0), n);
    w.end[d] = std::max(std::min(a.extent[d] - a.start[d], n), w.begin[d]);
    const bool alike = w.first[d] == 0 && w.begin[d] == 0 && w.end[d] == n && n == in->shape[d];
    if (!alike) w.last = std::max(w.last, d), is_same = false;
  }
  const char *from = in->as<char>();
  if (from == out->as<char>()) {  // the chain may have made the input in the output's memory
    if (is_same) return;
    char *kept = scratch.array<char>(step, 1);
    from = (const char *)std::memcpy(kept, from, step);
  }
  w.visit(out->as<char>(), from, 0, 0);
}

EXPORT_KERNEL(window, WindowArgs, run)

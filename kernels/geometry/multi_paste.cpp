// SPDX-License-Identifier: Apache-2.0
#include "geometry/multi_paste.h"

#include <cstring>

#include "core/kernel.h"

namespace {

struct Place {
  int64_t in_y, in_x, height, width, out_y, out_x;
};

bool overlap(const Place &a, const Place &b) {
  return a.out_y < b.out_y + b.height && b.out_y < a.out_y + a.height && a.out_x < b.out_x + b.width &&
         b.out_x < a.out_x + a.width;
}

// Whether the regions cover the canvas without overlaps.
bool cover(const Place *places, int n, int64_t area) {
  for (int i = 0; i < n; i++) {
    area -= places[i].height * places[i].width;
    for (int j = 0; j < i; j++)
      if (overlap(places[i], places[j])) return false;
  }
  return area == 0;
}

template <class Out, class In>
CLONES void convert(Out *__restrict out, const In *__restrict in, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = saturate<Out>(in[i]);
}

template <class Out, class In>
void paste(Out *out, const In *in, const Place &p, int64_t canvas_width, int64_t width, int64_t channels) {
  for (int64_t y = 0; y < p.height; y++) {
    Out *to = out + ((p.out_y + y) * canvas_width + p.out_x) * channels;
    const In *from = in + ((p.in_y + y) * width + p.in_x) * channels;
    if constexpr (DTypeOf<Out>::value == DTypeOf<In>::value)
      std::memcpy(to, from, p.width * channels * sizeof(Out));
    else
      convert(to, from, p.width * channels);
  }
}

}  // namespace

static void run(const Tensor *out, const Tensor *, const MultiPasteArgs &a, Scratch &) {
  const int64_t height = out->shape[0], width = out->shape[1], channels = out->shape[2];
  if (out->volume() == 0) return;
  const Place *places = reinterpret_cast<const Place *>(a.places);
  if (!cover(places, a.regions, height * width)) std::memset(out->data, 0, out->volume() * item_size(out->dtype));
  for_types<uint8_t, int16_t, int32_t, float>(out->dtype, [&](auto o) {
    for_types<uint8_t, int16_t, int32_t, float>(a.dtype, [&](auto i) {
      for (int r = 0; r < a.regions; r++)
        if (places[r].height && places[r].width)
          paste(out->as<decltype(o)>(), reinterpret_cast<const decltype(i) *>(a.sources[r]), places[r], width,
                a.widths[r], channels);
    });
  });
}

EXPORT_KERNEL(multi_paste, MultiPasteArgs, run)

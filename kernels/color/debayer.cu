// SPDX-License-Identifier: Apache-2.0
// form: gather
#include "color/debayer.h"
#include "color/debayer_vng.h"
#include "core/gpu_gather.h"

template <class To, class From>
struct Debayer : GatherAtOnce<Debayer<To, From>, To> {
  typedef DebayerArgs Args;
  typedef typename From::T T;
  static constexpr int kPlaces = To::kUnit ? To::N : To::N - 1;  // coordinates without the channel
  const T *in;
  int32_t h, w, algorithm, row, column;

  DEVICE void begin(const Args &a, const Tensor &, const Tensor &from) {
    in = from.as<T>();
    h = (int32_t)from.shape[0], w = (int32_t)from.shape[1];
    algorithm = a.algorithm == BAYER_VNG && (h < kVngSmallest || w < kVngSmallest) ? BAYER_BILINEAR : a.algorithm;
    row = a.row, column = a.column;
  }

  DEVICE int32_t at(int32_t y, int32_t x) const { return load(in + (int64_t)y * w + x); }

  DEVICE void read(const int32_t (&place)[To::N], typename To::T (&pixel)[To::C]) const {
    int32_t y = place[kPlaces - 2], x = place[kPlaces - 1], color[3] = {};
    const bool mirrors = algorithm == BAYER_CHROMA || algorithm == BAYER_VNG;
    if (mirrors || (h > 2 && w > 2)) {
      if (!mirrors) {  // the border is repeated
        y = y < 1 ? 1 : y > h - 2 ? h - 2 : y;
        x = x < 1 ? 1 : x > w - 2 ? w - 2 : x;
      }
      algorithm == BAYER_VNG ? colors_by_gradients(y, x, color) : colors(y, x, color);
    }
#pragma unroll
    for (int c = 0; c < To::C; c++)
      pixel[c] = (typename To::T)(To::kUnit || place[To::N - 1] == 0 ? color[c]
                                  : place[To::N - 1] == 1            ? color[1]
                                                                     : color[2]);
  }

  DEVICE void colors_by_gradients(int32_t y, int32_t x, int32_t (&color)[3]) const {
    const bool red_row = (y & 1) == row, is_green = red_row != ((x & 1) == column);
    const int32_t first = is_green == ((x & 1) == 0);
    const float seventh = in_vectors(x, w, first) ? 1.f / 14 : kSeventh;
    const auto at = [&](int dy, int dx) { return (int16_t)this->at(mirrored(y + dy, h), mirrored(x + dx, w)); };
    const int32_t v = at(0, 0);
    const VngColors c = is_green ? vng<true>(at, seventh) : vng<false>(at, seventh);
    const int32_t own = is_green ? c.a : v, other = c.b;
    color[0] = red_row ? own : other, color[1] = is_green ? v : c.a, color[2] = red_row ? other : own;
  }

  DEVICE void colors(int32_t y, int32_t x, int32_t (&color)[3]) const {
    const int32_t above = mirrored(y - 1, h), below = mirrored(y + 1, h);
    const int32_t before = mirrored(x - 1, w), behind = mirrored(x + 1, w);
    Mosaic m;
    m.v = at(y, x), m.left = at(y, before), m.right = at(y, behind), m.up = at(above, x), m.down = at(below, x);
    const bool red_row = (y & 1) == row, red_column = (x & 1) == column, is_green = red_row != red_column;
    int32_t nw = 0, ne = 0, sw = 0, se = 0;
    if (!is_green || algorithm == BAYER_GRAY)
      nw = at(above, before), ne = at(above, behind), sw = at(below, before), se = at(below, behind);
    m.diagonals = nw + ne + sw + se;
    if (algorithm == BAYER_GRAY) {
      const uint32_t mine = red_row ? kLumaRed : kLumaBlue, other = red_row ? kLumaBlue : kLumaRed;
      color[0] = (int32_t)(is_green ? gray_at_green(m, mine, other) : gray_at_color(m, mine, other));
      return;
    }
    int32_t own, other, green;
    if (is_green) {
      const int32_t up_to = algorithm != BAYER_CHROMA;
      green = m.v, own = (m.left + m.right + up_to) >> 1, other = (m.up + m.down + up_to) >> 1;
    } else {
      own = m.v, other = algorithm == BAYER_CHROMA ? corners_chroma(nw, ne, sw, se, y & 1) : mean4(m.diagonals);
      if (algorithm == BAYER_BILINEAR)
        green = green_bilinear(m);
      else if (algorithm == BAYER_EDGE_AWARE)
        green = green_edge_aware(m);
      else
        green = green_chroma(m, at(y, mirrored(x - 2, w)), at(y, mirrored(x + 2, w)), at(mirrored(y - 2, h), x),
                             at(mirrored(y + 2, h), x));
    }
    color[0] = red_row ? own : other, color[1] = green, color[2] = red_row ? other : own;
  }
};

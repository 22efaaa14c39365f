// SPDX-License-Identifier: Apache-2.0
// Y'CbCr to R'G'B' as defined by ITU-T H.273: from Y' and colour differences of a range, with the matrix's luma
// coefficients KR and KB. Chroma is interpolated linearly between its samples, whose position the stream tells (by
// default at the left of every second pixel, between two rows).
#include "video/colors.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "color/interleave.h"
#include "video/half_chroma.h"

namespace {

using namespace ycbcr;

// Memory layout of a picture, parsed from FFmpeg's name of its pixel format, such as yuv420p10le.
struct Format {
  int column_shift = 0, row_shift = 0;  // chroma has 1 / 2^shift of the columns and rows
  int bits = 8;
  bool is_gray = false, is_rgb = false, is_full_range = false, is_semiplanar = false;
  int bit_shift = 0;  // of samples stored in the upper bits
};

bool parse(const char *name, Format *f) {
  const std::string_view s(name ? name : "");
  if (s == "nv12") return f->column_shift = f->row_shift = 1, f->is_semiplanar = true;
  if (s == "p010le") return f->column_shift = f->row_shift = 1, f->is_semiplanar = true, f->bits = 10, f->bit_shift = 6;
  size_t at = 0;
  const auto skip = [&](const char *text) {
    const bool found = s.compare(at, strlen(text), text) == 0;
    if (found) at += strlen(text);
    return found;
  };
  if (skip("gray")) {
    f->is_gray = true;
  } else if (skip("gbr")) {
    f->is_rgb = true;
    skip("a");
    if (!skip("p")) return false;
  } else if (skip("yuv")) {
    if (skip("j")) f->is_full_range = true;
    skip("a");
    if (skip("420"))
      f->column_shift = f->row_shift = 1;
    else if (skip("422"))
      f->column_shift = 1;
    else if (skip("440"))
      f->row_shift = 1;
    else if (skip("411"))
      f->column_shift = 2;
    else if (skip("410"))
      f->column_shift = f->row_shift = 2;
    else if (!skip("444"))
      return false;
    if (!skip("p")) return false;
  } else {
    return false;
  }
  if (at == s.size()) return true;
  f->bits = 0;
  while (at < s.size() && s[at] >= '0' && s[at] <= '9') f->bits = f->bits * 10 + (s[at++] - '0');
  return f->bits > 8 && f->bits <= 12 && s.substr(at) == "le";
}

// Removes the bits below a sample. `drop` is ignored for 8-bit samples.
template <class T>
inline int16_t plain(T sample, int drop) {
  if constexpr (sizeof(T) == 1) return (int16_t)sample;
  return (int16_t)(sample >> drop);
}

// Converts one row: Y' of `bits`, differences of 15 bits. `scale` brings Y' to 15 bits.
template <class T>
CLONES void convert_row(const T *__restrict luma, const int16_t *__restrict u, const int16_t *__restrict v, int64_t n,
                        Coefficients k, int16_t scale, int drop, uint8_t *__restrict r, uint8_t *__restrict g,
                        uint8_t *__restrict b) {
  for (int64_t i = 0; i < n; i++) {
    const int16_t y = times((int16_t)((int16_t)(plain(luma[i], drop) - k.black) * scale), k.y);
    r[i] = limit((int16_t)(y + times(v[i], k.rv)));
    g[i] = limit((int16_t)(y + times(u[i], k.gu) + times(v[i], k.gv)));
    b[i] = limit((int16_t)(y + times(u[i], k.bu)));
  }
}

// Like convert_row without the matrix: Y' and chroma in 8 bits, with unchanged range.
template <class T>
CLONES void take_ycbcr(const T *__restrict luma, const int16_t *__restrict u, const int16_t *__restrict v, int64_t n,
                       int down, int drop, uint8_t *__restrict y, uint8_t *__restrict cb, uint8_t *__restrict cr) {
  for (int64_t i = 0; i < n; i++) {
    const int sample = luma[i] >> drop;
    y[i] = (uint8_t)std::min((sample + (1 << down >> 1)) >> down, 255);
    cb[i] = chroma_byte(u[i]), cr[i] = chroma_byte(v[i]);
  }
}

// Interpolates a chroma row between two: 4 times its value, minus the middle.
template <class T>
CLONES void blend_rows(const T *__restrict near, const T *__restrict far, int64_t n, int near_weight, int far_weight,
                       int middle, int drop, int step, int16_t *__restrict out) {
  const int16_t a = (int16_t)near_weight, b = (int16_t)far_weight, zero = (int16_t)(4 * middle);
  for (int64_t i = 0; step == 1 && i < n; i++)
    out[i] = (int16_t)(plain(near[i], drop) * a + plain(far[i], drop) * b - zero);
  for (int64_t i = 0; step == 2 && i < n; i++)
    out[i] = (int16_t)(plain(near[2 * i], drop) * a + plain(far[2 * i], drop) * b - zero);
}

// Spreads chroma columns [c0, c0 + n) to pixels; `in` begins at c0, and is repeated at both ends of the picture.
// `scale` brings 8 times the value to 15 bits.
CLONES void spread_left(const int16_t *__restrict in, int64_t n_pairs, int16_t scale, int16_t *__restrict out) {
  for (int64_t i = 0; i < n_pairs; i++) {
    out[2 * i] = (int16_t)(2 * in[i] * scale);
    out[2 * i + 1] = (int16_t)((in[i] + in[i + 1]) * scale);
  }
}
CLONES void spread_centre(const int16_t *__restrict in, int64_t n_pairs, int16_t scale, int16_t *__restrict out) {
  for (int64_t i = 0; i < n_pairs; i++) {  // in[-1] is valid
    out[2 * i] = (int16_t)(half_of((int16_t)(3 * in[i] + in[i - 1] + 1)) * scale);
    out[2 * i + 1] = (int16_t)(half_of((int16_t)(3 * in[i] + in[i + 1] + 1)) * scale);
  }
}
CLONES void spread_none(const int16_t *__restrict in, int64_t n, int16_t scale, int16_t *__restrict out) {
  for (int64_t i = 0; i < n; i++) out[i] = (int16_t)(2 * in[i] * scale);
}

struct Rows {  // scratch memory
  int16_t *u, *v, *narrow;
};

class Converter {
 public:
  Converter(const Picture &p, const Format &f, const Coefficients &k, int64_t x, int64_t width, const Rows &rows)
      : p_(p), f_(f), k_(k), x_(x), width_(width), rows_(rows) {
    chroma_width_ = (p.width + (1 << f.column_shift) - 1) >> f.column_shift;
    chroma_height_ = (p.height + (1 << f.row_shift) - 1) >> f.row_shift;
    siting_ = p.siting == CENTRE || p.siting == TOP_LEFT ? (int)p.siting : LEFT;
  }

  template <class T>
  void row(int64_t y, bool as_ycbcr, const Planes &out) const {
    const int drop = f_.bit_shift;
    const T *luma = (const T *)(p_.plane[0] + y * p_.line[0]) + x_;
    if (f_.is_gray) {
      std::fill_n(rows_.u, width_, (int16_t)0), std::fill_n(rows_.v, width_, (int16_t)0);
    } else {
      const int pixel = f_.is_semiplanar ? 2 : 1;
      chroma<T>((const T *)p_.plane[1], p_.line[1], y, pixel, rows_.u);
      chroma<T>(f_.is_semiplanar ? (const T *)p_.plane[1] + 1 : (const T *)p_.plane[2],
                f_.is_semiplanar ? p_.line[1] : p_.line[2], y, pixel, rows_.v);
    }
    if (as_ycbcr)
      take_ycbcr<T>(luma, rows_.u, rows_.v, width_, f_.bits - 8, drop, out.r, out.g, out.b);
    else
      convert_row<T>(luma, rows_.u, rows_.v, width_, k_, (int16_t)(1 << (15 - f_.bits)), drop, out.r, out.g, out.b);
  }

  // Whether half_chroma.h can be used, for an even x and an even width.
  bool has_one_pass() const {
    return has_half_chroma_loop() && f_.bits == 8 && f_.column_shift == 1 && f_.row_shift <= 1 && !f_.is_semiplanar &&
           !f_.is_gray && !f_.is_rgb && siting_ != CENTRE;
  }
  // Row y for it; `next_y` is needed afterwards.
  HalfChromaRow half_chroma_row(int64_t y, int64_t next_y) const {
    const Between rows = between(y);
    const int64_t first = x_ >> 1;
    const auto chroma = [&](int plane) -> ChromaRows {
      const auto row = [&](int64_t i) { return p_.plane[plane] + i * p_.line[plane] + first; };
      return {row(rows.near), row(rows.far)};
    };
    const auto luma = [&](int64_t row) { return p_.plane[0] + row * p_.line[0] + x_; };
    return {luma(y), chroma(1), chroma(2), width_, chroma_width_ - first, rows.far_weight, luma(next_y)};
  }

  template <class T>
  void rgb_row(int64_t y, const Planes &out) const {  // planes are green, blue, red
    const int down = f_.bits - 8;
    uint8_t *to[3] = {out.g, out.b, out.r};
    for (int plane = 0; plane < 3; plane++) {
      const T *in = (const T *)(p_.plane[plane] + y * p_.line[plane]) + x_;
      for (int64_t i = 0; i < width_; i++) to[plane][i] = (uint8_t)(in[i] >> down);
    }
  }

 private:
  // The rows of chroma that a row of pixels lies between, and their weights, which add up to 4.
  struct Between {
    int64_t near, far;
    int near_weight, far_weight;
  };
  Between between(int64_t y) const {
    const auto inside = [&](int64_t i) { return std::clamp<int64_t>(i, 0, chroma_height_ - 1); };
    const int64_t near = inside(y >> f_.row_shift);
    const bool is_odd = y & 1;
    if (f_.row_shift != 1) return {near, near, 4, 0};
    if (siting_ != TOP_LEFT) return {near, inside(is_odd ? near + 1 : near - 1), 3, 1};
    if (is_odd) return {near, inside(near + 1), 2, 2};
    return {near, near, 4, 0};
  }

  // The 15-bit differences of one row at all its pixels.
  template <class T>
  void chroma(const T *plane, int64_t line, int64_t y, int pixel, int16_t *out) const {
    const Between rows = between(y);
    const auto row = [&](int64_t i) { return (const T *)((const char *)plane + i * line); };
    // Chroma columns [first, last], and one more at each end for interpolation.
    const int64_t first = x_ >> f_.column_shift, last = (x_ + width_ - 1) >> f_.column_shift;
    const int64_t begin = std::max<int64_t>(first - 1, 0), end = std::min(last + 2, chroma_width_);
    int16_t *narrow = rows_.narrow + 1 - first;  // indexed by chroma column
    const int middle = 1 << (f_.bits - 1);
    const int16_t scale = (int16_t)(1 << (12 - f_.bits));
    blend_rows<T>(row(rows.near) + begin * pixel, row(rows.far) + begin * pixel, end - begin, rows.near_weight,
                  rows.far_weight, middle, f_.bit_shift, pixel, narrow + begin);
    if (first == 0) narrow[-1] = narrow[0];
    if (last + 1 >= chroma_width_) narrow[last + 1] = narrow[chroma_width_ - 1];
    if (f_.column_shift == 0) return spread_none(narrow + first, width_, scale, out);
    if (f_.column_shift == 2) {  // 4:1:1 and 4:1:0: nearest sample
      for (int64_t i = 0; i < width_; i++) out[i] = (int16_t)(2 * narrow[(x_ + i) >> 2] * scale);
      return;
    }
    // Pairs from an even pixel on; one extra pixel on the left if the window begins at an odd one.
    int16_t *pairs = out - (x_ & 1);
    if (siting_ == CENTRE)
      spread_centre(narrow + first, last - first + 1, scale, pairs);
    else
      spread_left(narrow + first, last - first + 1, scale, pairs);
  }

  const Picture &p_;
  const Format &f_;
  const Coefficients &k_;
  const int64_t x_, width_;
  const Rows &rows_;
  int64_t chroma_width_, chroma_height_;
  int siting_;
};

}  // namespace

ycbcr::Coefficients coefficients_of(int64_t matrix, bool full, int bits) {
  double kr = 0.299, kb = 0.114;  // ITU-R BT.601 (5, 6, and unspecified)
  if (matrix == 1) kr = 0.2126, kb = 0.0722;
  if (matrix == 4) kr = 0.30, kb = 0.11;
  if (matrix == 7) kr = 0.212, kb = 0.087;
  if (matrix == 9 || matrix == 10) kr = 0.2627, kb = 0.0593;
  const double steps = std::ldexp(1, bits - 8), most = std::ldexp(1, bits) - 1;
  // The value of one 8-bit step, in units of 0 to 255.
  const double y = full ? 255 * steps / most : 255.0 / 219, c = full ? 255 * steps / most : 255.0 / 224;
  const double kg = 1 - kr - kb;
  // Y' comes as (y - black) * 2^7, chroma as (c - middle) * 2^7; a rounded product shifted by 15 must leave 5 bits.
  const auto fixed = [](double x) { return (int16_t)std::lround(x * 32 * 256); };
  return {fixed(y),
          fixed(2 * (1 - kr) * c),
          fixed(-2 * (1 - kb) * kb / kg * c),
          fixed(-2 * (1 - kr) * kr / kg * c),
          fixed(2 * (1 - kb) * c),
          full ? (int16_t)0 : (int16_t)(16 * steps)};
}

void picture_to_pixels(const Picture &picture, bool as_ycbcr, const Rectangle &part, const PixelRows &out,
                       Scratch &scratch, int64_t next_y) {
  Format format;
  if (!parse(picture.format, &format))
    fail("pictures of the format %s are not supported", picture.format ? picture.format : "(unknown)");
  if (picture.matrix == 0 && !format.is_gray) format.is_rgb = true;  // RGB: planes of green, blue and red
  if (format.is_rgb && as_ycbcr) fail("the video has no YCbCr, its pictures are RGB (%s)", picture.format);
  if (part.height <= 0 || part.width <= 0) return;
  const int64_t bytes = (part.width + 2 + 63) / 64 * 64, room = 2 * (bytes + 64);
  char *memory = scratch.array<char>(3 * bytes + 3 * room);
  uint8_t *const row = (uint8_t *)memory;
  int16_t *wide = (int16_t *)(memory + 3 * bytes);
  const Rows rows = {wide + 32, wide + 32 + room / 2, wide + room};
  const Coefficients k = coefficients_of(picture.matrix, format.is_full_range || picture.range == 2, format.bits);
  const auto planes_of = [&](const Converter &columns, int64_t y, const Planes &to) {
    if (format.is_rgb)
      format.bits > 8 ? columns.rgb_row<uint16_t>(y, to) : columns.rgb_row<uint8_t>(y, to);
    else
      format.bits > 8 ? columns.row<uint16_t>(y, as_ycbcr, to) : columns.row<uint8_t>(y, as_ycbcr, to);
  };
  // Columns [begin, begin + n).
  const auto convert = [&](int64_t begin, int64_t n, bool in_one_pass) {
    if (n == 0) return;
    const Converter columns(picture, format, k, part.x + begin, n, rows);
    for (int64_t i = 0, y = part.y; i < part.height; i++, y++) {
      uint8_t *const to = out.data + i * out.pitch + begin * (out.plane ? 1 : 3);
      const Planes planes =
          out.plane ? Planes{to, to + out.plane, to + 2 * out.plane} : Planes{row, row + bytes, row + 2 * bytes};
      if (in_one_pass) {
        const HalfChromaRow from = columns.half_chroma_row(y, i + 1 < part.height ? y + 1 : next_y);
        out.plane ? half_chroma_to_rgb(from, k, planes) : half_chroma_to_rgb(from, k, to);
      } else {
        planes_of(columns, y, planes);
        if (!out.plane) interleave(planes.r, planes.g, planes.b, n, to);
      }
    }
  };
  const int64_t before = part.x & 1, paired = (part.width - before) / 2 * 2;
  if (as_ycbcr || paired < kLeastHalfChroma || !Converter(picture, format, k, 0, 0, rows).has_one_pass())
    return convert(0, part.width, false);
  convert(0, before, false);
  convert(before, paired, true);
  convert(before + paired, part.width - before - paired, false);
}

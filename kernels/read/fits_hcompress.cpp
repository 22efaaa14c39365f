// SPDX-License-Identifier: Apache-2.0
// HCOMPRESS_1 (FITS 4.0, section 10.4.4; R. L. White, "High-performance compression of astronomical images", 1992): an
// image is transformed in 2 x 2 blocks to sums and differences, recursively for the sums; all are stored in bit planes,
// each as a tree of 4-bit codes for what is not zero.
#include <algorithm>
#include <cstring>

#include "read/fits_bits.h"
#include "read/fits_codes.h"

namespace {

constexpr int kMagic = 0xdd99;
constexpr int64_t kMost = 1ll << 54;  // of a coefficient, so that sums of several don't overflow
constexpr int kMostPlanes = 54;
constexpr int64_t kMostPixels = 1 << 17;  // per byte: a tile of equal pixels takes 27 bytes

int64_t halved(int64_t n) { return (n + 1) / 2; }
int levels_of(int64_t rows, int64_t columns) {
  int n = 0;
  while ((1ll << n) < std::max(rows, columns)) n++;
  return n;
}

// The number of blocks of 2^level in `n`.
int64_t blocks(int64_t n, int level) { return ((n - 1) >> level) + 1; }

struct Image {
  int64_t *data;
  int64_t rows, columns, stride;
  int64_t &at(int64_t i, int64_t j) const { return data[i * stride + j]; }
};

// The next 4 bits, not all zero, in the format's fixed Huffman code.
int next_code(FitsBits &bits) {
  static const int8_t three[] = {1, 2, 4, 8}, four[] = {3, 5, 10, 12, 15}, five[] = {6, 7, 9, 11, 13};
  const int first = (int)bits.take(3);
  if (first < 4) return three[first];
  const int second = first << 1 | bits.next();
  if (second < 13) return four[second - 8];
  const int third = second << 1 | bits.next();
  if (third < 31) return five[third - 26];
  return bits.next() ? 14 : 0;
}

// Calls use(row, column, bit) for the four bits of each code that lie in rows x columns.
template <class Use>
void each_bit(const uint8_t *codes, int64_t rows, int64_t columns, Use use) {
  for (int64_t i = 0; i < rows; i += 2)
    for (int64_t j = 0; j < columns; j += 2) {
      const int code = *codes++;
      if (!code) continue;
      use(i, j, code >> 3 & 1);
      if (j + 1 < columns) use(i, j + 1, code >> 2 & 1);
      if (i + 1 < rows) use(i + 1, j, code >> 1 & 1);
      if (i + 1 < rows && j + 1 < columns) use(i + 1, j + 1, code & 1);
    }
}

// Reads one of the four quadrants of coefficients, without signs. `codes` and `finer` have room for the codes of a
// plane.
void read_quadrant(FitsBits &bits, const Image &image, int planes, uint8_t *codes, uint8_t *finer) {
  if (!image.rows || !image.columns) return;
  const int levels = levels_of(image.rows, image.columns);
  const int64_t n_codes = halved(image.rows) * halved(image.columns);
  for (int plane = planes - 1; plane >= 0; plane--) {
    const int way = (int)bits.take(4);
    if (way == 0) {
      for (int64_t i = 0; i < n_codes; i++) codes[i] = (uint8_t)bits.take(4);
    } else if (way == 15) {
      codes[0] = (uint8_t)next_code(bits);
      for (int level = levels - 1; level > 0; level--) {
        const int64_t rows = blocks(image.rows, level), columns = blocks(image.columns, level);
        memset(finer, 0, rows * columns);
        each_bit(codes, rows, columns, [&](int64_t i, int64_t j, int bit) { finer[i * columns + j] = (uint8_t)bit; });
        for (int64_t i = rows * columns - 1; i >= 0; i--)
          if (finer[i]) finer[i] = (uint8_t)next_code(bits);
        std::swap(codes, finer);
      }
    } else {
      fail("the compressed tile is damaged");
    }
    each_bit(codes, image.rows, image.columns,
             [&](int64_t i, int64_t j, int bit) { image.at(i, j) |= (int64_t)bit << plane; });
  }
}

// Moves the first half of n values, `step` apart, to the even positions, the others to the odd ones.
void interleave(int64_t *values, int64_t n, int64_t step, int64_t *room) {
  for (int64_t i = 0; i < n; i++) room[i] = values[i * step];
  for (int64_t i = 0; i < halved(n); i++) values[2 * i * step] = room[i];
  for (int64_t i = halved(n); i < n; i++) values[(2 * (i - halved(n)) + 1) * step] = room[i];
}

// Moves `value` by at most `most` towards wanted / parts, clamped to [least, largest] / parts.
int64_t moved(int64_t value, int64_t wanted, int64_t least, int64_t largest, int64_t parts, int64_t most) {
  if (least >= largest) return value;
  const int64_t change = (std::clamp(wanted, least, largest) - value * parts) / parts;
  return value + std::clamp(change, -most, most);
}

// Adapts the differences of a block to the sums of its neighbours, by at most half of their rounding step. Blocks at
// the edges stay unchanged.
void smooth(const Image &m, int64_t scale) {
  const int64_t most = scale >> 1;
  if (most <= 0) return;
  auto slope = [&](int64_t value, int64_t before, int64_t here, int64_t behind) {
    const int64_t up = behind - here, down = here - before;
    return moved(value, behind - before, 4 * std::min<int64_t>(std::max(up, down), 0),
                 4 * std::max<int64_t>(std::min(up, down), 0), 8, most);
  };
  for (int64_t i = 2; i < m.rows - 2; i += 2)
    for (int64_t j = 0; j < m.columns; j += 2)
      m.at(i + 1, j) = slope(m.at(i + 1, j), m.at(i - 2, j), m.at(i, j), m.at(i + 2, j));
  for (int64_t i = 0; i < m.rows; i += 2)
    for (int64_t j = 2; j < m.columns - 2; j += 2)
      m.at(i, j + 1) = slope(m.at(i, j + 1), m.at(i, j - 2), m.at(i, j), m.at(i, j + 2));
  for (int64_t i = 2; i < m.rows - 2; i += 2)
    for (int64_t j = 2; j < m.columns - 2; j += 2) {
      const int64_t here = m.at(i, j), x = 2 * m.at(i + 1, j), y = 2 * m.at(i, j + 1);
      const int64_t mm = m.at(i - 2, j - 2), pm = m.at(i + 2, j - 2), mp = m.at(i - 2, j + 2), pp = m.at(i + 2, j + 2);
      // The range that the four corners leave for the value.
      auto above = [](int64_t d) { return std::max<int64_t>(d, 0); };
      auto below = [](int64_t d) { return std::min<int64_t>(d, 0); };
      const int64_t largest = std::min(
          {above(pp - here) - x - y, above(here - pm) + x - y, above(here - mp) - x + y, above(mm - here) + x + y});
      const int64_t least = std::max(
          {below(pp - here) - x - y, below(here - pm) + x - y, below(here - mp) - x + y, below(mm - here) + x + y});
      m.at(i + 1, j + 1) = moved(m.at(i + 1, j + 1), pp + mm - mp - pm, 16 * least, 16 * largest, 64, most);
    }
}

// Rounds to a multiple of `unit`, a power of two, with halves away from 0.
int64_t rounded(int64_t value, int64_t unit) {
  const int64_t up = unit >> 1;
  return (value + (value >= 0 ? up : std::max<int64_t>(up - 1, 0))) & -unit;
}

// Converts sums and differences back to pixels.
void transform_back(const Image &image, bool is_smooth, int64_t scale, int64_t *room) {
  const int levels = levels_of(image.rows, image.columns);
  if (!levels) return;
  image.at(0, 0) = rounded(image.at(0, 0), 2ll << levels);
  for (int level = levels - 1; level >= 0; level--) {
    const Image m{image.data, blocks(image.rows, level), blocks(image.columns, level), image.stride};
    for (int64_t i = 0; i < m.rows; i++) interleave(&m.at(i, 0), m.columns, 1, room);
    for (int64_t j = 0; j < m.columns; j++) interleave(&m.at(0, j), m.rows, m.stride, room);
    if (is_smooth) smooth(m, scale);
    const int64_t unit = 1ll << level;  // for differences of differences; two units for differences, four for sums
    const int shift = level ? 1 : 2;
    uint64_t largest = 0;
    auto put = [&](int64_t i, int64_t j, int64_t sum) {
      const int64_t value = sum >> shift;
      largest |= (uint64_t)(value < 0 ? ~value : value);
      m.at(i, j) = value;
    };
    // A sum and its difference are both odd or both even multiples of the unit. Only the difference keeps the lowest
    // bit, as rounding removed it from the sum.
    auto pair = [&](int64_t i, int64_t j, int64_t k, int64_t l) {
      const int64_t d = rounded(m.at(k, l), 2 * unit), low = d & 2 * unit, h = m.at(i, j);
      const int64_t sum = h >= 0 ? h - low : h + low;
      put(k, l, sum + d), put(i, j, sum - d);
    };
    for (int64_t i = 0; i + 1 < m.rows; i += 2) {
      for (int64_t j = 0; j + 1 < m.columns; j += 2) {
        int64_t x = rounded(m.at(i + 1, j), 2 * unit), y = rounded(m.at(i, j + 1), 2 * unit), h = m.at(i, j);
        const int64_t c = rounded(m.at(i + 1, j + 1), unit), low = c & unit;
        x -= x >= 0 ? low : -low, y -= y >= 0 ? low : -low;
        const int64_t second = (c ^ x ^ y) & 2 * unit;
        h += h >= 0 ? low - second : low ? low - second : second;
        put(i + 1, j + 1, h + x + y + c), put(i + 1, j, h + x - y - c);
        put(i, j + 1, h - x + y - c), put(i, j, h - x - y + c);
      }
      if (m.columns % 2) pair(i, m.columns - 1, i + 1, m.columns - 1);
    }
    if (m.rows % 2) {
      const int64_t i = m.rows - 1;
      for (int64_t j = 0; j + 1 < m.columns; j += 2) pair(i, j, i, j + 1);
      if (m.columns % 2) put(i, m.columns - 1, m.at(i, m.columns - 1));
    }
    if (largest > (uint64_t)kMost) fail("the compressed tile is damaged");
  }
}

int64_t big_endian(const uint8_t *at, int bytes) {
  uint64_t value = 0;
  for (int k = 0; k < bytes; k++) value = value << 8 | at[k];
  return (int64_t)value;
}

}  // namespace

void unhcompress(const uint8_t *data, int64_t size, int64_t n, bool is_smooth, int32_t *to, Scratch &scratch) {
  constexpr int kHead = 2 + 3 * 4 + 8 + 3;
  if (size < kHead || big_endian(data, 2) != kMagic) fail("the compressed tile is damaged");
  const int64_t rows = (int32_t)big_endian(data + 2, 4), columns = (int32_t)big_endian(data + 6, 4);
  const int64_t scale = (int32_t)big_endian(data + 10, 4), sum = big_endian(data + 14, 8);
  const uint8_t *planes = data + 22;
  if (n / kMostPixels > size) fail("the compressed tile has %lld pixels in %lld bytes", (long long)n, (long long)size);
  if (rows < 1 || columns < 1 || rows * columns != n)
    fail("the compressed tile has %lld x %lld pixels instead of %lld", (long long)rows, (long long)columns,
         (long long)n);
  if (std::max({planes[0], planes[1], planes[2]}) > kMostPlanes || sum > kMost || sum < -kMost)
    fail("the compressed tile is damaged");
  int64_t *values = (int64_t *)scratch.get(8 * (n + std::max(rows, columns)), 1);
  std::fill_n(values, n, 0);
  const int64_t top = halved(rows), left = halved(columns), n_codes = halved(top) * halved(left);
  uint8_t *codes = (uint8_t *)scratch.get(2 * n_codes, 3);
  FitsBits bits(data + kHead, size - kHead);
  auto read = [&](int64_t i, int64_t j, int64_t height, int64_t width, int n_planes) {
    read_quadrant(bits, {values + i * columns + j, height, width, columns}, n_planes, codes, codes + n_codes);
  };
  read(0, 0, top, left, planes[0]);
  read(0, left, top, columns - left, planes[1]);
  read(top, 0, rows - top, left, planes[1]);
  read(top, left, rows - top, columns - left, planes[2]);
  if (bits.take(4)) fail("the compressed tile is damaged");
  bits.skip_to_byte();
  const int64_t step = std::max<int64_t>(scale, 1);
  for (int64_t i = 0; i < n; i++) {
    if (!values[i]) continue;
    if (values[i] > kMost / step) fail("the compressed tile is damaged");
    values[i] *= bits.next() ? -step : step;
  }
  if (sum > kMost / step || sum < -(kMost / step)) fail("the compressed tile is damaged");
  values[0] = sum * step;
  transform_back({values, rows, columns, columns}, is_smooth, scale, values + n);
  for (int64_t i = 0; i < n; i++) to[i] = (int32_t)values[i];
}

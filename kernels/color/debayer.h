// SPDX-License-Identifier: Apache-2.0
// Demosaicing: elements of the sensor see one colour each, in tiles of 2 x 2. HW to HWC. Elements whose row and column
// have the parities (row, column) are red; those with both other parities are blue.
#pragma once
#include "core/tensor.h"

enum DebayerAlgorithm : int32_t { BAYER_BILINEAR, BAYER_EDGE_AWARE, BAYER_GRAY, BAYER_CHROMA, BAYER_VNG };

struct DebayerArgs {
  int32_t algorithm;
  int32_t row, column;  // the parity of red elements
};

// Luma of ITU-R BT.601 in 14 bits.
constexpr uint32_t kLumaRed = 4899, kLumaGreen = 9617, kLumaBlue = 1868;

// An element and its neighbours.
struct Mosaic {
  int32_t v, left, right, up, down, diagonals;  // diagonals: the sum of the four diagonal neighbours
};

SHARED int32_t distance(int32_t a, int32_t b) { return a < b ? b - a : a - b; }
SHARED int32_t mean2(int32_t a, int32_t b) { return (a + b + 1) >> 1; }
SHARED int32_t mean4(int32_t sum) { return (sum + 2) >> 2; }
// NPP rounds down. It rounds means of four twice: first along columns in even rows, along rows in odd rows.
SHARED int32_t mean2_down(int32_t a, int32_t b) { return (a + b) >> 1; }
SHARED int32_t corners_chroma(int32_t nw, int32_t ne, int32_t sw, int32_t se, bool is_odd) {
  return is_odd ? mean2_down(mean2_down(nw, ne), mean2_down(sw, se))
                : mean2_down(mean2_down(nw, sw), mean2_down(ne, se));
}

// Index i of n, up to two outside, mirrored at the borders (dcb|abcd|cba).
SHARED int32_t mirrored(int32_t i, int32_t n) {
  i = i < 0 ? -i : i;
  i = i < n ? i : 2 * n - 2 - i;
  return i < 0 ? -i : i;
}

// Green at a red or blue element, from its four neighbours.
SHARED int32_t green_bilinear(const Mosaic &m) { return mean4(m.left + m.right + m.up + m.down); }
SHARED int32_t green_edge_aware(const Mosaic &m) {
  return distance(m.up, m.down) < distance(m.left, m.right) ? mean2(m.up, m.down) : mean2(m.left, m.right);
}
// The mean along the direction in which the element's own colour changes less (elements two on).
SHARED int32_t green_chroma(const Mosaic &m, int32_t left2, int32_t right2, int32_t up2, int32_t down2) {
  const int32_t across = distance(2 * m.v, left2 + right2), along = distance(2 * m.v, up2 + down2);
  const int32_t x = mean2_down(m.left, m.right), y = mean2_down(m.up, m.down);
  return across < along ? x : along < across ? y : mean2_down(x, y);
}

// Gray at a red or blue element. `own`, `other`: luma weights of its colour and of the third colour.
SHARED uint32_t gray_at_color(const Mosaic &m, uint32_t own, uint32_t other) {
  const uint32_t cross = (uint32_t)(m.left + m.right + m.up + m.down);
  return (4u * (uint32_t)m.v * own + cross * kLumaGreen + (uint32_t)m.diagonals * other + (1u << 15)) >> 16;
}
// Gray at a green element. `beside`, `above`: luma weights of the row's and of the column's other elements.
SHARED uint32_t gray_at_green(const Mosaic &m, uint32_t beside, uint32_t above) {
  return (4u * (uint32_t)m.v * kLumaGreen + 2u * (uint32_t)(m.left + m.right) * beside +
          2u * (uint32_t)(m.up + m.down) * above + (1u << 15)) >>
         16;
}

// SPDX-License-Identifier: Apache-2.0
// Contrast limited adaptive histogram equalization (CLAHE): a table per tile of a grid; each element is interpolated
// between the tables of the tiles around it.
#pragma once
#include "core/tensor.h"
#include "filter/border.h"
#include "filter/lab.h"

struct ClaheArgs {
  const uint16_t *tables;  // of L*a*b*
  int32_t forward[9], backward[9];
  int32_t tiles[2];  // along H and W
  float clip_limit;
  int32_t luma;  // change only the lightness of RGB images
};

// The tiles of a plane. Beyond its lower and right border, the plane is reflected.
struct ClaheTiles {
  int64_t h, w, down, across;  // size of the plane; number of tiles
  int64_t tile_h, tile_w;
  int32_t limit;  // maximum count of a bin
  float scale;    // factor of the table

  SHARED ClaheTiles(int64_t height, int64_t width, const ClaheArgs &a)
      : h(height), w(width), down(a.tiles[0]), across(a.tiles[1]) {
    // If one extent is not a multiple of its number of tiles, both are extended (as in OpenCV).
    const bool fits = h % down == 0 && w % across == 0;
    tile_h = (fits ? h : h + down - h % down) / down;
    tile_w = (fits ? w : w + across - w % across) / across;
    const int64_t n = tile_h * tile_w;
    limit = 0x7fffffff;
    if (a.clip_limit > 0) {
      const double most = (double)a.clip_limit * (double)n / 256;
      limit = most < 1 ? 1 : most < (double)n ? (int32_t)most : (int32_t)n;
    }
    scale = 255.0f / (float)n;
  }
};

// Redistributes the clipped counts: every bin gets `each`, and `rest` bins, `step` apart, get one more.
struct ClaheShare {
  int32_t each, rest, step;
  SHARED explicit ClaheShare(int32_t cut) {
    each = cut / 256, rest = cut - each * 256;
    step = rest ? (256 / rest > 1 ? 256 / rest : 1) : 1;
  }
  SHARED int32_t of(int32_t bin) const { return each + (bin % step == 0 && bin / step < rest); }
};

SHARED uint8_t clahe_entry(int32_t sum, float scale) {
  const float x = rintf((float)sum * scale);
  return (uint8_t)(x < 255.0f ? x : 255.0f);
}

// A position between the centres of tiles: the tile before, the tile behind, and the weight of the latter.
struct ClahePlace {
  int32_t low, high;
  float weight;
  SHARED ClahePlace(int64_t i, float per_tile, int64_t tiles) {
    const float x = (float)i * per_tile - 0.5f;
    low = x < 0 ? -1 : (int32_t)x;
    weight = x - (float)low;
    high = low + 1 < (int32_t)tiles ? low + 1 : (int32_t)tiles - 1;
    low = low < 0 ? 0 : low;
  }
};

SHARED uint8_t clahe_mix(float a, float b, float c, float d, float wx, float wy) {
  return (uint8_t)rintf((a * (1 - wx) + b * wx) * (1 - wy) + (c * (1 - wx) + d * wx) * wy);
}

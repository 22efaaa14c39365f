// SPDX-License-Identifier: Apache-2.0
// Pixels from 8-bit planes whose chroma has half of the columns, in one pass over a row.
#pragma once
#include "video/ycbcr.h"

// A row of chroma is interpolated between the rows `near` and `far`: `far` counts 0, 1 or 2 quarters.
struct ChromaRows {
  const uint8_t *near, *far;
};

struct HalfChromaRow {
  const uint8_t *luma;       // at the first pixel, whose column is even
  ChromaRows u, v;           // at the first pixel's sample
  int64_t n;                 // pixels, an even number
  int64_t n_chroma;          // samples from the first one to the picture's edge, at least n / 2
  int far_weight;            // in quarters
  const uint8_t *next_luma;  // of the row that is needed next, as the processor fetches rows late that aren't adjacent
};

// The bytes of pixels, a plane for each channel.
struct Planes {
  uint8_t *r, *g, *b;
};

constexpr int64_t kLeastHalfChroma = 32;  // pixels

// Whether this processor has a loop for it. Chroma lies at the left one of two pixels; results equal colors.cpp's.
bool has_half_chroma_loop();
// To interleaved pixels or to planes. Require at least kLeastHalfChroma pixels.
void half_chroma_to_rgb(const HalfChromaRow &row, const ycbcr::Coefficients &k, uint8_t *out);
void half_chroma_to_rgb(const HalfChromaRow &row, const ycbcr::Coefficients &k, const Planes &out);

#if defined(__x86_64__)
void half_chroma_avx2(const HalfChromaRow &row, const ycbcr::Coefficients &k, uint8_t *out);
void half_chroma_avx2(const HalfChromaRow &row, const ycbcr::Coefficients &k, const Planes &out);
// At least twice as many pixels.
void half_chroma_avx512(const HalfChromaRow &row, const ycbcr::Coefficients &k, uint8_t *out);
void half_chroma_avx512(const HalfChromaRow &row, const ycbcr::Coefficients &k, const Planes &out);
#endif

// SPDX-License-Identifier: Apache-2.0
// Tables of 256 bytes on the CPU: made from an image, and applied to it.
#pragma once
#include "augment/augment.h"
#include "core/kernel.h"

// Counts of values per channel. Neighbouring pixels go to different parts: incrementing the same counter again would
// wait for the previous increment.
struct Histograms {
  static constexpr int kParts = 4;
  uint32_t *counts;
  int channels;
  Histograms(Scratch &scratch, int n) : counts(scratch.array<uint32_t>((int64_t)kParts * 256 * n, 2)), channels(n) {}
  // Requires that the parts were summed.
  const uint32_t *of(int channel) const { return counts + 256 * channel; }
};

void sum_channels(int64_t *sums, const uint8_t *in, int64_t n_pixels, int channels);
// Makes one table per channel. Requires augment_is_per_channel(kind).
void make_tables(uint8_t *tables, int kind, const uint8_t *in, int64_t n_pixels, int channels, Histograms &h);
void apply_table(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t *table);
void apply_tables(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t *tables, int channels);

// SPDX-License-Identifier: Apache-2.0
// Copies pieces of memory of any length between any addresses in one launch.
#include "core/gpu_segments.h"

struct Piece {
  uint8_t *to;
  const uint8_t *from;
  uint64_t n;  // bytes, less than 2^32
};

struct Pieces {
  const Piece *pieces;
  uint32_t n, longest;
};

extern "C" __global__ void __launch_bounds__(256, 4) copy_pieces(Pieces p) {
  copy_segments<uint8_t, 32, 256, 3, 384>(p.n, p.longest, [&](uint32_t i) {
    const Piece x = p.pieces[i];
    return Segment<uint8_t>{x.to, x.from, (uint32_t)x.n};
  });
}

// SPDX-License-Identifier: Apache-2.0
// The CPU half of the hybrid JPEG decoder: Huffman decoding of the blocks that a window needs, into a packed form of a
// quarter of their size. kernels/decode/jpeg_pixels.cu is the other half.
#pragma once
#include "core/tensor.h"

// What the GPU must know of a picture. Components and blocks are those of the file; blocks outside the window are not
// stored. `bytes` is 0 if it is no flawless baseline file of one or three components: `decode` must decode it and
// decides about errors.
//
// A picture's bytes are one uint32 per stored block, component by component and row by row: (index of its first word)
// << 7 | (number of its further words); then the words, uint16. A block's first word is its DC coefficient. Each of the
// others is an AC coefficient: (position in natural order) << 10 | (low 10 bits of its value). A word of position 0
// holds the high 6 bits of the preceding value; without it, bit 9 is the sign.
//
// If `mcu_blocks` is not 0, the GPU has decoded the words (see jpeg_huffman.cu): then there are two uint32 for each
// block of the whole picture in scan order: the index of its first AC word, and (number of AC words) << 16 | (DC
// coefficient).
struct JpegRecord {
  int64_t offset, bytes;  // of the picture in the arena
  int32_t n_components, colour;
  int32_t n_blocks;                // stored, of all components
  int32_t max_h, max_v;            // largest sampling factors
  int32_t h[3], v[3];              // sampling factors
  int32_t width[3], height[3];     // samples of the whole component
  int32_t first_x[3], first_y[3];  // first stored block
  int32_t wide[3], high[3];        // stored blocks
  int32_t first_block[3];          // number of the component's first block among the stored ones
  int32_t n_places;                // uint32 before the words
  int32_t mcu_blocks;              // blocks of an MCU, or 0
  int32_t mcus_per_row;            // of the whole picture
  uint16_t quantization[192];      // per component, in natural order
};

enum JpegColour : int32_t { JPEG_GRAY, JPEG_YCC, JPEG_RGB };

constexpr int kJpegCountBits = 7, kJpegPlaceBits = 10;

// The window (oriented, in pixels) and the whole image as in DecodeArgs. The picture's bytes are appended to `arena`,
// memory of `capacity` bytes whose first `*used` are taken; all three are shared by the batch. A picture that does not
// fit is left to `decode`, too.
struct JpegCoefficientsArgs {
  int64_t y, x, window_height, window_width;
  int64_t arena, capacity, used;  // addresses, except capacity
  int32_t format, height, width, orientation;
  int32_t gray;  // colour is not needed
};

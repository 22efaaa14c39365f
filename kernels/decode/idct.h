// SPDX-License-Identifier: Apache-2.0
// The inverse DCT of libjpeg's accurate integer method, bit-exact: C. Loeffler, A. Ligtenberg, G. Moschytz, "Practical
// fast 1-D DCT algorithms with 11 multiplications" (ICASSP 1989), columns first, in 13-bit fixed point, with 16 bits
// between the passes. All instruction sets give the same bits, even if damaged data overflows.
#pragma once
#include <cstdint>

// Dequantises a block (64 coefficients in rows, 32-byte aligned), writes its samples into rows `stride` apart and
// clears the block.
typedef void (*InverseDct)(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride);

// For blocks of size x size samples: 8, or for scaled-down images 4, 2 or 1. The fastest for this processor.
InverseDct inverse_dct(int size);

// The sample of a block that has only its first coefficient.
inline uint8_t flat_sample(int16_t dc, uint16_t quantiser) {
  int16_t first_pass = (int16_t)((uint32_t)dc * quantiser << 2);
  int sample = ((first_pass + 16) >> 5) + 128;
  return (uint8_t)(sample < 0 ? 0 : sample > 255 ? 255 : sample);
}

#if defined(__x86_64__)
void inverse_dct_8x8_avx2(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride);
void inverse_dct_4x4_avx2(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride);
void inverse_dct_2x2_avx2(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride);
#elif defined(__aarch64__)
void inverse_dct_8x8_neon(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride);
void inverse_dct_4x4_neon(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride);
void inverse_dct_2x2_neon(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride);
#endif

// SPDX-License-Identifier: Apache-2.0
// Products of a word's bytes with 16- or 8-bit numbers and their sum with `c`, one instruction each, so that bytes need
// not be unpacked. Bytes are unsigned, the first is the lowest.
#pragma once
#include "core/gpu.h"

// Packs two 16-bit numbers.
DEVICE constexpr int32_t halves(int32_t first, int32_t second) {
  return (int32_t)((uint32_t)second << 16 | ((uint32_t)first & 0xffff));
}

// c + first half of w * byte 0 of b + second half * byte 1; HIGH: bytes 2 and 3. Halves are signed.
template <bool HIGH>
DEVICE int32_t dot_halves(int32_t w, uint32_t b, int32_t c) {
#ifdef __CUDA_ARCH__
  int32_t d;
  if constexpr (HIGH)
    asm("dp2a.hi.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(w), "r"(b), "r"(c));
  else
    asm("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(w), "r"(b), "r"(c));
  return d;
#else
  const uint32_t at = HIGH ? b >> 16 : b;
  return c + (int16_t)w * (int32_t)(at & 255) + (int16_t)(w >> 16) * (int32_t)(at >> 8 & 255);
#endif
}

// The same for unsigned halves.
template <bool HIGH>
DEVICE uint32_t dot_unsigned_halves(uint32_t w, uint32_t b, uint32_t c) {
#ifdef __CUDA_ARCH__
  uint32_t d;
  if constexpr (HIGH)
    asm("dp2a.hi.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(w), "r"(b), "r"(c));
  else
    asm("dp2a.lo.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(w), "r"(b), "r"(c));
  return d;
#else
  const uint32_t at = HIGH ? b >> 16 : b;
  return c + (w & 0xffff) * (at & 255) + (w >> 16) * (at >> 8 & 255);
#endif
}

// c + the dot product of the four bytes of b with the signed bytes of w.
DEVICE int32_t dot_bytes(uint32_t b, int32_t w, int32_t c) {
#ifdef __CUDA_ARCH__
  int32_t d;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(b), "r"(w), "r"(c));
  return d;
#else
  for (int k = 0; k < 4; k++) c += (int32_t)(b >> 8 * k & 255) * (int8_t)(w >> 8 * k);
  return c;
#endif
}

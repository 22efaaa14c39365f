// SPDX-License-Identifier: Apache-2.0
#include "read/crc32c.h"

#include <cstring>

#include "core/export.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // bit-reversed
constexpr int64_t kStretch = 1024;            // bytes of each of three parallel stretches

struct Tables {
  uint32_t of_byte[8][256];     // effect of a byte on the state, k bytes later
  uint32_t of_stretch[4][256];  // effect of kStretch zeros on a byte of the state
  Tables() {
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; bit++) c = c >> 1 ^ (c & 1 ? kPolynomial : 0);
      of_byte[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
      for (int i = 0; i < 256; i++) of_byte[k][i] = of_byte[k - 1][i] >> 8 ^ of_byte[0][of_byte[k - 1][i] & 255];
    uint32_t of_bit[32];
    for (int bit = 0; bit < 32; bit++) {
      uint32_t c = 1u << bit;
      for (int64_t n = 0; n < kStretch; n++) c = c >> 8 ^ of_byte[0][c & 255];
      of_bit[bit] = c;
    }
    for (int k = 0; k < 4; k++)
      for (int i = 0; i < 256; i++) {
        uint32_t c = 0;
        for (int bit = 0; bit < 8; bit++) c ^= i >> bit & 1 ? of_bit[8 * k + bit] : 0;
        of_stretch[k][i] = c;
      }
  }
  uint32_t after_stretch(uint32_t c) const {
    return of_stretch[0][c & 255] ^ of_stretch[1][c >> 8 & 255] ^ of_stretch[2][c >> 16 & 255] ^ of_stretch[3][c >> 24];
  }
};

const Tables &tables() {
  static const Tables t;
  return t;
}

uint64_t load(const uint8_t *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}

uint32_t by_tables(uint32_t c, const uint8_t *p, int64_t n) {
  const auto &t = tables().of_byte;
  for (; n >= 8; p += 8, n -= 8) {
    const uint64_t v = load(p) ^ c;
    c = t[7][v & 255] ^ t[6][v >> 8 & 255] ^ t[5][v >> 16 & 255] ^ t[4][v >> 24 & 255] ^ t[3][v >> 32 & 255] ^
        t[2][v >> 40 & 255] ^ t[1][v >> 48 & 255] ^ t[0][v >> 56];
  }
  for (; n > 0; p++, n--) c = c >> 8 ^ t[0][(c ^ *p) & 255];
  return c;
}

// The processor's instruction has a latency of three: process three stretches at a time, then combine their states.
#if defined(__x86_64__)
#define HAS_INSTRUCTION __builtin_cpu_supports("sse4.2")
#define WITH_INSTRUCTION __attribute__((target("sse4.2")))
#define STEP8(c, v) ((uint32_t)_mm_crc32_u64(c, v))
#define STEP1(c, v) _mm_crc32_u8(c, v)
#elif defined(__aarch64__) && defined(__linux__)
#define HAS_INSTRUCTION (getauxval(AT_HWCAP) & (1 << 7))
#define WITH_INSTRUCTION __attribute__((target("+crc")))
#define STEP8(c, v) __crc32cd(c, v)
#define STEP1(c, v) __crc32cb(c, v)
#endif

#if defined(WITH_INSTRUCTION)
WITH_INSTRUCTION uint32_t by_instruction(uint32_t c, const uint8_t *p, int64_t n) {
  const Tables &t = tables();
  for (; n >= 3 * kStretch; p += 3 * kStretch, n -= 3 * kStretch) {
    uint32_t a = c, b = 0, d = 0;
    for (int64_t i = 0; i < kStretch; i += 8) {
      a = STEP8(a, load(p + i));
      b = STEP8(b, load(p + kStretch + i));
      d = STEP8(d, load(p + 2 * kStretch + i));
    }
    c = t.after_stretch(t.after_stretch(a) ^ b) ^ d;
  }
  for (; n >= 8; p += 8, n -= 8) c = STEP8(c, load(p));
  for (; n > 0; p++, n--) c = STEP1(c, *p);
  return c;
}
#endif

}  // namespace

uint32_t crc32c(const void *data, int64_t size) {
#if defined(WITH_INSTRUCTION)
  static const bool has_instruction = HAS_INSTRUCTION;
  if (has_instruction) return ~by_instruction(~0u, (const uint8_t *)data, size);
#endif
  return ~by_tables(~0u, (const uint8_t *)data, size);
}

// For tests: selects the implementation.
EXPORT uint32_t checksum_crc32c(const void *data, int64_t size, int32_t is_by_tables) {
  return is_by_tables ? ~by_tables(~0u, (const uint8_t *)data, size) : crc32c(data, size);
}
EXPORT_SHORT(checksum_crc32c)

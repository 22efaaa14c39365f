// SPDX-License-Identifier: Apache-2.0
// Huffman codes on the GPU: a bit reader, and look-up tables in shared memory. See jpeg_huffman.cu.
#pragma once
#include "core/gpu.h"
#include "decode/jpeg_huffman.h"

constexpr int kLook = 10;  // bits per look-up

// Entry of a look-up table. Lower half, for the first symbol: bits of code and value together, bits of the value, and
// the step of the position in the block. Upper half, for all symbols with complete codes: their bits and their step. 0:
// a long code.
constexpr int kSizeAt = 5, kFirstStepAt = 9, kLengthAt = 16, kStepAt = 25;
constexpr int kEndOfBlock = 64, kIrregular = 127;  // steps

struct Codes {
  uint32_t look[kScanTables << kLook];
  uint8_t natural[64];  // directly after `look`
  uint32_t limit[18 * kScanTables];
  int32_t offset[18 * kScanTables];
  uint8_t symbols[256 * kScanTables];
};

// Maps a position in zigzag order to one in row order (figure A.6 of ITU-T T.81).
__constant__ uint8_t kNaturalPlace[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                          12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                          35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                          58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

DEVICE uint32_t big_endian(uint32_t x) { return __byte_perm(x, 0, 0x0123); }
// The upper `size` bits; `size` is 0 to 31.
DEVICE uint32_t upper(uint32_t bits, int size) { return __funnelshift_l(bits, 0, size); }

// Shows the next 32 bits; advances by at most 31.
struct BitReader {
  const uint32_t *data;
  uint32_t first, second, ahead;
  int32_t bit;
  DEVICE void begin(const uint32_t *from, int32_t at) {
    data = from, bit = at;
    const uint32_t *words = data + (at >> 5);
    first = big_endian(__ldg(words)), second = big_endian(__ldg(words + 1)), ahead = __ldg(words + 2);
  }
  DEVICE uint32_t peek() const { return __funnelshift_l(second, first, bit); }
  DEVICE void drop(int n) {
    const int32_t before = bit;
    bit += n;
    if (((before ^ bit) & 32) == 0) return;
    first = second, second = big_endian(ahead), ahead = __ldg(data + ((uint32_t)bit >> 5) + 2);
  }
};

// The first symbol's half of an entry of `look`.
DEVICE uint32_t first_symbol(int table, int length, int symbol) {
  const int size = symbol & 15, run = symbol >> 4;
  int step = run + 1;
  if (size == 0 && run != 15) step = symbol == 0 ? kEndOfBlock : kIrregular;
  if (table < 2) step = 1;
  return length + size | size << kSizeAt | step << kFirstStepAt;
}
DEVICE int first_length(uint32_t found) { return found & 31; }
DEVICE int first_step(uint32_t found) { return found >> kFirstStepAt & 127; }
DEVICE int all_lengths(uint32_t found) { return (int)__byte_perm(found, 0, 0x4442); }

// The entry for a code of more than kLook bits.
__device__ __noinline__ uint32_t long_code(const Codes &codes, int table, uint32_t bits) {
  const uint32_t *limit = codes.limit + 18 * table;
  bits >>= 16;
  int length = kLook + 1;
  while (length <= 16 && bits >= limit[length]) length++;
  uint32_t first = 16 | kIrregular << kFirstStepAt;
  if (length <= 16)
    first =
        first_symbol(table, length,
                     codes.symbols[256 * table + ((bits >> (16 - length)) + codes.offset[18 * table + length] & 255)]);
  return first | first_length(first) << kLengthAt | (uint32_t)first_step(first) << kStepAt;
}

// The tables; their address in shared memory is computed once.
struct Looks {
  const Codes &codes;
#ifdef __CUDA_ARCH__
  uint32_t begin;
  DEVICE explicit Looks(const Codes &c) : codes(c), begin((uint32_t)__cvta_generic_to_shared(c.look)) {
    asm("" : "+r"(begin));
  }
  DEVICE uint32_t at(uint32_t i) const {
    return *static_cast<const uint32_t *>(__cvta_shared_to_generic(begin + 4 * i));
  }
  DEVICE uint32_t natural(uint32_t place) const {
    return *static_cast<const uint8_t *>(__cvta_shared_to_generic(begin + sizeof codes.look + place));
  }
#else
  DEVICE explicit Looks(const Codes &c) : codes(c) {}
  DEVICE uint32_t at(uint32_t i) const { return codes.look[i]; }
  DEVICE uint32_t natural(uint32_t place) const { return codes.natural[place]; }
#endif
  DEVICE uint32_t operator()(uint32_t table, uint32_t bits) const {
    const uint32_t found = at(table + (bits >> (32 - kLook)));
    return found ? found : long_code(codes, table >> kLook, bits);
  }
};

// Called by all threads of a block of kEntropyThreads.
DEVICE void read_codes(Codes &codes, const JpegScan &s) {
  const int t = threadIdx.x;
  for (int i = t; i < 18 * kScanTables; i += kEntropyThreads)
    codes.limit[i] = s.limit[i], codes.offset[i] = s.offset[i];
  for (int i = t; i < 256 * kScanTables; i += kEntropyThreads) codes.symbols[i] = s.symbols[i];
  if (t < 64) codes.natural[t] = kNaturalPlace[t];
  __syncthreads();
  uint16_t *halves = reinterpret_cast<uint16_t *>(codes.look);
  for (int i = t; i < kScanTables << kLook; i += kEntropyThreads) {
    const int table = i >> kLook;
    const uint32_t bits = (uint32_t)(i & ((1 << kLook) - 1)) << (16 - kLook);
    int length = 1;
    while (length <= kLook && bits >= codes.limit[18 * table + length]) length++;
    uint32_t first = 0;
    if (length <= kLook)
      first = first_symbol(
          table, length,
          codes.symbols[256 * table + ((bits >> (16 - length)) + codes.offset[18 * table + length] & 255)]);
    halves[2 * i] = (uint16_t)first;
  }
  __syncthreads();
  for (int i = t; i < kScanTables << kLook; i += kEntropyThreads) {
    const int table = i >> kLook;
    int length = 0, step = 0;
    do {
      // The bits after those looked at don't affect a code that ends before them.
      const uint32_t next = halves[2 * (table << kLook | i << length & (1 << kLook) - 1)];
      const int end = length + first_length(next), size = next >> kSizeAt & 15, by = first_step(next);
      if (next == 0 || end - size > kLook || end > 31) break;
      if (by < kEndOfBlock && step + by >= kEndOfBlock) break;
      if (by == kIrregular && length) break;
      length = end, step += by;
    } while (table >= 2 && step < kEndOfBlock && length < kLook);
    halves[2 * i + 1] = (uint16_t)(length | step << kStepAt - kLengthAt);
  }
  __syncthreads();
}

// SPDX-License-Identifier: Apache-2.0
// Huffman decoding of a baseline scan by many threads at once. Each takes a piece of the bits and begins as if a block
// began there; wrong as that is, Huffman codes fall into step soon. Then each begins anew where the one before it has
// ended, until nothing changes any more: what is reached from the first bit by unchanged ends is right. (S. T. Klein,
// Y. Wiseman: Parallel Huffman decoding with applications to JPEG files, The Computer Journal 46, 2003; the state
// between symbols, and rounds until nothing changes: A. Weissenberger, B. Schmidt: Accelerating JPEG decompression on
// GPUs, HiPC 2021.) A last round writes, and a sum over the DC differences ends it.
//
// One block of threads a picture. Scratch: the packed coefficients (places, then words; see JpegRecord).
#include "core/gpu.h"
#include "decode/jpeg_huffman.h"

constexpr int kThreads = 256;
constexpr int kLook = 10;                              // bits of a code that one look-up decides
constexpr int kLeastBits = 256, kMostBits = 8 * 2048;  // of a thread's piece

// From the place in a block to the one in rows (figure A.6 of ITU-T T.81).
__constant__ uint8_t kNaturalPlace[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                          12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                          35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                          58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

struct Codes {
  uint16_t look[kScanTables << kLook];  // length << 8 | symbol; 0: the code is longer
  uint32_t limit[18 * kScanTables];
  int32_t offset[18 * kScanTables];
  uint8_t symbols[256 * kScanTables];
  uint8_t natural[64], dc[16], ac[16], component[16];
};

// Where a thread stands between two symbols: the next bit, the block of the MCU, the place in the block.
struct State {
  int32_t bit, block, place;
  DEVICE bool operator!=(const State &o) const { return bit != o.bit || block != o.block || place != o.place; }
};

DEVICE uint32_t big_endian(uint32_t x) { return __byte_perm(x, 0, 0x0123); }

// The next 32 bits, moving on by at most 31.
struct BitReader {
  const uint32_t *next;
  uint32_t first, second, ahead;
  int32_t bit;
  DEVICE void begin(const uint32_t *data, int32_t at) {
    bit = at;
    next = data + (at >> 5);
    first = big_endian(__ldg(next)), second = big_endian(__ldg(next + 1)), ahead = __ldg(next + 2);
    next += 3;
  }
  DEVICE uint32_t peek() const {
#ifdef __CUDA_ARCH__
    return __funnelshift_l(second, first, bit & 31);
#else
    return (uint32_t)((((uint64_t)first << 32 | second) << (bit & 31)) >> 32);
#endif
  }
  DEVICE void drop(int n) {
    const int before = bit & 31;
    bit += n;
    if (before + n < 32) return;
    first = second, second = big_endian(ahead), ahead = __ldg(next++);
  }
};

// The code that `bits` begins with: length << 8 | symbol; 0: there is none.
DEVICE int long_code(const Codes &codes, int table, uint32_t bits) {
  const uint32_t *limit = codes.limit + 18 * table;
  bits >>= 16;
  int length = kLook + 1;
  while (length <= 16 && bits >= limit[length]) length++;
  if (length > 16) return 0;
  return length << 8 | codes.symbols[256 * table + ((bits >> (16 - length)) + codes.offset[18 * table + length] & 255)];
}

// What a thread has met: how many blocks ended, how many words they and the last one take.
struct Counts {
  int32_t blocks, words;
};

// Where the writing round stands.
struct Output {
  uint32_t *places;
  uint16_t *words;
  int32_t n_blocks, most_words, block, word, end_bit;
  bool bad;
};

// Goes on from `s` until a symbol begins at `limit` or behind it. Data that makes no sense ends a block, unless it is
// being written: then it is bad.
template <bool WRITE>
DEVICE Counts decode(const Codes &codes, const uint32_t *data, int mcu_blocks, State &s, int32_t limit, Output &out) {
  Counts n = {0, 0};
  BitReader in;
  in.begin(data, s.bit);
  int block = s.block, place = s.place;
  while (in.bit < limit) {
    if (WRITE && out.block >= out.n_blocks) break;
    const int table = place == 0 ? codes.dc[block] : codes.ac[block];
    const uint32_t bits = in.peek();
    int code = codes.look[(table << kLook) + (bits >> (32 - kLook))];
    if (code == 0) code = long_code(codes, table, bits);
    const int length = code >> 8, symbol = code & 255, size = symbol & 15, run = symbol >> 4;
    bool irregular = code == 0;
    in.drop(irregular ? 16 : length + size);
    bool ends = irregular;
    if (place == 0 || symbol != 0) {
      const int at = place + run;
      irregular |= at > 63 || (size == 0 && run != 15 && place != 0);
      if (place == 0 || size != 0) {
        if (WRITE && !irregular) {
          const int extra = size ? (int)(bits << length >> (32 - size)) : 0;
          const int value = size && extra >> (size - 1) == 0 ? extra - (1 << size) + 1 : extra;
          if (out.word + 2 > out.most_words) {
            out.bad = true;
            break;
          }
          if (place == 0) {
            out.places[out.block] = out.word;
            out.words[out.word++] = (uint16_t)value;
          } else {
            out.words[out.word++] = (uint16_t)(codes.natural[at] << kJpegPlaceBits | value & 1023);
            if (size >= kJpegPlaceBits) out.words[out.word++] = (uint16_t)(value >> kJpegPlaceBits & 63);
          }
        }
        n.words += place != 0 && size >= kJpegPlaceBits ? 2 : 1;
      }
      place = at + 1;
      ends |= irregular || place >= 64;
    } else {
      ends = true;
    }
    if (WRITE && irregular) {
      out.bad = true;
      break;
    }
    if (ends) {
      place = 0;
      block = block + 1 == mcu_blocks ? 0 : block + 1;
      n.blocks++;
      if (WRITE) {
        out.block++;
        if (out.block == out.n_blocks) {
          out.places[out.n_blocks] = out.word;
          out.bad |= in.bit > out.end_bit;
        }
      }
    }
  }
  s = {in.bit, block, place};
  return n;
}

// The sum of `v` over the threads before this one; `total` over all. `sums` is shared, for a value per warp.
DEVICE int sum_before(int v, int *sums, int &total) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int sum = v;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const int other = __shfl_up_sync(~0u, sum, by);
    if (lane >= by) sum += other;
  }
  __syncthreads();
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  int before = 0;
  total = 0;
#pragma unroll
  for (int w = 0; w < kThreads / 32; w++) {
    if (w < warp) before += sums[w];
    total += sums[w];
  }
  return before + sum - v;
}

DEVICE void read_codes(Codes &codes, const JpegScan &s) {
  const int t = threadIdx.x;
  for (int i = t; i < 18 * kScanTables; i += kThreads) codes.limit[i] = s.limit[i], codes.offset[i] = s.offset[i];
  for (int i = t; i < 256 * kScanTables; i += kThreads) codes.symbols[i] = s.symbols[i];
  if (t < 64) codes.natural[t] = kNaturalPlace[t];
  if (t < 16) codes.dc[t] = s.dc[t], codes.ac[t] = s.ac[t], codes.component[t] = s.component[t];
  __syncthreads();
  for (int i = t; i < kScanTables << kLook; i += kThreads) {
    const int table = i >> kLook;
    const uint32_t bits = (uint32_t)(i & ((1 << kLook) - 1)) << (16 - kLook);
    int length = 1;
    while (length <= kLook && bits >= codes.limit[18 * table + length]) length++;
    int code = 0;
    if (length <= kLook)
      code = length << 8 |
             codes.symbols[256 * table + ((bits >> (16 - length)) + codes.offset[18 * table + length] & 255)];
    codes.look[i] = (uint16_t)code;
  }
  __syncthreads();
}

// Differences to values, component by component. False: out of range.
DEVICE bool sum_differences(const Codes &codes, const JpegScan &s, const uint32_t *places, uint16_t *words, int *sums) {
  const int n_mcus = s.n_blocks / s.mcu_blocks, each = (n_mcus + kThreads - 1) / kThreads;
  const int begin = min((int)threadIdx.x * each, n_mcus) * s.mcu_blocks,
            end = min(begin + each * s.mcu_blocks, s.n_blocks);
  int last[3] = {0, 0, 0}, total;
  bool good = true;
  for (int i = begin, b = 0; i < end; i++, b = b + 1 == s.mcu_blocks ? 0 : b + 1) {
    const int difference = (int16_t)words[places[i]], c = codes.component[b];
#pragma unroll
    for (int k = 0; k < 3; k++) last[k] += c == k ? difference : 0;
  }
#pragma unroll
  for (int k = 0; k < 3; k++) last[k] = sum_before(last[k], sums, total);
  for (int i = begin, b = 0; i < end; i++, b = b + 1 == s.mcu_blocks ? 0 : b + 1) {
    uint16_t *word = words + places[i];
    const int difference = (int16_t)*word, c = codes.component[b];
    int value = 0;
#pragma unroll
    for (int k = 0; k < 3; k++) {
      last[k] += c == k ? difference : 0;
      value += c == k ? last[k] : 0;
    }
    good &= value == (int16_t)value;
    *word = (uint16_t)value;
  }
  return good;
}

// Grid: y the samples. kThreads threads.
extern "C" __global__ void __launch_bounds__(kThreads, 4) jpeg_huffman(Launch l) {
  __shared__ Codes codes;
  __shared__ State ends[kThreads];
  __shared__ int sums[kThreads / 32], any_bad;
  const int t = threadIdx.x;
  const JpegHuffmanArgs &a = static_cast<const JpegHuffmanArgs *>(l.args[0])[blockIdx.y];
  const JpegRecord &r = *reinterpret_cast<const JpegRecord *>(a.record);
  const JpegScan &s = *reinterpret_cast<const JpegScan *>(a.scan);
  if (s.n_blocks == 0) return;
  const uint32_t *data = reinterpret_cast<const uint32_t *>(a.data);
  uint32_t *places = reinterpret_cast<uint32_t *>(static_cast<uint8_t *>(l.scratch) + a.places);
  const int32_t n_bits = (int32_t)s.bits;
  if (t == 0) any_bad = 0;
  read_codes(codes, s);

  int piece = ((n_bits + kThreads - 1) / kThreads + 31) / 32 * 32;
  piece = max(kLeastBits, min(piece, kMostBits));
  Output out = {
      places, reinterpret_cast<uint16_t *>(places + r.n_places), s.n_blocks, (int32_t)a.most_words, 0, 0, n_bits,
      false};
  State carried = {0, 0, 0};
  int blocks_before = 0, words_before = 0;
  for (int32_t first = 0; first < n_bits && blocks_before < s.n_blocks; first += piece * kThreads) {
    const int n = min((n_bits - first + piece - 1) / piece, kThreads);
    const int32_t limit = min(first + (t + 1) * piece, n_bits);
    const bool works = t < n;
    State start = {first + t * piece, 0, 0};
    if (t == 0) start = carried;
    Counts counts = {0, 0};
    bool changed = works;
    for (;;) {
      if (changed) {
        State end = start;
        counts = decode<false>(codes, data, s.mcu_blocks, end, limit, out);
        ends[t] = end;
      }
      __syncthreads();
      changed = works && t > 0 && ends[t - 1] != start;
      if (changed) start = ends[t - 1];
      if (!__syncthreads_or(changed)) break;
    }
    int blocks, words;
    out.block = blocks_before + sum_before(counts.blocks, sums, blocks);
    out.word = words_before + sum_before(counts.words, sums, words);
    carried = ends[n - 1];
    __syncthreads();
    if (works) decode<true>(codes, data, s.mcu_blocks, start, limit, out);
    blocks_before += blocks, words_before += words;
  }
  if (blocks_before < s.n_blocks) out.bad = true;
  if (out.bad) any_bad = 1;
  __syncthreads();
  if (!any_bad && !sum_differences(codes, s, places, out.words, sums)) any_bad = 1;
  __syncthreads();
  if (!any_bad) return;
  for (int i = t; i < r.n_places; i += kThreads) places[i] = 0;
  if (t == 0) *const_cast<uint8_t *>(a.status) = 1;
}

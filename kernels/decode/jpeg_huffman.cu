// SPDX-License-Identifier: Apache-2.0
// Huffman decoding of a baseline scan by many threads at once. Each takes a piece of the bits and begins as if a block
// of an MCU began there; wrong as that is, Huffman codes fall into step soon. Then each begins anew where the one
// before it has ended, until nothing changes any more: what is reached from the first bit by unchanged ends is right.
// (S. T. Klein, Y. Wiseman: Parallel Huffman decoding with applications to JPEG files, The Computer Journal 46, 2003;
// rounds until nothing changes: A. Weissenberger, B. Schmidt: Accelerating JPEG decompression on GPUs, HiPC 2021.)
//
// A piece has the blocks that begin in it. Who begins anew stops where a block begins as it did before: what follows is
// known. Until all is known only lengths are looked up, of several symbols at a time; a last round writes coefficients,
// each thread into memory of its own, and sums of the DC differences end it.
//
// One block of threads a picture. Scratch: what is known of the blocks, then their words (see JpegRecord).
#include "core/gpu.h"
#include "decode/jpeg_huffman.h"

constexpr int kThreads = kEntropyThreads;
constexpr int kLook = 10;  // bits that one look-up decides
constexpr int kMarks = 3;  // places in a piece where it is noticed that nothing changes any more
constexpr int kDone = kMarks + 1;
constexpr int kMostMcu = 10;

// Where a block begins: the bit, and above kBitBits its number in the MCU.
constexpr int kBitBits = 28;
constexpr uint32_t kBitMask = (1u << kBitBits) - 1;

// What the next bits begin with. Of one symbol: the bits of its code and its value, those of the value, how far it
// moves the place in the block. Of all symbols whose codes are known: their bits, and how far they move the place. 0: a
// long code.
constexpr int kSizeAt = 5, kStepAt = 9, kAllAt = 16, kAllStepAt = 24;
constexpr int kEndOfBlock = 64, kIrregular = 127;  // steps

struct Codes {
  uint32_t look[kScanTables << kLook];
  uint32_t limit[18 * kScanTables];
  int32_t offset[18 * kScanTables];
  uint8_t symbols[256 * kScanTables], natural[64];
};

// Of the pieces that are decoded at a time: where their first blocks begin and those of the next pieces, how many there
// are; the first blocks behind the marks, and how many are before; the pieces to be done.
struct Pieces {
  uint32_t starts[kThreads], ends[kThreads], marks[kMarks][kThreads];
  int32_t blocks[kThreads];
  uint16_t before[kMarks][kThreads];
  uint16_t todo[kThreads];
  int32_t n_todo[2];
};

// From the place in a block to the one in rows (figure A.6 of ITU-T T.81).
__constant__ uint8_t kNaturalPlace[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                          12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                          35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                          58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// The blocks of an MCU: how many, and of each one bit or two.
struct Mcu {
  int blocks;
  uint32_t dc, ac, components;
  DEVICE void of(const JpegScan &s) {
    blocks = s.mcu_blocks, dc = ac = components = 0;
    for (int b = 0; b < blocks; b++)
      dc |= (uint32_t)s.dc[b] << b, ac |= (uint32_t)(s.ac[b] - 2) << b, components |= (uint32_t)s.component[b] << 2 * b;
  }
  // Where tables begin among the look-ups.
  DEVICE uint32_t dc_table(int block) const { return (dc >> block & 1) << kLook; }
  DEVICE uint32_t ac_table(int block) const { return (2 | (ac >> block & 1)) << kLook; }
  DEVICE int component(int block) const { return components >> 2 * block & 3; }
  DEVICE int behind(int block) const { return block + 1 == blocks ? 0 : block + 1; }
};

DEVICE uint32_t big_endian(uint32_t x) { return __byte_perm(x, 0, 0x0123); }
// The upper `size` bits, 0 to 31.
DEVICE uint32_t upper(uint32_t bits, int size) { return __funnelshift_l(bits, 0, size); }

// The next 32 bits, moving on by at most 31.
struct BitReader {
  const uint32_t *data;
  uint32_t first, second, ahead;
  int32_t bit;
  DEVICE void begin(const uint32_t *from, int32_t at) {
    data = from, bit = at;
    const uint32_t *words = data + (at >> 5);
    first = big_endian(__ldg(words)), second = big_endian(__ldg(words + 1)), ahead = __ldg(words + 2);
  }
  DEVICE uint32_t peek() const { return __funnelshift_l(second, first, bit & 31); }
  DEVICE void drop(int n) {
    const int32_t before = bit;
    bit += n;
    if (((before ^ bit) & 32) == 0) return;
    first = second, second = big_endian(ahead), ahead = __ldg(data + ((uint32_t)bit >> 5) + 2);
  }
};

// How `look` describes a symbol alone.
DEVICE uint32_t one_symbol(int table, int length, int symbol) {
  const int size = symbol & 15, run = symbol >> 4;
  int step = run + 1;
  if (size == 0 && run != 15) step = symbol == 0 ? kEndOfBlock : kIrregular;
  if (table < 2) step = 1;
  return length + size | size << kSizeAt | step << kStepAt;
}

// The same of a code of at least kLook bits, as one symbol and as all.
__device__ __noinline__ uint32_t long_code(const Codes &codes, int table, uint32_t bits) {
  const uint32_t *limit = codes.limit + 18 * table;
  bits >>= 16;
  int length = kLook + 1;
  while (length <= 16 && bits >= limit[length]) length++;
  uint32_t one = 16 | kIrregular << kStepAt;
  if (length <= 16)
    one = one_symbol(table, length,
                     codes.symbols[256 * table + ((bits >> (16 - length)) + codes.offset[18 * table + length] & 255)]);
  return one | (one & 31) << kAllAt | (one >> kStepAt) << kAllStepAt;
}

// The look-ups; where they lie in shared memory is found once.
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
#else
  DEVICE explicit Looks(const Codes &c) : codes(c) {}
  DEVICE uint32_t at(uint32_t i) const { return codes.look[i]; }
#endif
  DEVICE uint32_t operator()(uint32_t table, uint32_t bits) const {
    const uint32_t found = at(table + (bits >> (32 - kLook)));
    return found ? found : long_code(codes, table >> kLook, bits);
  }
};

// Finds where the blocks of piece `p` begin, from its start on, up to the first behind `limit`; a mark every `stride`
// bits from `begin` on. All threads of a warp do it, though not all of them may be `busy`: they vote in every step,
// which keeps the compiler from making a loop over a block's symbols, at whose end they would wait for each other.
DEVICE void follow(const Codes &codes, Pieces &pieces, const Mcu &mcu, const uint32_t *data, bool busy, int p,
                   int32_t begin, int32_t stride, int32_t limit) {
  const uint32_t start = pieces.starts[p];
  const Looks look(codes);
  BitReader in;
  in.begin(data, (int32_t)(start & kBitMask));
  int block = (int)(start >> kBitBits), blocks = 0, place = 0, mark = busy ? 0 : kDone;
  int32_t behind = min(begin + stride, limit);
  // Where a block begins behind a mark: notes it, or finds that the rest is known.
  const auto pass = [&]() {
    const uint32_t here = (uint32_t)block << kBitBits | (uint32_t)in.bit;
    do {
      if (mark == kMarks) {
        pieces.ends[p] = here, pieces.blocks[p] = blocks, mark = kDone;
        return;
      }
      if (pieces.marks[mark][p] == here) {
        const int more = blocks - pieces.before[mark][p];
        pieces.blocks[p] += more;
        for (; mark < kMarks; mark++) pieces.before[mark][p] = (uint16_t)(pieces.before[mark][p] + more);
        mark = kDone;
        return;
      }
      pieces.marks[mark][p] = here, pieces.before[mark][p] = (uint16_t)blocks;
      behind = ++mark == kMarks ? limit : min(behind + stride, limit);
    } while (in.bit >= behind);
  };
  if (mark != kDone && in.bit >= behind) pass();
  uint32_t table = mcu.dc_table(block), ac_table = mcu.ac_table(block);
  while (__any_sync(~0u, mark != kDone)) {
    if (mark == kDone) continue;
    const uint32_t found = look(table, in.peek());
    int length = found >> kAllAt & 255, step = found >> kAllStepAt;
    if (place + (step & kEndOfBlock - 1) >= 64) {  // the block ends before, without a code for it
      length = found & 31, step = found >> kStepAt & 127;
    }
    in.drop(length);
    place += step;
    table = ac_table;
    if (place >= 64) {
      place = 0, blocks++, block = mcu.behind(block);
      table = mcu.dc_table(block), ac_table = mcu.ac_table(block);
      if (in.bit >= behind) pass();
    }
  }
}

// Where a thread writes: `blocks` takes what is known of each, `words` their words from number `word` to `last`.
struct Output {
  uint2 *blocks;
  uint16_t *words;
  int32_t n_blocks, block, word, last, end_bit;
};

// Writes the blocks from `start` on that begin before `limit`; all threads of a warp do it. False: irregular.
DEVICE bool write(const Codes &codes, const Mcu &mcu, const uint32_t *data, bool busy, uint32_t start, int32_t limit,
                  Output &out) {
  const Looks look(codes);
  BitReader in;
  in.begin(data, (int32_t)(start & kBitMask));
  int block = (int)(start >> kBitBits), place = 0, first = out.word, dc = 0;
  uint32_t low = 0, high = 0;  // the last four words
  bool good = true;
  const auto append = [&](uint32_t word) {
    low = __byte_perm(low, high, 0x5432), high = __byte_perm(high, word, 0x5432);
    if ((++out.word & 3) == 0) *reinterpret_cast<uint2 *>(out.words + out.word - 4) = make_uint2(low, high);
  };
  busy &= in.bit < limit && out.block < out.n_blocks;
  uint32_t table = mcu.dc_table(block), ac_table = mcu.ac_table(block);
  while (__any_sync(~0u, busy)) {
    if (!busy) continue;
    const uint32_t bits = in.peek(), found = look(table, bits);
    const int length = found & 31, size = found >> kSizeAt & 15, step = found >> kStepAt & 127;
    in.drop(length);
    const uint32_t extra = bits << (length - size);
    const int value = (int)upper(extra, size) + ((int)extra < 0 ? 0 : 1 - (1 << size));
    if (place == 0) {
      dc = value;
    } else if (size != 0) {
      append((uint32_t)codes.natural[place + step - 1 & 63] << kJpegPlaceBits | value & 1023);
      if (size >= kJpegPlaceBits) append(value >> kJpegPlaceBits & 63);
    }
    place += step;
    table = ac_table;
    if (place >= 64) {
      good &= place == 64 || step == kEndOfBlock;
      out.blocks[out.block++] = make_uint2(first, (uint32_t)(out.word - first) << 16 | dc & 0xffff);
      if (out.block == out.n_blocks) good &= in.bit <= out.end_bit;
      place = 0, block = mcu.behind(block), first = out.word;
      table = mcu.dc_table(block), ac_table = mcu.ac_table(block);
      busy = in.bit < limit && out.block < out.n_blocks;
      good &= !busy || out.word + kWordsOfBlock <= out.last;
      busy &= good;
    }
  }
  if (const int rest = out.word & 3) {
    const uint64_t last = ((uint64_t)high << 32 | low) >> 16 * (4 - rest);
    *reinterpret_cast<uint2 *>(out.words + out.word - rest) = make_uint2((uint32_t)last, (uint32_t)(last >> 32));
  }
  return good;
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
  __syncthreads();
  uint16_t *halves = reinterpret_cast<uint16_t *>(codes.look);
  for (int i = t; i < kScanTables << kLook; i += kThreads) {
    const int table = i >> kLook;
    const uint32_t bits = (uint32_t)(i & ((1 << kLook) - 1)) << (16 - kLook);
    int length = 1;
    while (length <= kLook && bits >= codes.limit[18 * table + length]) length++;
    uint32_t one = 0;
    if (length <= kLook)
      one =
          one_symbol(table, length,
                     codes.symbols[256 * table + ((bits >> (16 - length)) + codes.offset[18 * table + length] & 255)]);
    halves[2 * i] = (uint16_t)one;
  }
  __syncthreads();
  for (int i = t; i < kScanTables << kLook; i += kThreads) {
    const int table = i >> kLook;
    int length = 0, step = 0;
    do {
      // What lies behind the bits that are looked at does not matter to a code that ends before.
      const uint32_t one = halves[2 * (table << kLook | i << length & (1 << kLook) - 1)];
      const int end = length + (int)(one & 31), size = one >> kSizeAt & 15, by = one >> kStepAt;
      if (one == 0 || end - size > kLook || end > 31) break;
      if (by < kEndOfBlock && step + by >= kEndOfBlock) break;
      if (by == kIrregular && length) break;
      length = end, step += by;
    } while (table >= 2 && step < kEndOfBlock && length < kLook);
    halves[2 * i + 1] = (uint16_t)(length | step << (kAllStepAt - kAllAt));
  }
  __syncthreads();
}

// Differences to values, component by component. False: out of range.
DEVICE bool sum_differences(const Mcu &mcu, int n_blocks, uint2 *blocks, int *sums) {
  const int n_mcus = n_blocks / mcu.blocks, each = (n_mcus + kThreads - 1) / kThreads;
  const int begin = min((int)threadIdx.x * each, n_mcus), end = min(begin + each, n_mcus);
  int last[3] = {0, 0, 0}, total;
  bool good = true;
  for (int m = begin; m < end; m++) {
    const uint2 *of = blocks + (int64_t)m * mcu.blocks;
#pragma unroll
    for (int b = 0; b < kMostMcu; b++) {
      const int difference = b < mcu.blocks ? (int16_t)of[b].y : 0, c = mcu.component(b);
#pragma unroll
      for (int k = 0; k < 3; k++) last[k] += c == k ? difference : 0;
    }
  }
#pragma unroll
  for (int k = 0; k < 3; k++) last[k] = sum_before(last[k], sums, total);
  for (int m = begin; m < end; m++) {
    uint2 *of = blocks + (int64_t)m * mcu.blocks;
    uint32_t known[kMostMcu];
#pragma unroll
    for (int b = 0; b < kMostMcu; b++) known[b] = b < mcu.blocks ? of[b].y : 0;
#pragma unroll
    for (int b = 0; b < kMostMcu; b++) {
      const int difference = (int16_t)known[b], c = mcu.component(b);
      int value = 0;
#pragma unroll
      for (int k = 0; k < 3; k++) {
        last[k] += c == k ? difference : 0;
        value += c == k ? last[k] : 0;
      }
      good &= value == (int16_t)value;
      if (b < mcu.blocks) of[b].y = known[b] & 0xffff0000u | value & 0xffff;
    }
  }
  return good;
}

// Decodes the pieces from bit `first` on, of which there are `n`. Returns whether this thread's is regular.
DEVICE bool decode_pieces(const Codes &codes, Pieces &pieces, const Mcu &mcu, const uint32_t *data, uint32_t carried,
                          int32_t first, int32_t piece, int n, int32_t n_bits, int *sums, Output &out, int &blocks) {
  const int t = threadIdx.x;
  const int32_t stride = piece / (kMarks + 1);
  pieces.starts[t] = t ? (uint32_t)(first + t * piece) : carried;
#pragma unroll
  for (int m = 0; m < kMarks; m++) pieces.marks[m][t] = ~0u;
  pieces.todo[t] = (uint16_t)t;
  if (t == 0) pieces.n_todo[0] = n, pieces.n_todo[1] = 0;
  __syncthreads();
  for (int turn = 0;; turn ^= 1) {
    if (const int n_todo = pieces.n_todo[turn]; (t & ~31) < n_todo) {
      const int p = pieces.todo[min(t, n_todo - 1)];
      const int32_t begin = first + p * piece;
      follow(codes, pieces, mcu, data, t < n_todo, p, begin, stride, min(begin + piece, n_bits));
    }
    __syncthreads();
    // Those that begin elsewhere are brought together, so that few warps have work.
    if (t == 0) pieces.n_todo[turn] = 0;
    const bool changed = t > 0 && t < n && pieces.ends[t - 1] != pieces.starts[t];
    const uint32_t others = __ballot_sync(~0u, changed);
    int place = 0;
    if ((t & 31) == 0 && others) place = atomicAdd(&pieces.n_todo[turn ^ 1], __popc(others));
    place = __shfl_sync(~0u, place, 0);
    if (changed) {
      pieces.starts[t] = pieces.ends[t - 1];
      pieces.todo[place + __popc(others & (1u << (t & 31)) - 1)] = (uint16_t)t;
    }
    __syncthreads();
    if (pieces.n_todo[turn ^ 1] == 0) break;
  }
  out.block += sum_before(t < n ? pieces.blocks[t] : 0, sums, blocks);
  return write(codes, mcu, data, t < n, pieces.starts[min(t, n - 1)], min(first + (t + 1) * piece, n_bits), out);
}

// Grid: y the samples. kThreads threads.
extern "C" __global__ void __launch_bounds__(kThreads, 4) jpeg_huffman(Launch l) {
  __shared__ Codes codes;
  __shared__ Pieces pieces;
  __shared__ int sums[kThreads / 32], any_bad;
  const int t = threadIdx.x;
  const JpegHuffmanArgs &a = static_cast<const JpegHuffmanArgs *>(l.args[0])[blockIdx.y];
  const JpegRecord &r = *reinterpret_cast<const JpegRecord *>(a.record);
  const JpegScan &s = *reinterpret_cast<const JpegScan *>(a.scan);
  if (s.n_blocks == 0) return;
  const uint32_t *data = reinterpret_cast<const uint32_t *>(a.data);
  uint32_t *places = reinterpret_cast<uint32_t *>(static_cast<uint8_t *>(l.scratch) + a.places);
  const int32_t n_bits = (int32_t)s.bits, piece = piece_of(n_bits), room = words_of_piece(piece);
  Mcu mcu;
  mcu.of(s);
  if (t == 0) any_bad = 0;
  read_codes(codes, s);

  Output out = {reinterpret_cast<uint2 *>(places),
                reinterpret_cast<uint16_t *>(places + r.n_places),
                s.n_blocks,
                0,
                0,
                0,
                n_bits};
  uint32_t carried = 0;
  int done = 0;
  bool good = true;
  for (int32_t first = 0; first < n_bits && done < s.n_blocks; first += piece * kThreads) {
    const int n = min((n_bits - first + piece - 1) / piece, kThreads);
    int blocks;
    out.block = done, out.word = (first / piece + t) * room, out.last = out.word + room;
    good &= decode_pieces(codes, pieces, mcu, data, carried, first, piece, n, n_bits, sums, out, blocks);
    carried = pieces.ends[n - 1];
    done += blocks;
    __syncthreads();
  }
  if (!good || done < s.n_blocks) any_bad = 1;
  __syncthreads();
  if (!any_bad && !sum_differences(mcu, s.n_blocks, out.blocks, sums)) any_bad = 1;
  __syncthreads();
  if (!any_bad) return;
  for (int i = t; i < s.n_blocks; i += kThreads) out.blocks[i] = make_uint2(0, 0);
  if (t == 0) *const_cast<uint8_t *>(a.status) = 1;
}

// SPDX-License-Identifier: Apache-2.0
// Huffman decoding of a baseline scan by many threads at once. Each takes a piece of the bits and assumes that a block
// of an MCU begins there; despite the wrong start, Huffman codes soon synchronize. Then each starts again where the one
// before it has ended, until nothing changes: all that is reached from the first bit by unchanged ends is right.
// (S. T. Klein, Y. Wiseman: Parallel Huffman decoding with applications to JPEG files, The Computer Journal 46, 2003;
// rounds until nothing changes: A. Weissenberger, B. Schmidt: Accelerating JPEG decompression on GPUs, HiPC 2021.)
//
// A piece owns the blocks that begin in it. Until all starts are known only lengths are looked up, several symbols at a
// time; a last round writes coefficients, each thread into its own memory, and DC differences are summed at the end.
// What lies behind the needed blocks is left out: first the bits that likely hold them are decoded, then the others if
// blocks are missing.
//
// One block of threads per picture. Scratch: the descriptions of the blocks, then their words (see JpegRecord).
#include "decode/gpu_huffman_codes.h"

constexpr int kMostMcu = 10;

// Where a block begins: the bit, and above kBitBits its index in the MCU.
constexpr int kBitBits = 28;
constexpr uint32_t kBitMask = (1u << kBitBits) - 1;

// Of the pieces decoded at a time: where their first blocks and those of the next pieces begin, their numbers of
// blocks, and which pieces are to be done.
struct Pieces {
  uint32_t starts[kEntropyThreads], ends[kEntropyThreads];
  int32_t blocks[kEntropyThreads];
  uint16_t todo[kEntropyThreads];
  int32_t n_todo[2];
};

// The blocks of an MCU: their number, and two bits for the tables of each, the next block's first.
struct Mcu {
  int blocks;
  uint32_t tables;
  DEVICE void of(const JpegScan &s) {
    blocks = s.mcu_blocks, tables = 0;
    for (int b = 0; b < blocks; b++) tables |= (s.dc[b] | (uint32_t)(s.ac[b] - 2) << 1) << 2 * b;
  }
  // Advances by fewer blocks than there are.
  DEVICE void move(int by) { tables = tables >> 2 * by | (tables & (1u << 2 * by) - 1) << 2 * (blocks - by); }
  // The offset of the tables in the look-ups.
  DEVICE uint32_t dc_table() const { return (tables & 1) << kLook; }
  DEVICE uint32_t ac_table() const { return 2 << kLook | (tables & 2) << kLook - 1; }
};

// Symbols looked up before threads of a warp whose blocks have ended continue.
constexpr int kFollowed = 2, kWritten = 3;

// Finds the end of the blocks from `start` on that begin before `limit`, and their number. Called by all threads of a
// warp, even those without work: their vote keeps the compiler from making a loop over a block's symbols, at whose end
// threads would wait for each other.
DEVICE void follow(const Codes &codes, Mcu mcu, const uint32_t *data, bool works, int32_t limit, uint32_t &start,
                   int &blocks) {
  const Looks look(codes);
  const int first = (int)(start >> kBitBits);
  BitReader in;
  in.begin(data, (int32_t)(start & kBitMask));
  mcu.move(first);
  uint32_t table = mcu.dc_table(), found = 0;
  int done = !works || in.bit >= limit, place = done ? 64 : 0;
  blocks = 0;
  while (__any_sync(~0u, place < 64)) {
#pragma unroll
    for (int k = 0; k < kFollowed; k++) {
      if (place >= 64) continue;
      found = look(table, in.peek());
      in.drop(all_lengths(found));
      place += found >> kStepAt;
      table = mcu.ac_table();
    }
    if (place < 64 || done) continue;
    if (place >= 64 + kEndOfBlock || (int32_t)found >= 0) {  // the block ends earlier, without a code for it
      place += first_step(found) - (int)(found >> kStepAt);
      in.begin(data, in.bit + first_length(found) - all_lengths(found));
      if (place < 64) continue;
    }
    mcu.move(1);
    blocks++, table = mcu.dc_table(), done = in.bit >= limit;
    if (!done) place = 0;
  }
  start = (uint32_t)((first + blocks) % mcu.blocks) << kBitBits | (uint32_t)in.bit;
}

// Where a thread writes: `blocks` receives the descriptions of blocks `block` to `end`; `words` receives their words,
// except those of blocks before `begin`, from index `word` to `last`.
struct Output {
  uint2 *blocks;
  uint16_t *words;
  int32_t begin, end, end_bit, block, word, last;
};

// Writes the blocks from `start` on that begin before `limit`; called by all threads of a warp. Returns false if
// irregular.
DEVICE bool write(const Codes &codes, Mcu mcu, const uint32_t *data, bool works, uint32_t start, int32_t limit,
                  Output &out) {
  const Looks look(codes);
  BitReader in;
  in.begin(data, (int32_t)(start & kBitMask));
  mcu.move((int)(start >> kBitBits));
  uint2 *to = out.blocks + out.block;
  const int wanted = out.end - out.begin;
  int left = out.end - out.block, word = out.word, first = word, dc = 0, step = 0, bad = 0;
  uint32_t low = 0, high = 0;  // the last four words
  const auto append = [&](uint32_t value) {
    low = __byte_perm(low, high, 0x5432), high = __byte_perm(high, value, 0x5432);
    if ((++word & 3) == 0) *reinterpret_cast<uint2 *>(out.words + word - 4) = make_uint2(low, high);
  };
  works &= in.bit < limit && left > 0;
  uint32_t table = mcu.dc_table();
  int done = !works, place = done ? 64 : 0;
  while (__any_sync(~0u, place < 64)) {
#pragma unroll
    for (int k = 0; k < kWritten; k++) {
      if (place >= 64) continue;
      const uint32_t bits = in.peek(), found = look(table, bits);
      const int length = first_length(found), size = found >> kSizeAt & 15;
      in.drop(length);
      const uint32_t extra = bits << (length - size);
      const int value = (int)(upper(extra, size) - upper((uint32_t)((int32_t)~extra >> 31), size));
      step = first_step(found);
      if (place == 0) {
        dc = value;
      } else if (size != 0 && left <= wanted) {
        append(look.natural(place + step - 1 & 63) << kJpegPlaceBits | value & 1023);
        if (size >= kJpegPlaceBits) append(value >> kJpegPlaceBits & 63);
      }
      place += step;
      table = mcu.ac_table();
    }
    if (place < 64 || done) continue;
    bad |= step == kEndOfBlock ? 0 : place - 64;
    *to++ = make_uint2(first, (uint32_t)(word - first) << 16 | dc & 0xffff);
    mcu.move(1);
    left--, first = word, table = mcu.dc_table();
    done = left == 0 | in.bit >= limit | word + kWordsOfBlock > out.last;
    if (!done) place = 0;
  }
  if (const int rest = word & 3) {
    const uint64_t last = ((uint64_t)high << 32 | low) >> 16 * (4 - rest);
    *reinterpret_cast<uint2 *>(out.words + word - rest) = make_uint2((uint32_t)last, (uint32_t)(last >> 32));
  }
  // The last block must not take more bits than there are; other threads must not have stopped for lack of room.
  return !works || bad == 0 && (left == 0 ? in.bit <= out.end_bit : in.bit >= limit);
}

// The sum of `v` over the threads before this one; `total` over all. `sums` is shared, one value per warp.
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
  for (int w = 0; w < kEntropyThreads / 32; w++) {
    if (w < warp) before += sums[w];
    total += sums[w];
  }
  return before + sum - v;
}

// Converts differences to values, per component. Returns false if out of range.
DEVICE bool sum_differences(const JpegScan &s, uint2 *blocks, int *sums) {
  const int mcu_blocks = s.mcu_blocks, n_mcus = s.end / mcu_blocks,
            each = (n_mcus + kEntropyThreads - 1) / kEntropyThreads;
  const int begin = min((int)threadIdx.x * each, n_mcus), end = min(begin + each, n_mcus);
  uint32_t components = 0;
  for (int b = 0; b < mcu_blocks; b++) components |= (uint32_t)s.component[b] << 2 * b;
  int last[3] = {0, 0, 0}, total;
  bool good = true;
  for (int m = begin; m < end; m++) {
    const uint2 *of = blocks + (int64_t)m * mcu_blocks;
#pragma unroll
    for (int b = 0; b < kMostMcu; b++) {
      const int difference = b < mcu_blocks ? (int16_t)of[b].y : 0, c = components >> 2 * b & 3;
#pragma unroll
      for (int k = 0; k < 3; k++) last[k] += c == k ? difference : 0;
    }
  }
#pragma unroll
  for (int k = 0; k < 3; k++) last[k] = sum_before(last[k], sums, total);
  for (int m = begin; m < end; m++) {
    uint2 *of = blocks + (int64_t)m * mcu_blocks;
    uint32_t known[kMostMcu];
#pragma unroll
    for (int b = 0; b < kMostMcu; b++) known[b] = b < mcu_blocks ? of[b].y : 0;
#pragma unroll
    for (int b = 0; b < kMostMcu; b++) {
      const int difference = (int16_t)known[b], c = components >> 2 * b & 3;
      int value = 0;
#pragma unroll
      for (int k = 0; k < 3; k++) {
        last[k] += c == k ? difference : 0;
        value += c == k ? last[k] : 0;
      }
      good &= value == (int16_t)value;
      if (b < mcu_blocks) of[b].y = known[b] & 0xffff0000u | value & 0xffff;
    }
  }
  return good;
}

// Finds where the first block of each of `n` pieces from bit `first` on begins; `carried` is the start of the first
// one.
DEVICE void find_starts(const Codes &codes, Pieces &pieces, const Mcu &mcu, const uint32_t *data, uint32_t carried,
                        int32_t first, int32_t piece, int n, int32_t n_bits) {
  const int t = threadIdx.x;
  pieces.starts[t] = t ? (uint32_t)(first + t * piece) : carried;
  pieces.todo[t] = (uint16_t)t;
  if (t == 0) pieces.n_todo[0] = n, pieces.n_todo[1] = 0;
  __syncthreads();
  for (int turn = 0;; turn ^= 1) {
    if (const int n_todo = pieces.n_todo[turn]; (t & ~31) < n_todo) {
      const int p = pieces.todo[min(t, n_todo - 1)];
      uint32_t at = pieces.starts[p];
      int blocks;
      follow(codes, mcu, data, t < n_todo, min(first + (p + 1) * piece, n_bits), at, blocks);
      if (t < n_todo) pieces.ends[p] = at, pieces.blocks[p] = blocks;
    }
    __syncthreads();
    // Pieces with a new start are gathered, so that few warps have work.
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
    if (pieces.n_todo[turn ^ 1] == 0) return;
  }
}

// Grid: y is the number of samples. kEntropyThreads threads.
extern "C" __global__ void __launch_bounds__(kEntropyThreads, 8) jpeg_huffman(Launch l) {
  __shared__ Codes codes;
  __shared__ Pieces pieces;
  __shared__ int sums[kEntropyThreads / 32], any_bad;
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
                s.begin,
                s.end,
                n_bits,
                0,
                0,
                0};
  uint32_t carried = 0;
  int done = 0;
  bool good = true;
  const int32_t likely = (int32_t)s.likely_bits;
  for (int32_t first = 0, n; first < n_bits && done < s.end; first += piece * n) {
    n = min(((first < likely ? likely : n_bits) - first + piece - 1) / piece, kEntropyThreads);
    find_starts(codes, pieces, mcu, data, carried, first, piece, n, n_bits);
    int blocks;
    out.block = done + sum_before(t < n ? pieces.blocks[t] : 0, sums, blocks);
    out.word = (first / piece + t) * room, out.last = out.word + room;
    good &= write(codes, mcu, data, t < n, pieces.starts[min(t, n - 1)], min(first + (t + 1) * piece, n_bits), out);
    carried = pieces.ends[n - 1], done += blocks;
    __syncthreads();
  }
  if (!good || done < s.end) any_bad = 1;
  __syncthreads();
  if (!any_bad && !sum_differences(s, out.blocks, sums)) any_bad = 1;
  __syncthreads();
  if (!any_bad) return;
  for (int i = t; i < s.end; i += kEntropyThreads) out.blocks[i] = make_uint2(0, 0);
  if (t == 0) *const_cast<uint8_t *>(a.status) = 1;
}

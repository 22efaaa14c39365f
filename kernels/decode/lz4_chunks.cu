// SPDX-License-Identifier: Apache-2.0
// form: own
// status: status
// A warp takes a chunk. All of its lanes read the same tokens; they copy literals and matches together. Input is
// prefetched through shared memory, and recent output is kept there, so that few matches wait for global memory; output
// is written in aligned blocks.
#include "core/gpu.h"
#include "decode/lz4_chunks.h"

constexpr int kWarp = 32, kBlock = 16;
constexpr int kHalf = 2048, kBlocksOfLane = kHalf / kBlock / kWarp;  // bytes of the input loaded at once
constexpr int kPiece = 512;                                          // bytes copied between checks of both buffers

// Calls store(i, load(i)) for i < n, shared among the lanes. Each lane loads several before it stores the first, as the
// compiler can't rule out aliasing; load(i) is called in order.
template <class Load, class Store>
DEVICE void by_lanes(int n, int lane, Load load, Store store) {
  constexpr int kAtOnce = 4;
  for (int first = lane; first < n; first += kAtOnce * kWarp) {
    uint8_t x[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; k++)
      if (first + k * kWarp < n) x[k] = load(first + k * kWarp);
#pragma unroll
    for (int k = 0; k < kAtOnce; k++)
      if (first + k * kWarp < n) store(first + k * kWarp, x[k]);
  }
}

struct WarpInput {
  // Positions count from the last multiple of 16 before the first byte. Shared memory holds the halves number `half`
  // and `half` + 1; the next one is being loaded.
  const uint8_t *base;
  uint8_t *shared;
  int64_t at, end;
  int64_t half;
  uint4 next[kBlocksOfLane];
  int lane;

  DEVICE WarpInput(const uint8_t *data, int64_t size, uint8_t *shared, int lane) : shared(shared), half(0), lane(lane) {
    at = (int64_t)((unsigned long long)data & (kBlock - 1)), end = at + size;
    base = data - at;
    load_half(0), keep_half(0);
    load_half(1), keep_half(1);
    load_half(2);
    __syncwarp();
  }
  DEVICE void load_half(int64_t i) {
#pragma unroll
    for (int k = 0; k < kBlocksOfLane; k++) {
      const int64_t place = i * kHalf + (k * kWarp + lane) * kBlock;
      if (place < end) next[k] = __ldg((const uint4 *)(base + place));
    }
  }
  DEVICE void keep_half(int64_t i) {
    uint4 *to = (uint4 *)(shared + (i & 1) * kHalf);
#pragma unroll
    for (int k = 0; k < kBlocksOfLane; k++) to[k * kWarp + lane] = next[k];
  }
  // Makes the next n <= kPiece bytes readable.
  DEVICE void need(int n) {
    if (at + n <= (half + 2) * kHalf) return;
    __syncwarp();
    keep_half(half + 2);
    half++;
    load_half(half + 2);
    __syncwarp();
  }
  DEVICE int ahead(int i) const { return shared[(at + i) & (2 * kHalf - 1)]; }

  DEVICE int64_t left() const { return end - at; }
  DEVICE int byte() {
    need(1);
    const int x = ahead(0);
    at++;
    return x;
  }
  DEVICE bool extend(int64_t &n) {
    while (left() > 0) {
      need(kWarp);
      const int there = left() < kWarp ? (int)left() : kWarp, x = ahead(lane);
      const unsigned ends = __ballot_sync(~0u, lane < there && x != 255);
      if (ends) {
        const int before = __ffs(ends) - 1;
        n += 255 * before + ahead(before);
        at += before + 1;
        return true;
      }
      n += 255 * there;
      at += there;
    }
    return false;
  }
};

// Keeps the last WINDOW bytes of output in shared memory.
template <int WINDOW>
struct WarpOutput {
  // Positions count as in the input; those before `written` are in global memory.
  uint8_t *base, *shared;
  int64_t first, at, end, written;
  int lane;

  DEVICE WarpOutput(uint8_t *data, int64_t size, uint8_t *shared, int lane) : shared(shared), lane(lane) {
    first = (int64_t)((unsigned long long)data & (kBlock - 1));
    at = written = first, end = first + size;
    base = data - first;
  }
  DEVICE uint8_t &kept(int64_t place) const { return shared[place & (WINDOW - 1)]; }
  DEVICE int64_t room() const { return end - at; }
  DEVICE int64_t made() const { return at - first; }

  DEVICE void literals(WarpInput &in, int64_t n) {
    while (n > 0) {
      const int some = n < kPiece ? (int)n : kPiece;
      in.need(some);
      by_lanes(
          some, lane, [&](int i) { return (uint8_t)in.ahead(i); }, [&](int i, uint8_t x) { kept(at + i) = x; });
      in.at += some;
      n -= some;
      advance(some);
    }
  }
  // The last `offset` bytes repeat, so each new byte equals one of them.
  DEVICE void match(int offset, int64_t n) {
    while (n > 0) {
      const int some = n < kPiece ? (int)n : kPiece;
      const int step = offset <= kWarp ? kWarp % offset : kWarp;
      int from = offset < kWarp ? lane % offset : lane;
      const bool is_kept = offset <= WINDOW - kPiece;
      __syncwarp();
      auto earlier = [&](int) {
        const int64_t place = at - offset + from;
        from += step;
        if (from >= offset) from -= offset;
        return is_kept ? kept(place) : base[place];
      };
      by_lanes(some, lane, earlier, [&](int i, uint8_t x) { kept(at + i) = x; });
      n -= some;
      advance(some);
    }
  }
  DEVICE void advance(int n) {
    at += n;
    if (at - written >= kPiece) write(at & ~(int64_t)(kBlock - 1));
  }
  // Writes up to a position: whole blocks where possible, other bytes one by one.
  DEVICE void write(int64_t to) {
    __syncwarp();
    const int64_t head = (written + kBlock - 1) & ~(int64_t)(kBlock - 1), tail = to & ~(int64_t)(kBlock - 1);
    if (written + lane < (head < to ? head : to)) base[written + lane] = kept(written + lane);
    for (int64_t place = head + lane * kBlock; place < tail; place += kWarp * kBlock)
      *(uint4 *)(base + place) = *(const uint4 *)&kept(place);
    if (tail >= head && tail + lane < to) base[tail + lane] = kept(tail + lane);
    written = to;
    __syncwarp();
  }
  // Fills the rest with zeros.
  DEVICE void finish() {
    write(at);
    const int64_t head = (at + kBlock - 1) & ~(int64_t)(kBlock - 1), tail = end & ~(int64_t)(kBlock - 1);
    if (at + lane < (head < end ? head : end)) base[at + lane] = 0;
    for (int64_t place = head + lane * kBlock; place < tail; place += kWarp * kBlock)
      *(uint4 *)(base + place) = make_uint4(0, 0, 0, 0);
    if (tail >= head && tail + lane < end) base[tail + lane] = 0;
  }
};

template <int WINDOW>
DEVICE void lz4_chunks_of(const Launch &l) {
  static_assert(WINDOW >= 4 * kPiece && (WINDOW & (WINDOW - 1)) == 0, "");
  DYNAMIC_SHARED(uint8_t, shared);
  const int lane = threadIdx.x;
  FOR_SAMPLES(sample, l) {
    const Lz4ChunksArgs a = ((const Lz4ChunksArgs *)l.args[0])[sample];
    if (blockIdx.x >= a.chunks) continue;
    const Tensor out = l.tensors[0][sample];
    const int64_t each = volume_of(out) * item_size(out.dtype) / a.chunks;
    for (int64_t chunk = blockIdx.x; chunk < a.chunks; chunk += gridDim.x) {
      WarpInput from(l.tensors[1][sample].as<uint8_t>() + a.offsets[chunk], a.sizes[chunk], shared + WINDOW, lane);
      WarpOutput<WINDOW> made(out.as<uint8_t>() + chunk * each, each, shared, lane);
      const Lz4Fault fault = lz4_decode(from, made);
      if (fault == LZ4_FINE) made.finish();
      if (fault != LZ4_FINE && a.status && lane == 0) *(uint8_t *)a.status = 1;
      __syncwarp();
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Arithmetic on the shapes of a batch.
#include <cstring>

#include "core/program.h"

// Fills the rows of n samples of the extents `stored` (n, ndim); `data` is the offset in one block of memory: packed if
// all shapes are equal, else each 64-byte aligned, with `guard` free bytes behind it. `about` receives the size of the
// block in bytes, and 1 if all shapes are equal, else 0. Returns false if the size overflows.
EXPORT int32_t lay_out_batch(const int64_t *stored, int64_t n, int32_t ndim, int32_t dtype, int64_t guard, Tensor *rows,
                             int64_t *about) {
  const bool dense = n < 2 || !std::memcmp(stored, stored + ndim, (n - 1) * ndim * sizeof *stored);
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) {
    Tensor &t = rows[i] = Tensor{};
    t.data = (void *)total;
    t.ndim = ndim, t.dtype = dtype;
    int64_t bytes = item_size(dtype);
    bool too_large = false, empty = false;
    for (int d = 0; d < ndim; d++) {
      t.shape[d] = stored[i * ndim + d];
      // NumPy rejects such shapes even if another extent is zero.
      if (t.shape[d] == 0)
        empty = true;
      else
        too_large |= __builtin_mul_overflow(bytes, t.shape[d], &bytes);
    }
    if (empty) bytes = 0;
    if (!dense || guard) too_large |= __builtin_add_overflow(bytes, guard + 63, &bytes), bytes &= ~63ll;
    if (too_large || __builtin_add_overflow(total, bytes, &total)) return 0;
  }
  about[0] = total, about[1] = dense;
  return 1;
}
EXPORT_SHORT(lay_out_batch)

EXPORT_INSTRUCTION(lay_out_batch)

// Like `lay_out_batch` for n frames; neighbours of one sample are packed, as in a sequence. Also returns false if those
// have different shapes.
EXPORT int32_t lay_out_frames(const int64_t *stored, int64_t n, int32_t ndim, int32_t dtype, int64_t guard,
                              const int32_t *sample_of, Tensor *rows, int64_t *about) {
  if (!lay_out_batch(stored, n, ndim, dtype, 0, rows, about)) return 0;
  int64_t first = 0, longest = 0, shortest = n;  // of the sequences
  bool dense = about[1];
  for (int64_t i = 1; i <= n; i++) {
    if (i < n && sample_of[i] == sample_of[i - 1]) {
      if (std::memcmp(rows[i].shape, rows[i - 1].shape, sizeof rows[i].shape)) return 0;
      continue;
    }
    longest = std::max(longest, i - first), shortest = std::min(shortest, i - first), first = i;
  }
  about[1] = dense = dense && longest == shortest;
  const bool apart = !dense || guard;
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) {
    if (apart && i && sample_of[i] != sample_of[i - 1]) total = (total + guard + 63) & ~63ll;
    rows[i].data = (void *)total;
    total += rows[i].volume() * item_size(dtype);
  }
  about[0] = apart ? (total + guard + 63) & ~63ll : total;
  return 1;
}
EXPORT_SHORT(lay_out_frames)
EXPORT_INSTRUCTION(lay_out_frames)

// Fills the rows of n samples of the extents `stored` (n, ndim), with the addresses that the rows `data_of` have, if
// given, else without.
EXPORT void describe_rows(const int64_t *stored, int64_t n, int32_t ndim, int32_t dtype, const Tensor *data_of,
                          Tensor *rows) {
  for (int64_t i = 0; i < n; i++) {
    Tensor &t = rows[i] = Tensor{};
    if (data_of) t.data = data_of[i].data;
    t.ndim = ndim, t.dtype = dtype;
    for (int d = 0; d < ndim; d++) t.shape[d] = stored[i * ndim + d];
  }
}
EXPORT_SHORT(describe_rows)

// Turns offsets of samples in one block into addresses, `address` being that of the block.
EXPORT void move_batch(Tensor *rows, int64_t n, int64_t address) {
  for (int64_t i = 0; i < n; i++) rows[i].data = (char *)address + (intptr_t)rows[i].data;
}
EXPORT_SHORT(move_batch)

// Windows (n, ndim) into samples of these shapes: extends them to the full extent along the axes set in `whole`.
// Returns false if one exceeds its sample.
EXPORT int32_t settle_windows(int64_t *origin, int64_t *size, const int64_t *shape, int64_t n, int32_t ndim,
                              uint32_t whole) {
  for (int64_t i = 0; i < n * ndim; i++) {
    if (whole >> i % ndim & 1) origin[i] = 0, size[i] = shape[i];
    if (origin[i] < 0 || size[i] < 0 || origin[i] > shape[i] - size[i]) return 0;
  }
  return 1;
}
EXPORT_SHORT(settle_windows)
EXPORT_INSTRUCTION(settle_windows)

// Fills in the fewest pieces (n, 3), each {to, from, bytes}, that copy n samples to `target`; returns how many there
// are. Neighbours with the same distance between source and target are one piece, with the padding between them.
EXPORT int64_t pieces_to_copy(const Tensor *source, const Tensor *target, int64_t n, int64_t item, int64_t *pieces) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t from = (int64_t)source[i].data, to = (int64_t)target[i].data, bytes = source[i].volume() * item;
    if (count) {
      int64_t *last = pieces + 3 * (count - 1);
      const int64_t gap = from - (last[1] + last[2]);
      if (to - from == last[0] - last[1] && gap >= 0 && gap <= 64) {
        last[2] = from + bytes - last[1];
        continue;
      }
    }
    int64_t *piece = pieces + 3 * count++;
    piece[0] = to, piece[1] = from, piece[2] = bytes;
  }
  return count;
}
EXPORT_SHORT(pieces_to_copy)

// The columns `axes` (k) of an array (n, ndim), as an array (n, k).
EXPORT void take_axes(const int64_t *in, int64_t n, int32_t ndim, const int32_t *axes, int32_t k, int64_t *out) {
  for (int64_t i = 0; i < n; i++)
    for (int32_t j = 0; j < k; j++) out[i * k + j] = in[i * ndim + axes[j]];
}
EXPORT_SHORT(take_axes)
EXPORT_INSTRUCTION(take_axes)

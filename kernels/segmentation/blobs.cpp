// SPDX-License-Identifier: Apache-2.0
#include "segmentation/blobs.h"

#include <algorithm>
#include <limits>

namespace {

// Adjacent elements of a row with the same label, one of those searched for.
struct Run {
  int32_t begin, end, label;
  int32_t parent;  // an earlier run of the same blob, or itself; finally the index of the blob
};

template <class T>
CLONES int64_t count_changes(const T *__restrict x, int64_t n) {
  int64_t total = 0;
  for (int64_t begin = 1; begin < n; begin += 4096) {
    const int64_t end = std::min<int64_t>(begin + 4096, n);
    uint16_t changes = 0;
    for (int64_t i = begin; i < end; i++) changes += (uint16_t)(x[i] != x[i - 1]);
    total += changes;
  }
  return total;
}

// Finds the runs of all rows of `width` elements. first[r]: index of the first run of row r.
template <class T>
CLONES int64_t find_runs(const T *x, int64_t rows, int64_t width, const Labels &labels, Run *runs, int64_t *first) {
  constexpr int kAtOnce = 64 / sizeof(T);
  int64_t n = 0;
  for (int64_t r = 0; r < rows; r++, x += width) {
    first[r] = n;
    for (int64_t begin = 0; begin < width;) {
      const T value = x[begin];
      int64_t end = begin + 1;
      for (; end + kAtOnce <= width; end += kAtOnce) {
        T differ = 0;
        for (int j = 0; j < kAtOnce; j++) differ |= x[end + j] ^ value;
        if (differ) break;
      }
      while (end < width && x[end] == value) end++;
      const int32_t label = (int32_t)value;
      if (labels.contains(label)) {
        runs[n] = {(int32_t)begin, (int32_t)end, label, (int32_t)n};
        n++;
      }
      begin = end;
    }
  }
  first[rows] = n;
  return n;
}

int32_t root_of(Run *runs, int32_t i) {
  while (runs[i].parent != i) i = runs[i].parent = runs[runs[i].parent].parent;
  return i;
}

// Joins touching runs of two rows.
void join_rows(Run *runs, int64_t a, int64_t a_end, int64_t b, int64_t b_end) {
  while (a < a_end && b < b_end) {
    if (runs[a].label == runs[b].label && runs[a].begin < runs[b].end && runs[b].begin < runs[a].end) {
      const int32_t x = root_of(runs, (int32_t)a), y = root_of(runs, (int32_t)b);
      runs[std::max(x, y)].parent = std::min(x, y);
    }
    if (runs[a].end < runs[b].end)
      a++;
    else
      b++;
  }
}

// Iterates over the rows of a mask. `at`: their indices along all axes but the last.
struct Rows {
  const Tensor *mask;
  int64_t at[kMaxDims] = {};
  void next() {
    for (int d = mask->ndim - 2; d >= 0; d--) {
      if (++at[d] < mask->shape[d]) return;
      at[d] = 0;
    }
  }
};

// The mask without axes of extent 1, so that rows are long: an image (H, W, 1) has rows along W. At least one axis
// remains.
Tensor squeezed(const Tensor &mask) {
  Tensor out = mask;
  out.ndim = 0;
  for (int d = 0; d < mask.ndim; d++)
    if (mask.shape[d] != 1) out.shape[out.ndim++] = mask.shape[d];
  if (!out.ndim) out.shape[out.ndim++] = 1;
  return out;
}

// Restores the axes removed by `squeezed`.
void unsqueeze(Blob &b, const Tensor &mask, int from) {
  for (int d = mask.ndim - 1; d >= 0; d--) {
    const bool stays = mask.shape[d] != 1 && from > 0;
    if (stays) from--;
    b.low[d] = stays ? b.low[from] : 0;
    b.high[d] = stays ? b.high[from] : 1;
  }
}

}  // namespace

Blob *find_blobs(const Tensor &original, const Labels &labels, Scratch &scratch, int64_t &n_blobs) {
  const Tensor mask = squeezed(original);
  const int axes = mask.ndim, last = axes - 1;
  const int64_t volume = mask.volume(), width = mask.shape[last], rows = volume ? volume / width : 0;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (int d = 0; d < axes; d++)
    if (mask.shape[d] > kMost) fail("a mask can have %lld elements along an axis at most", (long long)kMost);
  n_blobs = 0;
  if (!volume) return nullptr;
  Run *runs = nullptr;
  int64_t *first = scratch.array<int64_t>(rows + 1, 1);
  int64_t n_runs = 0;
  for_types<uint8_t, uint16_t, uint32_t, int8_t, int16_t, int32_t>(
      mask.dtype == BOOL ? UINT8 : mask.dtype, [&](auto t) {
        typedef decltype(t) T;
        const T *x = mask.as<T>();
        const int64_t most = rows + count_changes(x, volume);
        if (most > kMost) fail("the mask is too large");
        runs = scratch.array<Run>(most, 0);
        n_runs = find_runs(x, rows, width, labels, runs, first);
      });
  int64_t step[kMaxDims];  // in rows
  for (int64_t d = last - 1, s = 1; d >= 0; d--) step[d] = s, s *= mask.shape[d];
  Rows row{&mask};
  for (int64_t r = 0; r < rows; r++, row.next())
    for (int d = 0; d < last; d++)
      if (row.at[d] > 0) join_rows(runs, first[r], first[r + 1], first[r - step[d]], first[r - step[d] + 1]);
  for (int64_t i = 0; i < n_runs; i++) n_blobs += runs[i].parent == i;
  Blob *blobs = scratch.array<Blob>(n_blobs, 2);
  int32_t n = 0;
  row = Rows{&mask};
  for (int64_t r = 0; r < rows; r++, row.next())
    for (int64_t i = first[r]; i < first[r + 1]; i++) {
      // A parent comes before its children, so its `parent` is already the index of the blob.
      const bool is_first = runs[i].parent == i;
      const int32_t k = is_first ? n++ : runs[runs[i].parent].parent;
      runs[i].parent = k;
      Blob &b = blobs[k];
      if (is_first) {
        b.label = runs[i].label;
        for (int d = 0; d < last; d++) b.low[d] = (int32_t)row.at[d];
        b.low[last] = runs[i].begin, b.high[last] = runs[i].end;
      }
      for (int d = 0; d < last; d++) {
        b.low[d] = std::min(b.low[d], (int32_t)row.at[d]);
        b.high[d] = is_first ? (int32_t)row.at[d] + 1 : std::max(b.high[d], (int32_t)row.at[d] + 1);
      }
      b.low[last] = std::min(b.low[last], runs[i].begin);
      b.high[last] = std::max(b.high[last], runs[i].end);
    }
  if (axes != original.ndim)
    for (int64_t i = 0; i < n_blobs; i++) unsqueeze(blobs[i], original, axes);
  return blobs;
}

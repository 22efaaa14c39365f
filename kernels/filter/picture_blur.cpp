// SPDX-License-Identifier: Apache-2.0
// Blurs pictures by separable weights, mirrored at the borders, with the same bytes as PyTorch. PyTorch adds up all
// products of the window in float, row after row, and rounds the sum. Here, rows and then columns are added up, which
// is ten times less work; pixels that may round differently are computed again in PyTorch's order.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/kernel.h"

namespace {

constexpr int64_t kAtOnce = 16;  // sums kept in registers

struct Window {
  const float *across, *down;
  int64_t nx, ny;
};

inline int64_t mirrored(int64_t i, int64_t n) { return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i; }

template <class T>
inline __attribute__((always_inline)) void fill(float *__restrict out, const T *__restrict in, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = (float)in[i];
}
CLONES void widen(float *out, const uint8_t *in, int64_t n) { fill(out, in, n); }
void widen(float *out, const float *in, int64_t n) { memcpy(out, in, n * sizeof(float)); }

// out = sum of w[k] * terms[k].
CLONES void add_up(float *__restrict out, const float *const *terms, int64_t n, const float *w, int64_t n_terms) {
  int64_t i = 0;
  for (; i + kAtOnce <= n; i += kAtOnce) {
    float sums[kAtOnce] = {};
    for (int64_t k = 0; k < n_terms; k++) {
      const float *__restrict in = terms[k] + i;
      const float weight = w[k];
      for (int64_t j = 0; j < kAtOnce; j++) sums[j] += in[j] * weight;
    }
    memcpy(out + i, sums, sizeof sums);
  }
  for (; i < n; i++) {
    float sum = 0;
    for (int64_t k = 0; k < n_terms; k++) sum += terms[k][i] * w[k];
    out[i] = sum;
  }
}

// Rounds sums to bytes. `doubtful`: whether a sum is nearer than `error` to the next rounding boundary.
CLONES void round(uint8_t *__restrict out, uint8_t *__restrict doubtful, const float *__restrict sums, int64_t n,
                  float error) {
  for (int64_t i = 0; i < n; i++) {
    const float up = sums[i] + 0.5f;
    const int whole = (int)up;
    const float part = up - (float)whole;
    out[i] = (uint8_t)(whole > 255 ? 255 : whole);
    doubtful[i] = (part < error) | (part > 1 - error);
  }
}

constexpr int kTogether = 8;  // independent sums, for instruction-level parallelism

// Computes the bytes at `places` of a row in PyTorch's order. `rows`: the rows of the window, from its left end on.
CLONES void settle(uint8_t *out, const int32_t *places, int64_t n, const float *const *rows, const Window &w,
                   const float *weights) {
  for (int64_t begin = 0; begin < n; begin += kTogether) {
    int32_t at[kTogether];
    float sums[kTogether] = {};
    for (int64_t p = 0; p < kTogether; p++) at[p] = places[begin + p < n ? begin + p : begin];
    for (int64_t j = 0; j < w.ny; j++)
      for (int64_t i = 0; i < w.nx; i++)
        for (int p = 0; p < kTogether; p++) sums[p] = std::fma(rows[j][at[p] + i], weights[j * w.nx + i], sums[p]);
    for (int p = 0; p < kTogether; p++) out[at[p]] = (uint8_t)(int)std::nearbyint(sums[p]);
  }
}

int64_t find(int32_t *places, const uint8_t *flags, int64_t n) {
  int64_t found = 0;
  for (int64_t x = 0; x < n; x += 8) {
    uint64_t eight = 0;
    memcpy(&eight, flags + x, (size_t)(n - x < 8 ? n - x : 8));
    for (int64_t i = x; eight && i < n && i < x + 8; i++)
      if (flags[i]) places[found++] = (int32_t)i;
  }
  return found;
}

// Planes (n, height, width), larger than half of the window along each axis.
template <class T>
void blur(T *out, const T *in, int64_t n, int64_t height, int64_t width, const Window &w) {
  const int64_t left = w.nx / 2, above = w.ny / 2, padded = width + 2 * left;
  // Bound of the difference between both orders of summation: for each product and each addition, half the spacing of
  // floats around 255.
  const float error = (float)(w.nx * w.ny + 2 * (w.nx + w.ny) + 8) / (1 << 17);
  std::vector<float> weights(w.nx * w.ny), sums(width);
  std::vector<float> wide(w.ny * padded), store(w.ny * width);  // rings of rows and of sums: y is at y % ny
  std::vector<uint8_t> doubtful(width);
  std::vector<int32_t> places(width);
  std::vector<const float *> shifted(w.nx), summed(w.ny), rows(w.ny);
  for (int64_t j = 0; j < w.ny; j++)
    for (int64_t i = 0; i < w.nx; i++) weights[j * w.nx + i] = w.down[j] * w.across[i];
  for (int64_t p = 0; p < n; p++, in += height * width) {
    int64_t there = 0;  // number of rows summed along x
    for (int64_t y = 0; y < height; y++, out += width) {
      for (; there < height && there <= y + above; there++) {
        float *row = wide.data() + there % w.ny * padded, *middle = row + left;
        widen(middle, in + there * width, width);
        for (int64_t i = 1; i <= left; i++) middle[-i] = middle[i], middle[width - 1 + i] = middle[width - 1 - i];
        for (int64_t i = 0; i < w.nx; i++) shifted[i] = row + i;
        add_up(store.data() + there % w.ny * width, shifted.data(), width, w.across, w.nx);
      }
      for (int64_t j = 0; j < w.ny; j++) {
        const int64_t at = mirrored(y + j - above, height) % w.ny;
        summed[j] = store.data() + at * width, rows[j] = wide.data() + at * padded;
      }
      if constexpr (sizeof(T) == 1) {
        add_up(sums.data(), summed.data(), width, w.down, w.ny);
        round(out, doubtful.data(), sums.data(), width, error);
        settle(out, places.data(), find(places.data(), doubtful.data(), width), rows.data(), w, weights.data());
      } else {
        add_up(out, summed.data(), width, w.down, w.ny);
      }
    }
  }
}

}  // namespace

// `bytes`: uint8, else float. Returns 1 if there is not enough memory.
EXPORT int32_t picture_blur(const void *in, int64_t n, int64_t height, int64_t width, const float *across, int64_t nx,
                            const float *down, int64_t ny, int32_t bytes, void *out) {
  const Window w{across, down, nx, ny};
  try {
    if (bytes)
      blur((uint8_t *)out, (const uint8_t *)in, n, height, width, w);
    else
      blur((float *)out, (const float *)in, n, height, width, w);
  } catch (const std::exception &) {
    return 1;
  }
  return 0;
}
EXPORT_LONG(picture_blur)

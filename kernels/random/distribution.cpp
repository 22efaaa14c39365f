// SPDX-License-Identifier: Apache-2.0
#include "random/distribution.h"

#include <cstring>

#include "core/kernel.h"
#include "core/native_time.h"

namespace {

constexpr int kBlocks = 256;  // a multiple of what fits into a SIMD register
constexpr int kElements = 4 * kBlocks;

// The words of `kBlocks` blocks: word 4 i + j is the j-th of block first + i.
CLONES void words_of(const DistributionArgs &r, uint32_t first, uint32_t *words) {
  constexpr int kLanes = 32;
  const uint32_t low = (uint32_t)(uint64_t)r.position, high = (uint32_t)((uint64_t)r.position >> 32);
  for (int start = 0; start < kBlocks; start += kLanes) {
    uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
    for (int i = 0; i < kLanes; i++) c0[i] = first + start + i, c1[i] = low, c2[i] = high, c3[i] = (uint32_t)r.epoch;
    uint32_t k0 = (uint32_t)(uint64_t)r.key, k1 = (uint32_t)((uint64_t)r.key >> 32);
    for (int round = 0; round < 10; round++) {
      for (int i = 0; i < kLanes; i++) {
        uint64_t x = (uint64_t)0xD2511F53u * c0[i], y = (uint64_t)0xCD9E8D57u * c2[i];
        c0[i] = (uint32_t)(y >> 32) ^ c1[i] ^ k0;
        c2[i] = (uint32_t)(x >> 32) ^ c3[i] ^ k1;
        c1[i] = (uint32_t)y;
        c3[i] = (uint32_t)x;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < kLanes; i++) {
      uint32_t *w = words + 4 * (start + i);
      w[0] = c0[i], w[1] = c1[i], w[2] = c2[i], w[3] = c3[i];
    }
  }
}

// u[i] in [0, 1) from one word each, or from two.
CLONES void units(const uint32_t *words, bool fine, int n, double *u) {
  if (!fine)
    for (int i = 0; i < n; i++) u[i] = words[i] * (1 / 4294967296.0);
  else
    for (int i = 0; i < n; i++) u[i] = (words[2 * i] * 2097152.0 + (words[2 * i + 1] >> 11)) * (1 / 9007199254740992.0);
}

// Box, Muller: A Note on the Generation of Random Normal Deviates (1958): two normal variates from two uniform ones.
void normals(int n, double *u) {
  for (int i = 0; i < n; i += 2) {
    double radius = std::sqrt(-2 * std::log1p(-u[i])), angle = 6.283185307179586 * u[i + 1];
    u[i] = radius * std::cos(angle);
    u[i + 1] = radius * std::sin(angle);
  }
}

// ln of x in (0, 1]: of the exponent, and of the rest m in [sqrt(1/2), sqrt(2)) by 2 artanh((m - 1) / (m + 1)) as a
// series.
SHARED float log_unit(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  int32_t exponent = (int32_t)(bits - 0x3F3504F3u) >> 23;  // the bits of sqrt(1/2)
  bits -= (uint32_t)exponent << 23;
  float m;
  memcpy(&m, &bits, 4);
  float s = (m - 1) / (m + 1), z = s * s;
  return (float)exponent * 0.6931472f + 2 * s * (1 + z * (1 / 3.f + z * (1 / 5.f + z * (1 / 7.f + z * (1 / 9.f)))));
}

// The same in single precision, from a word each. The angle is a multiple of a quarter turn, which swaps and negates,
// and a rest of at most an eighth, whose sine and cosine are Taylor series. No library function, so that it becomes
// SIMD code, which gives the same bits for every instruction set.
CLONES void normals(const uint32_t *words, int n, double *z) {
  for (int i = 0; i < n; i += 2) {
    float radius = std::sqrt(-2 * log_unit(((float)words[i] + 1) * (1 / 4294967296.f)));
    uint32_t quarter = (words[i + 1] + 0x20000000u) >> 30;
    float t = (float)(int32_t)(words[i + 1] - (quarter << 30)) * (float)(6.283185307179586 / 4294967296.0), q = t * t;
    float sine = t * (1 - q * (1 / 6.f - q * (1 / 120.f - q * (1 / 5040.f - q * (1 / 362880.f)))));
    float cosine = 1 - q * (1 / 2.f - q * (1 / 24.f - q * (1 / 720.f - q * (1 / 40320.f - q * (1 / 3628800.f)))));
    float x = quarter & 1 ? -sine : cosine, y = quarter & 1 ? cosine : sine, sign = quarter & 2 ? -radius : radius;
    z[i] = sign * x;
    z[i + 1] = sign * y;
  }
}

int lower(const double *table, int n, double u) {
  int lo = 0, hi = n - 1;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (u < table[mid])
      hi = mid;
    else
      lo = mid + 1;
  }
  return lo;
}

template <class Out>
CLONES void store(const double *v, int n, double limit, Out *out) {
  for (int i = 0; i < n; i++) out[i] = saturate<Out>(v[i] < limit ? v[i] : limit);
}

// To the integers of up to 31 bits by way of int32, which is a SIMD instruction.
template <class Out>
CLONES void store_small(const double *v, int n, Out *out) {
  constexpr double lo = Range<Out>::lo, hi = Range<Out>::hi;
  for (int i = 0; i < n; i++) {
    double x = v[i] > lo ? v[i] : lo;
    x = x < hi ? x : hi;
    out[i] = (Out)(int32_t)(x + (x < 0 ? -0.5 : 0.5));
  }
}
template <>
CLONES void store(const double *v, int n, double, uint8_t *out) {
  store_small(v, n, out);
}
template <>
CLONES void store(const double *v, int n, double, int32_t *out) {
  store_small(v, n, out);
}

// The largest value below b: u < 1, yet a + (b - a) u may be rounded up to b.
double below(double b, double a, int dtype) {
  if (dtype == FLOAT64) return std::nextafter(b, a);
  if (dtype == FLOAT) return std::nextafter((float)b, (float)a);
  return INFINITY;
}

template <class Out>
void fill(const DistributionArgs &r, Out *out, int64_t n, int dtype) {
  uint32_t words[kElements];
  double u[kElements];
  const bool fine = sizeof(Out) == 8;  // 53 random bits instead of 32
  const int step = fine ? kElements / 2 : kElements;
  const double limit = r.kind == kUniform ? below(r.b, r.a, dtype) : INFINITY, scale = r.b - r.a;
  for (int64_t begin = 0; begin < n; begin += step) {
    const int m = n - begin < step ? (int)(n - begin) : step;
    if (r.kind == kBeta) {
      for (int i = 0; i < m; i++) u[i] = beta_variate(r, (uint32_t)(begin + i));
      store(u, m, INFINITY, out + begin);
      continue;
    }
    const uint32_t first = (uint32_t)(begin / step) * kBlocks;
    if (m * (fine ? 2 : 1) <= 16) {
      for (int b = 0; 4 * b < m * (fine ? 2 : 1) + 1; b++) distribution_block(r, first + b, 0, words + 4 * b);
    } else {
      words_of(r, first, words);
    }
    const int even = m + (m & 1);
    if (r.kind != kNormal || fine) units(words, fine, even, u);
    switch (r.kind) {
      case kUniform:
        for (int i = 0; i < m; i++) u[i] = r.a + scale * u[i];
        break;
      case kNormal:
        if (fine)
          normals(even, u);
        else
          normals(words, even, u);
        for (int i = 0; i < m; i++) u[i] = r.a + r.b * u[i];
        break;
      case kCoin:
        for (int i = 0; i < m; i++) u[i] = u[i] < r.a;
        break;
      case kValues:
        for (int i = 0; i < m; i++) u[i] = r.table[(int)(u[i] * r.n_table)];
        break;
      case kIndex:
        for (int i = 0; i < m; i++) u[i] = std::floor(u[i] * r.a);
        break;
      default:
        for (int i = 0; i < m; i++) u[i] = lower(r.table, r.n_table, u[i]);
    }
    store(u, m, limit, out + begin);
  }
}

void fill_any(const DistributionArgs &r, void *out, int64_t n, int dtype) {
  for_any_dtype(dtype, [&](auto t) { fill(r, (decltype(t) *)out, n, dtype); });
}

void run(const Tensor *out, const Tensor *, const DistributionArgs &a, Scratch &) {
  fill_any(a, out[0].data, out[0].volume(), out[0].dtype);
}

}  // namespace

EXPORT_KERNEL(distribution, DistributionArgs, run)

// The same for a whole batch whose samples have `count` elements each, one behind the other: for few numbers, which are
// made before a thread would have woken up. False if there is no such type.
EXPORT int32_t distribution_rows(const DistributionArgs *rows, int64_t n, int64_t count, int32_t dtype, char *out) {
  NativeTime time;
  try {
    for (int64_t i = 0; i < n; i++) fill_any(rows[i], out + i * count * item_size(dtype), count, dtype);
    return 1;
  } catch (const std::exception &) {
    return 0;
  }
}

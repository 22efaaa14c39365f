// SPDX-License-Identifier: Apache-2.0
#include "random/distribution.h"

#include "core/kernel.h"
#include "core/native_time.h"
#include "random/beta.h"
#include "random/lanes.h"

namespace {

constexpr int kBlocks = 256;  // a multiple of the elements of a SIMD register
constexpr int kElements = 4 * kBlocks;

// Words of `kBlocks` blocks: words[4 i + j] is word j of block first + i.
CLONES void words_of(const DistributionArgs &r, uint32_t first, uint32_t *words) {
  for (int start = 0; start < kBlocks; start += kLanes) {
    Lanes c;
    lanes_of(r, first + start, 0, c);
    for (int i = 0; i < kLanes; i++) {
      uint32_t *w = words + 4 * (start + i);
      for (int j = 0; j < 4; j++) w[j] = c.w[j][i];
    }
  }
}

CLONES void units(const uint32_t *words, bool fine, int n, double *u) {
  if (!fine)
    for (int i = 0; i < n; i++) u[i] = unit_of(words[i]);
  else
    for (int i = 0; i < n; i++) u[i] = unit_of(words[2 * i], words[2 * i + 1]);
}

CLONES void normals(int n, double *u) {
  for (int i = 0; i < n; i += 2) normal_pair(1 - u[i], u[i + 1], u[i], u[i + 1]);
}

CLONES void normals(const uint32_t *words, int n, double *z) {
  for (int i = 0; i < n; i += 2) {
    float a, b;
    normal_pair(words[i], words[i + 1], a, b);
    z[i] = a;
    z[i + 1] = b;
  }
}

// Vectorized for variates that the first try surely accepts; the others are made one by one.
template <bool kLogs>
CLONES void betas(const DistributionArgs &r, uint32_t first, int n, double *out) {
  const GammaShape a(r.a), b(r.b);
  for (int start = 0; start < n; start += kLanes) {
    Lanes c, p;
    uint64_t sure[kLanes];
    double value[kLanes];
    lanes_of(r, first + start, kFirstTry, c);
    if (kLogs) lanes_of(r, first + start, kPowers, p);
    for (int i = 0; i < kLanes; i++) {
      double z0, z1;
      normal_pair(open_unit_of(c.w[0][i]), unit_of(c.w[1][i]), z0, z1);
      const double u0 = open_unit_of(c.w[2][i]), u1 = open_unit_of(c.w[3][i]);
      sure[i] = (uint64_t)a.surely(z0, u0) & (uint64_t)b.surely(z1, u1);
      const double v = a.cube(z0), x = b.cube(z1);
      if (kLogs)
        value[i] = beta_of_logs(a.log_variate(v, open_unit_of(p.w[0][i])), b.log_variate(x, open_unit_of(p.w[1][i])));
      else
        value[i] = beta_of(a.d * v, b.d * x);
    }
    for (int i = 0; i < kLanes && start + i < n; i++)
      out[start + i] = sure[i] ? value[i] : beta_variate(a, b, r, first + start + i);
  }
}

// The number of cumulative probabilities that are at most u. For short tables: compares with all, which vectorizes.
CLONES void weighted_few(const double *table, int n_table, int n, double *u) {
  for (int i = 0; i < n; i++) {
    double k = 0;
    for (int j = 0; j < n_table; j++) k += u[i] >= table[j] ? 1.0 : 0.0;
    u[i] = k;
  }
}

double weighted(const double *table, int n, double u) {
  const double *first = table;
  while (n > 1) {  // branchless, as branches would be mispredicted
    const int half = n / 2;
    first += u >= first[half - 1] ? half : 0;
    n -= half;
  }
  return (double)(first - table);
}

template <class Out>
CLONES void store(const double *v, int n, double limit, void *out) {
  for (int i = 0; i < n; i++) static_cast<Out *>(out)[i] = deviate_as<Out>(v[i], limit);
}

void fill(const DistributionArgs &r, void *out, int64_t n, int dtype) {
  void (*store_as)(const double *v, int n, double limit, void *out) = nullptr;
  for_any_dtype(dtype, [&](auto t) { store_as = store<decltype(t)>; });
  const int64_t size = item_size(dtype);
  auto store = [&](const double *v, int n, double limit, int64_t begin) {
    store_as(v, n, limit, static_cast<char *>(out) + begin * size);
  };
  uint32_t words[kElements];
  double u[kElements];
  const bool fine = size == 8;  // 53 random bits instead of 32
  const int step = fine ? kElements / 2 : kElements;
  const double limit = r.kind == kUniform ? limit_below(r.b, r.a, dtype) : no_limit(), scale = r.b - r.a;
  for (int64_t begin = 0; begin < n; begin += step) {
    const int m = n - begin < step ? (int)(n - begin) : step;
    if (r.kind == kBeta) {
      if (m <= 4) {
        const GammaShape a(r.a), b(r.b);
        for (int i = 0; i < m; i++) u[i] = beta_variate(a, b, r, (uint32_t)(begin + i));
      } else if (r.a < 1 || r.b < 1) {
        betas<true>(r, (uint32_t)begin, m, u);
      } else {
        betas<false>(r, (uint32_t)begin, m, u);
      }
      store(u, m, no_limit(), begin);
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
        if (r.n_table <= 16)
          weighted_few(r.table, r.n_table, m, u);
        else
          for (int i = 0; i < m; i++) u[i] = weighted(r.table, r.n_table, u[i]);
    }
    store(u, m, limit, begin);
  }
}

void run(const Tensor *out, const Tensor *, const DistributionArgs &a, Scratch &) {
  fill(a, out[0].data, out[0].volume(), out[0].dtype);
}

}  // namespace

EXPORT_KERNEL(distribution, DistributionArgs, run)

// The same for a batch of samples with `count` elements each, stored in sequence. For few numbers, as waking a thread
// would take longer. `rows`: arguments per sample, or one row for all; their key, epoch and position are ignored.
// Returns 0 if `dtype` is not supported.
EXPORT int32_t distribution_rows(const DistributionArgs *rows, int64_t n_rows, uint64_t key, const uint32_t *epoch,
                                 const uint64_t *position, int64_t n, int64_t count, int32_t dtype, char *out) {
  NativeTime time;
  try {
    for (int64_t i = 0; i < n; i++) {
      DistributionArgs r = rows[n_rows == 1 ? 0 : i];
      r.key = (int64_t)key, r.position = (int64_t)position[i], r.epoch = (int32_t)epoch[i];
      fill(r, out + i * count * item_size(dtype), count, dtype);
    }
    return 1;
  } catch (const std::exception &) {
    return 0;
  }
}
EXPORT_LONG(distribution_rows)

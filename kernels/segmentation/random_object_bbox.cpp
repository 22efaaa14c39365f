// SPDX-License-Identifier: Apache-2.0
#include "segmentation/random_object_bbox.h"

#include <algorithm>

#include "random/draws.h"
#include "segmentation/blobs.h"

namespace {

typedef RandomObjectBboxArgs Args;

double volume_of(const Blob &b, int axes) {
  double v = 1;
  for (int d = 0; d < axes; d++) v *= b.high[d] - b.low[d];
  return v;
}

bool is_large_enough(const Blob &b, const Args &a, int axes) {
  for (int d = 0; d < (a.n_threshold ? axes : 0); d++)
    if (b.high[d] - b.low[d] < a.threshold[a.n_threshold == 1 ? 0 : d]) return false;
  return true;
}

// One of n blobs, or of the k largest of them, with equal probabilities.
const Blob *choose(const Blob **blobs, int64_t n, const Args &a, int axes, Draws &draws) {
  if (a.k_largest && n > a.k_largest) {
    std::nth_element(blobs, blobs + a.k_largest - 1, blobs + n, [axes](const Blob *x, const Blob *y) {
      const double u = volume_of(*x, axes), v = volume_of(*y, axes);
      return u > v || u == v && x < y;
    });
    n = a.k_largest;
    std::sort(blobs, blobs + n);
  }
  return blobs[draws.below(n)];
}

// Chooses a class that has blobs, by weight, then one of its blobs. `blobs` are sorted by label.
const Blob *choose_by_class(const Blob **blobs, int64_t n, const Args &a, int axes, Draws &draws) {
  const auto less = [](const Blob *b, int32_t label) { return b->label < label; };
  const auto begin_of = [&](int64_t label) {
    return label > INT32_MAX ? n : std::lower_bound(blobs, blobs + n, (int32_t)label, less) - blobs;
  };
  int64_t from = 0, to = 0;
  if (!a.has_classes) {
    int64_t n_classes = 0;
    for (int64_t i = 0; i < n; i++) n_classes += i == 0 || blobs[i]->label != blobs[i - 1]->label;
    int64_t left = draws.below(n_classes);
    for (; left >= 0; left--) {
      from = to;
      to = begin_of((int64_t)blobs[from]->label + 1);
    }
    return choose(blobs + from, to - from, a, axes, draws);
  }
  double total = 0;
  for (int pass = 0; pass < 2; pass++) {  // first adds up the weights, then finds the class that was drawn
    double left = pass ? draws.unit() * total : 0;
    for (int32_t c = 0; c < a.n_classes; c++) {
      const double weight = a.weights ? a.weights[c] : 1;
      const int64_t begin = begin_of(a.classes[c]), end = begin_of((int64_t)a.classes[c] + 1);
      if (begin == end || weight == 0) continue;
      if (!pass) {
        total += weight;
        continue;
      }
      from = begin, to = end;
      if ((left -= weight) < 0) break;
    }
    if (total == 0) return nullptr;
  }
  return choose(blobs + from, to - from, a, axes, draws);
}

const Blob *find(const Tensor &mask, const Args &a, Draws &draws, Scratch &scratch) {
  if (!(draws.unit() < a.foreground_prob)) return nullptr;
  const Labels labels{a.classes, a.has_classes ? a.n_classes : 0, a.background};
  if (a.has_classes && !a.n_classes) return nullptr;
  int64_t n_blobs = 0, n = 0;
  const Blob *blobs = find_blobs(mask, labels, scratch, n_blobs);
  const Blob **chosen = scratch.array<const Blob *>(n_blobs, 3);
  for (int64_t i = 0; i < n_blobs; i++)
    if (is_large_enough(blobs[i], a, mask.ndim)) chosen[n++] = blobs + i;
  if (n == 0) return nullptr;
  if (a.ignore_class) return choose(chosen, n, a, mask.ndim, draws);
  std::sort(chosen, chosen + n,
            [](const Blob *x, const Blob *y) { return x->label < y->label || x->label == y->label && x < y; });
  return choose_by_class(chosen, n, a, mask.ndim, draws);
}

void run(const Tensor *out, const Tensor *in, const Args &a, Scratch &scratch) {
  const int axes = in->ndim;
  Draws draws(a.key, a.position, a.epoch);
  const Blob *blob = find(*in, a, draws, scratch);
  int32_t *first = out[0].as<int32_t>(), *second = a.format == kBox ? first + axes : out[1].as<int32_t>();
  for (int d = 0; d < axes; d++) {
    const int32_t low = blob ? blob->low[d] : 0, high = blob ? blob->high[d] : (int32_t)in->shape[d];
    first[d] = low;
    second[d] = a.format == kAnchorShape ? high - low : high;
  }
  if (a.output_class) out[a.format == kBox ? 1 : 2].as<int32_t>()[0] = blob ? blob->label : a.background;
}

}  // namespace

EXPORT_KERNEL(random_object_bbox, RandomObjectBboxArgs, run)

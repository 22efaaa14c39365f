// SPDX-License-Identifier: Apache-2.0
#include "read/coco.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "read/mask.h"
#include "read/parser.h"

namespace {

constexpr int64_t kMostPixels = 1 << 29;

// The start of the i-th of consecutive lists, given their ends.
int64_t begin_of(const int64_t *end, int64_t i) { return i ? end[i - 1] : 0; }

void *array(Sample &sample, Tensor &t, int dtype, std::initializer_list<int64_t> shape) {
  t.dtype = dtype, t.ndim = 0;
  for (int64_t n : shape) t.shape[t.ndim++] = n;
  return t.data = sample.take(std::max<int64_t>(t.volume() * item_size(dtype), 1));
}

struct Objects {
  const CocoArgs &a;
  int64_t sample, n;
  const int64_t *number;  // indices of the annotations

  Objects(const CocoArgs &args, int64_t s) : a(args), sample(s), n(args.count[s]), number(args.order + args.first[s]) {}

  // Calls f(object, first vertex, number of vertices) for each polygon.
  template <class F>
  void each_polygon(int64_t i, F f) const {
    for (int64_t p = begin_of(a.polygon_end, number[i]); p < a.polygon_end[number[i]]; p++) {
      const int64_t begin = begin_of(a.vertex_end, p);
      f(i, begin, a.vertex_end[p] - begin);
    }
  }
};

void give_polygons(Sample &sample, int k, const Objects &objects) {
  const CocoArgs &a = objects.a;
  int64_t n_polygons = 0, n_vertices = 0;
  for (int64_t i = 0; i < objects.n; i++)
    objects.each_polygon(i, [&](int64_t, int64_t, int64_t n) { n_polygons++, n_vertices += n; });
  if (n_vertices > INT32_MAX / 2) fail("the polygons have %lld vertices", (long long)n_vertices);
  auto *polygon = (int32_t *)array(sample, sample.out(k), INT32, {n_polygons, 3});
  auto *vertex = (float *)array(sample, sample.out(k + 1), FLOAT, {n_vertices, 2});
  const int32_t each = a.has_polygons;
  const float width = a.ratio ? (float)a.width[objects.sample] : 1,
              height = a.ratio ? (float)a.height[objects.sample] : 1;
  int32_t at = 0;
  for (int64_t i = 0; i < objects.n; i++)
    objects.each_polygon(i, [&](int64_t object, int64_t begin, int64_t n) {
      *polygon++ = (int32_t)object, *polygon++ = at * each, *polygon++ = (at + (int32_t)n) * each;
      for (const float *v = a.vertex + 2 * begin, *end = v + 2 * n; v < end; v += 2)
        *vertex++ = v[0] / width, *vertex++ = v[1] / height;
      at += (int32_t)n;
    });
}

// Each pixel gets the label of its object, the largest label if several overlap.
void give_masks(Sample &sample, int k, const Objects &objects) {
  const CocoArgs &a = objects.a;
  const int64_t height = a.height[objects.sample], width = a.width[objects.sample];
  if (height < 1 || width < 1 || height * width > kMostPixels)
    fail("the annotations say that the image has %lld x %lld pixels", (long long)height, (long long)width);
  auto *pixels = (int32_t *)array(sample, sample.out(k), INT32, {height, width, 1});
  memset(pixels, 0, height * width * sizeof *pixels);
  std::vector<int64_t> order(objects.n), scratch;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return a.label[objects.number[i]] < a.label[objects.number[j]]; });
  for (int64_t i : order) {
    const int64_t number = objects.number[i];
    const int32_t label = a.label[number];
    objects.each_polygon(i, [&](int64_t, int64_t begin, int64_t n) {
      paint_polygon(a.vertex + 2 * begin, n, height, width, label, pixels, scratch);
    });
    for (int64_t r = begin_of(a.rle_end, number); r < a.rle_end[number]; r++) {
      const int32_t *size = a.rle_size + 2 * r;
      if (size[0] != height || size[1] != width)
        fail("a mask of object %lld has %d x %d pixels, the image %lld x %lld", (long long)i, size[0], size[1],
             (long long)height, (long long)width);
      const int64_t begin = begin_of(a.run_end, r);
      paint_runs(a.run + begin, a.run_end[r] - begin, height, width, label, pixels);
    }
  }
}

void parse(Sample &sample, const CocoArgs &a) {
  const Objects objects(a, sample.index);
  sample.give(0, sample.parts[0].data, sample.parts[0].size);
  auto *box = (float *)array(sample, sample.out(1), FLOAT, {objects.n, 4});
  auto *label = (int32_t *)array(sample, sample.out(2), INT32, {objects.n});
  for (int64_t i = 0; i < objects.n; i++) {
    memcpy(box + 4 * i, a.box + 4 * objects.number[i], 4 * sizeof *box);
    label[i] = a.label[objects.number[i]];
  }
  int k = 3;
  if (a.has_polygons) give_polygons(sample, k, objects), k += 2;
  if (a.has_masks) give_masks(sample, k, objects), k++;
  if (a.has_ids) *sample.out(k).as<int32_t>() = a.id[objects.sample];
}

}  // namespace

EXPORT_PARSER(coco, CocoArgs, parse)

// SPDX-License-Identifier: Apache-2.0
#include "segmentation/select_masks.h"

#include <algorithm>
#include <cstring>

#include "core/kernel.h"

namespace {

struct Polygon {
  int32_t id, begin, end;
};

// Calls use(k, polygon) for the polygons of mask number k of those chosen, mask by mask, each as they come.
template <class F>
void for_chosen(const Tensor *in, Scratch &scratch, F use) {
  const int64_t n_ids = in[0].volume(), n = in[1].shape[0], n_vertices = in[2].shape[0];
  if (n_ids < 0 || n < 0) return;  // they never are, but the compiler warns otherwise
  const int32_t *ids = in[0].as<int32_t>();
  const Polygon *polygons = in[1].as<Polygon>();
  for (int64_t i = 0; i < n; i++) {
    const Polygon &p = polygons[i];
    if (p.begin < 0 || p.end < p.begin || p.end > n_vertices)
      fail("polygon %lld, of mask %d, has the vertices [%d, %d); there are [0, %lld)", (long long)i, p.id, p.begin,
           p.end, (long long)n_vertices);
  }
  int64_t *order = scratch.array<int64_t>(n, 0);
  for (int64_t i = 0; i < n; i++) order[i] = i;
  std::sort(order, order + n, [polygons](int64_t a, int64_t b) {
    return polygons[a].id < polygons[b].id || polygons[a].id == polygons[b].id && a < b;
  });
  int32_t *sorted = scratch.array<int32_t>(n_ids, 1);
  std::partial_sort_copy(ids, ids + n_ids, sorted, sorted + n_ids);
  for (int64_t i = 1; i < n_ids; i++)
    if (sorted[i] == sorted[i - 1]) fail("the mask %d is selected twice", sorted[i]);
  for (int64_t k = 0; k < n_ids; k++) {
    const int64_t *at =
        std::lower_bound(order, order + n, ids[k], [polygons](int64_t i, int32_t id) { return polygons[i].id < id; });
    if (at == order + n || polygons[*at].id != ids[k]) fail("no polygon belongs to the selected mask %d", ids[k]);
    for (; at < order + n && polygons[*at].id == ids[k]; at++) use(k, polygons[*at]);
  }
}

void run(const Tensor *out, const Tensor *in, const SelectMasksArgs &a, Scratch &scratch) {
  int64_t n_polygons = 0, n_vertices = 0;
  Polygon *polygons = out[0].as<Polygon>();
  char *vertices = out[1].as<char>();
  const int64_t room = out[1].shape[0], size = in[2].shape[1] * item_size(in[2].dtype);
  for_chosen(in, scratch, [&](int64_t k, const Polygon &p) {
    const int32_t count = p.end - p.begin;
    polygons[n_polygons++] = {a.reindex ? (int32_t)k : p.id, (int32_t)n_vertices, (int32_t)n_vertices + count};
    const int64_t bytes = count * size;
    if (bytes > 0 && n_vertices + count <= room)
      std::memcpy(vertices + n_vertices * size, in[2].as<char>() + p.begin * size, bytes);
    n_vertices += count;
  });
  int64_t *counts = out[2].as<int64_t>();
  counts[0] = n_polygons, counts[1] = n_vertices;
}

}  // namespace

EXPORT_KERNEL(select_masks, SelectMasksArgs, run)

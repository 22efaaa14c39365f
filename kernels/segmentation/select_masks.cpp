// SPDX-License-Identifier: Apache-2.0
// Selects the polygons of chosen masks for a whole batch. Not parallel, as waking a thread takes longer than a sample,
// which has few numbers.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/kernel.h"

namespace {

struct Polygon {
  int32_t id, begin, end;
};

int64_t aligned(int64_t bytes) { return (bytes + 63) & ~63ll; }

// Calls use(k, polygon) for the polygons of each chosen mask k, in the order of the masks, then of the polygons.
template <class F>
void for_chosen(const Tensor &masks, const Tensor &all, int64_t n_vertices, F use) {
  static thread_local std::vector<int32_t> order, sorted;
  const int64_t n_ids = masks.volume();
  const int32_t *ids = masks.as<int32_t>(), n = (int32_t)all.shape[0];
  const Polygon *polygons = all.as<Polygon>();
  if (n > 0 && all.shape[1] != 3)
    fail("polygons (input 1) have three columns: id, begin, end; got the shape [%lld, %lld]", (long long)all.shape[0],
         (long long)all.shape[1]);
  bool in_order = true;
  for (int32_t i = 0; i < n; i++) {
    const Polygon &p = polygons[i];
    if (p.begin < 0 || p.end < p.begin || p.end > n_vertices)
      fail("polygon %d, of mask %d, has the vertices [%d, %d); there are [0, %lld)", i, p.id, p.begin, p.end,
           (long long)n_vertices);
    in_order &= i == 0 || polygons[i - 1].id <= p.id;
  }
  order.resize(n);
  for (int32_t i = 0; i < n; i++) order[i] = i;
  if (!in_order)
    std::stable_sort(order.begin(), order.end(),
                     [polygons](int32_t a, int32_t b) { return polygons[a].id < polygons[b].id; });
  sorted.assign(ids, ids + n_ids);
  std::sort(sorted.begin(), sorted.end());
  for (int64_t i = 1; i < n_ids; i++)
    if (sorted[i] == sorted[i - 1]) fail("the mask %d is selected twice", sorted[i]);
  for (int64_t k = 0; k < n_ids; k++) {
    auto at = std::lower_bound(order.begin(), order.end(), ids[k],
                               [polygons](int32_t i, int32_t id) { return polygons[i].id < id; });
    if (at == order.end() || polygons[*at].id != ids[k]) fail("no polygon belongs to the selected mask %d", ids[k]);
    for (; at != order.end() && polygons[*at].id == ids[k]; ++at) use(k, polygons[*at]);
  }
}

void describe(Tensor &t, void *data, int64_t *shape, int64_t rows, int64_t columns, int32_t dtype) {
  t = Tensor{data, {rows, columns}, 2, dtype};
  shape[0] = rows, shape[1] = columns;
}

}  // namespace

// An upper bound of the bytes for the selection, unless polygons share vertices.
EXPORT int64_t select_masks_room(const Tensor *polygons, const Tensor *vertices, int64_t n) {
  int64_t bytes = 64;
  for (int64_t i = 0; i < n; i++)
    bytes += aligned(polygons[i].shape[0] * (int64_t)sizeof(Polygon)) +
             aligned(vertices[i].volume() * item_size(vertices[i].dtype));
  return bytes;
}
EXPORT_SHORT(select_masks_room)

// For n samples with ids of masks (k), polygons (p, 3) as (id, first vertex, the one after the last), and vertices
// (v, c) of any type: copies the polygons of these masks and their vertices into `memory` of `room` bytes, each sample
// aligned, and fills the rows and shapes (n, 2) of both. Returns the number of bytes needed, which is more than `room`
// if it was not enough; -1 if a sample can't be handled, with the reasons in `errors` (kErrorSize each, else empty)
// unless that is null.
EXPORT int64_t select_masks(const Tensor *ids, const Tensor *polygons, const Tensor *vertices, int64_t n,
                            int32_t reindex, char *memory, int64_t room, Tensor *out, int64_t *shapes, char *errors) {
  int64_t used = 0;
  bool failed = false;
  for (int64_t i = 0; i < n; i++) used += aligned(polygons[i].shape[0] * (int64_t)sizeof(Polygon));
  char *first = memory;
  for (int64_t i = 0; i < n; i++) {
    const Tensor &from = vertices[i];
    const int64_t size = from.shape[1] * item_size(from.dtype);
    Polygon *chosen = (Polygon *)first;
    first += aligned(polygons[i].shape[0] * (int64_t)sizeof(Polygon));
    char *kept = memory + used;
    int64_t n_chosen = 0, n_kept = 0;
    try {
      for_chosen(ids[i], polygons[i], from.shape[0], [&](int64_t k, const Polygon &p) {
        const int64_t count = p.end - p.begin, bytes = count * size;
        if (n_kept + count > INT32_MAX) fail("the selected masks have more than 2^31 vertices");
        chosen[n_chosen++] = {reindex ? (int32_t)k : p.id, (int32_t)n_kept, (int32_t)(n_kept + count)};
        if (bytes && used + n_kept * size + bytes <= room)
          std::memcpy(kept + n_kept * size, from.as<char>() + p.begin * size, bytes);
        n_kept += count;
      });
    } catch (const std::exception &e) {
      failed = true;
      if (!errors) return -1;
      snprintf(errors + kErrorSize * i, kErrorSize, "%s", e.what());
    }
    describe(out[i], chosen, shapes + 2 * i, n_chosen, 3, INT32);
    describe(out[n + i], kept, shapes + 2 * (n + i), n_kept, from.shape[1], from.dtype);
    used += aligned(n_kept * size);
  }
  return failed ? -1 : used;
}
EXPORT_LONG(select_masks)

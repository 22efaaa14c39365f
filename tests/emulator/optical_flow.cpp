// SPDX-License-Identifier: Apache-2.0
// A libnvidia-opticalflow on the emulated device: for each vector the displacement of whole pixels, up to kReach, with
// the least difference around it; a hint within that reach is taken as it is. It checks how it is called.
// PENSTOCK_EMULATED_FLOW=0 makes it refuse the device.
#include <dlfcn.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum { OK, NOT_AVAILABLE, UNSUPPORTED, GONE, BAD_POINTER, BAD_PARAMETER, BAD_ORDER, BAD_VERSION };
enum { INPUT = 1, OUTPUT, HINT };
constexpr int kReach = 5, kAround = 2;

template <class F>
F driver(const char *name) {
  static void *library = dlopen(getenv("PENSTOCK_CUDA_DRIVER"), RTLD_NOW);
  return (F)dlsym(library, name);
}

struct Setup {
  uint32_t width, height, grid, hint_grid, mode, level, hints, costs;
  void *reserved;
  uint32_t disparity, regions;
};
struct Engine {
  Setup setup = {};
  bool ready = false;
  void *in = nullptr, *out = nullptr;  // streams
  int surfaces = 0;
};
struct Surface {
  Engine *engine;
  uint32_t width, height, usage, format, pitch;
  uint64_t address;
  uint8_t at(int y, int x, int channel) const {
    const int bytes = format == 1 ? 1 : 4;
    y = y < 0 ? 0 : y >= (int)height ? (int)height - 1 : y, x = x < 0 ? 0 : x >= (int)width ? (int)width - 1 : x;
    return ((const uint8_t *)address)[(int64_t)y * pitch + x * bytes + channel];
  }
};
struct Execution {
  Surface *first, *second, *hints;
  uint32_t forget, padding;
  void *reserved;
  uint32_t padding2, n_regions;
  void *regions;
};
struct Results {
  Surface *vectors, *costs;
  void *reserved;
};
std::set<void *> &live = *new std::set<void *>;
std::vector<int> &forgot = *new std::vector<int>;  // of each execution

int create(void *context, Engine **engine) {
  const char *text = getenv("PENSTOCK_EMULATED_FLOW");
  if (text && !strcmp(text, "0")) return UNSUPPORTED;
  if (!context) return BAD_POINTER;
  live.insert(*engine = new Engine);
  return OK;
}
int set_up(Engine *e, const Setup *s) {
  const bool good = s->width >= 32 && s->height >= 32 && (s->grid == 1 || s->grid == 2 || s->grid == 4) &&
                    s->mode == 1 && (s->level == 5 || s->level == 10 || s->level == 20) && !s->costs && !s->reserved &&
                    s->hint_grid >= s->grid;
  if (!good || e->ready) return BAD_PARAMETER;
  e->setup = *s, e->ready = true;
  return OK;
}
int make_surface(Engine *e, const uint32_t *d, int type, Surface **surface) {
  if (!e->ready) return BAD_ORDER;
  const uint32_t cell = d[2] == INPUT ? 1 : d[2] == OUTPUT ? e->setup.grid : e->setup.hint_grid;
  const bool format = d[2] == INPUT ? d[3] == 1 || d[3] == 3 : d[3] == 5;
  if (type != 2 || !format || d[0] != (e->setup.width + cell - 1) / cell || d[1] != (e->setup.height + cell - 1) / cell)
    return BAD_PARAMETER;
  auto *s = new Surface{e, d[0], d[1], d[2], d[3], 0, 0};
  s->pitch = (d[0] * (d[3] == 1 ? 1 : 4) + 255) / 256 * 256;
  if (driver<int (*)(uint64_t *, size_t)>("cuMemAlloc_v2")(&s->address, (size_t)s->pitch * s->height)) return 8;
  e->surfaces++;
  live.insert(*surface = s);
  return OK;
}
void *array(Surface *) { return nullptr; }
uint64_t address(Surface *s) { return s->address; }
int strides(Surface *s, uint32_t *to) {
  memset(to, 0, 7 * sizeof *to);
  to[0] = s->pitch, to[1] = s->height, to[6] = 1;
  return OK;
}
int use_streams(Engine *e, void *in, void *out) { return e->in = in, e->out = out, OK; }

void search(const Surface &a, const Surface &b, int y, int x, const int16_t *hint, int16_t *v) {
  const int channels = a.format == 1 ? 1 : 3;
  long best = LONG_MAX;
  for (int dy = -kReach; dy <= kReach; dy++)
    for (int dx = -kReach; dx <= kReach; dx++) {
      long sum = dy * dy + dx * dx;  // of equals the nearest
      for (int i = -kAround; i <= kAround; i++)
        for (int j = -kAround; j <= kAround; j++)
          for (int c = 0; c < channels; c++)
            sum += 256l * abs(a.at(y + i, x + j, c) - b.at(y + dy + i, x + dx + j, c)) * (1 + 3 * (c == 0));
      if (hint && hint[0] == 32 * dx && hint[1] == 32 * dy) sum = -1;
      if (sum < best) best = sum, v[0] = (int16_t)(32 * dx), v[1] = (int16_t)(32 * dy);
    }
}

int execute(Engine *e, const Execution *x, const Results *r) {
  if (!e->ready) return BAD_ORDER;
  for (void *s : {(void *)x->first, (void *)x->second, (void *)r->vectors})
    if (!live.count(s)) return BAD_POINTER;
  if (x->first->usage != INPUT || x->second->usage != INPUT || r->vectors->usage != OUTPUT) return BAD_PARAMETER;
  if (e->setup.hints != (x->hints != nullptr) || (x->hints && x->hints->usage != HINT)) return BAD_PARAMETER;
  driver<int (*)(void *)>("cuStreamSynchronize")(e->in);
  forgot.push_back((int)x->forget);
  const int grid = (int)e->setup.grid, hint_grid = (int)e->setup.hint_grid;
  for (int i = 0; i < (int)r->vectors->height; i++)
    for (int j = 0; j < (int)r->vectors->width; j++) {
      const int y = i * grid + grid / 2, k = j * grid + grid / 2;
      const int16_t *hint = nullptr;
      if (x->hints)
        hint = (const int16_t *)(x->hints->address + (uint64_t)(i * grid / hint_grid) * x->hints->pitch +
                                 (uint64_t)(j * grid / hint_grid) * 4);
      search(*x->first, *x->second, y, k, hint,
             (int16_t *)(r->vectors->address + (uint64_t)i * r->vectors->pitch + j * 4));
    }
  return OK;
}
int destroy_surface(Surface *s) {
  if (!live.erase(s)) return BAD_POINTER;
  s->engine->surfaces--;
  const int status = driver<int (*)(uint64_t)>("cuMemFree_v2")(s->address);
  delete s;
  return status ? BAD_POINTER : OK;
}
int destroy(Engine *e) {
  if (e->surfaces || !live.erase(e)) return BAD_ORDER;
  delete e;
  return OK;
}
int last_error(Engine *, char *text, uint32_t *size) { return *size = (uint32_t)snprintf(text, *size, "emulated"), OK; }
int capabilities(Engine *, int what, uint32_t *values, uint32_t *size) {
  static const std::vector<uint32_t> known[] = {{1, 2, 4}, {1, 2, 4, 8}, {1}, {0}, {32}, {32}, {512}, {256}};
  if (what < 0 || what > 7) return BAD_PARAMETER;
  *size = (uint32_t)known[what].size();
  if (values) memcpy(values, known[what].data(), *size * sizeof *values);
  return OK;
}

}  // namespace

API int NvOFAPICreateInstanceCuda(uint32_t version, void **table) {
  if (version != 0x20) return BAD_VERSION;
  void *functions[] = {(void *)create,          (void *)set_up,  (void *)make_surface, (void *)array,
                       (void *)address,         (void *)strides, (void *)use_streams,  (void *)execute,
                       (void *)destroy_surface, (void *)destroy, (void *)last_error,   (void *)capabilities};
  memcpy(table, functions, sizeof functions);
  return OK;
}
// How many engines and surfaces are alive.
API int emulated_flow_live() { return (int)live.size(); }
// For each execution since the last call a digit: 1 if what was found before was to be forgotten.
API const char *emulated_flow_forgot() {
  static char text[256];
  size_t n = 0;
  for (int f : forgot)
    if (n + 1 < sizeof text) text[n++] = (char)('0' + f);
  text[n] = 0;
  forgot.clear();
  return text;
}

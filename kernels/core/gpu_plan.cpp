// SPDX-License-Identifier: Apache-2.0
// Starts the plan of a GPU segment for a batch: src/penstock/exec/gpu/plan.py makes and describes both.
#include <cstring>

#include "core/driver.h"
#include "core/kernel.h"

namespace {

enum Memory { IMAGE, WORKSPACE, OUTPUTS };

// Numbers in the image that are offsets into some memory.
struct Patch {
  int64_t at, step, n;  // bytes from the beginning of the image, and between rows
  int64_t which;        // index of the memory
};

// Mirrors struct Launch of gpu.h.
struct Argument {
  uint64_t tensors[16], args[12], scratch;
  int32_t n, unused;
};

// Addresses in `argument` are offsets: of rows from the beginning of the image, of scratch from the workspace's.
struct Start {
  Driver::Handle function;
  uint32_t grid[3], block[3], shared;
  int32_t n_tensors, n_args, has_scratch;
  int64_t zeroed;  // bytes of scratch to fill with zeros first
  Argument argument;
};

// The rows of an output batch, data as offsets from its memory.
struct Rows {
  const Tensor *rows;
  int64_t n;
};

// A part that the image is assembled from.
struct Part {
  const char *from;
  int64_t at, bytes;
};

struct Plan {
  const Part *parts;
  const Patch *patches;
  const Start *starts;
  const Rows *outputs;
  int64_t image_bytes;
  int32_t n_parts, n_patches, n_starts, n_outputs;
};

// The arguments of a start.
struct Place {
  const uint64_t *memory;  // the addresses of the image, the workspace, the outputs, and slots for inner tensors
  Tensor *const *outputs;
  char *staging;
  Driver::Handle stream, begin, end;  // the events may be null
};

void add(char *at, uint64_t value) {
  uint64_t x;
  std::memcpy(&x, at, 8);
  x += value;
  std::memcpy(at, &x, 8);
}

int launch(const Start &s, const Place &place) {
  Argument argument = s.argument;
  for (int i = 0; i < s.n_tensors; i++) argument.tensors[i] += place.memory[IMAGE];
  for (int i = 0; i < s.n_args; i++) argument.args[i] += place.memory[IMAGE];
  if (s.has_scratch) argument.scratch += place.memory[WORKSPACE];
  if (s.zeroed)
    if (int code = driver.fill(argument.scratch, 0, s.zeroed, place.stream)) return code;
  void *parameters[] = {&argument};
  return driver.launch(s.function, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2], s.shared,
                       place.stream, parameters, nullptr);
}

// Returns 0, or the driver's error code and, above 32 bits, the number of the start that failed.
int64_t start(const Plan &plan, const Place &place) {
  int code = place.begin ? driver.record(place.begin, place.stream) : 0;
  if (!code && plan.image_bytes)
    code = driver.upload(place.memory[IMAGE], place.staging, plan.image_bytes, place.stream);
  int64_t done = 0;
  for (; !code && done < plan.n_starts; done++) code = launch(plan.starts[done], place);
  if (!code && place.end) code = driver.record(place.end, place.stream);
  return code ? done << 32 | code : 0;
}

}  // namespace

// Assembles the image for a batch in the staging memory, copies it to the GPU and launches everything; fills the rows
// of the output batches. Returns the result of `start`.
EXPORT int64_t start_plan(const Plan *plan, const uint64_t *memory, Tensor *const *outputs, char *staging,
                          Driver::Handle stream, Driver::Handle begin, Driver::Handle end) {
  const Place place{memory, outputs, staging, stream, begin, end};
  {
    NativeTime time;
    for (int k = 0; k < plan->n_parts; k++)
      std::memcpy(place.staging + plan->parts[k].at, plan->parts[k].from, plan->parts[k].bytes);
    for (int k = 0; k < plan->n_patches; k++) {
      const Patch &p = plan->patches[k];
      char *at = place.staging + p.at;
      for (int64_t i = 0; i < p.n; i++, at += p.step) add(at, place.memory[p.which]);
    }
    for (int k = 0; k < plan->n_outputs; k++) {
      const Rows &o = plan->outputs[k];
      Tensor *rows = place.outputs[k];
      std::memcpy((void *)rows, o.rows, o.n * sizeof(Tensor));
      for (int64_t i = 0; i < o.n; i++) rows[i].data = (char *)rows[i].data + place.memory[OUTPUTS + k];
    }
  }
  return timed([&] { return start(*plan, place); });
}
EXPORT_SHORT(start_plan)

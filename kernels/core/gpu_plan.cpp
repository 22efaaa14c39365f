// SPDX-License-Identifier: Apache-2.0
// Starts the plan of a GPU segment for a batch: src/penstock/exec/gpu/plan.py makes and describes both.
#include <cstring>

#include "core/driver.h"
#include "core/kernel.h"

namespace {

enum Memory { IMAGE, WORKSPACE };

// Numbers in the image that are offsets into some memory.
struct Patch {
  int64_t at, step, n;  // bytes from the beginning of the image, and between rows
  int64_t which;        // index of the memory
};

// `argument`, a struct Launch of gpu.h, is in the image.
struct Start {
  Driver::Handle function;
  uint32_t grid[3], block[3], shared;
  int64_t zeroed;  // bytes of the workspace to fill with zeros first
  int64_t argument;
};

// A part that the image is assembled from.
struct Part {
  const char *from;
  int64_t at, bytes;
};

// The image begins with the rows of the output batches.
struct Plan {
  const Part *parts;
  const Patch *patches;
  const Start *starts;
  int64_t image_bytes, output_bytes;
  int32_t n_parts, n_patches, n_starts;
};

}  // namespace

// Assembles the image for a batch in the staging memory, copies the rows of the output batches from it, copies it to
// the GPU and launches everything. `memory` are the addresses of the image, the workspace, the outputs, and slots for
// inner tensors; the events may be null. Returns 0, or the driver's error code and, above 32 bits, the number of the
// launch that failed, from 1.
EXPORT int64_t start_plan(const Plan *plan, const uint64_t *memory, Tensor *outputs, char *staging,
                          Driver::Handle stream, Driver::Handle begin, Driver::Handle end) {
  {
    NativeTime time;
    for (int k = 0; k < plan->n_parts; k++)
      std::memcpy(staging + plan->parts[k].at, plan->parts[k].from, plan->parts[k].bytes);
    for (int k = 0; k < plan->n_patches; k++) {
      const Patch &p = plan->patches[k];
      for (int64_t i = 0; i < p.n; i++) {
        uint64_t x;
        std::memcpy(&x, staging + p.at + i * p.step, 8);
        x += memory[p.which];
        std::memcpy(staging + p.at + i * p.step, &x, 8);
      }
    }
    std::memcpy((void *)outputs, staging, plan->output_bytes);
  }
  int64_t done = 0;
  const int code = timed([&] {
    int code = begin ? driver.record(begin, stream) : 0;
    if (!code) code = driver.upload(memory[IMAGE], staging, plan->image_bytes, stream);
    for (; !code && done < plan->n_starts; done++) {
      const Start &s = plan->starts[done];
      if (s.zeroed) code = driver.fill(memory[WORKSPACE], 0, s.zeroed, stream);
      void *parameters[] = {staging + s.argument};
      if (!code)
        code = driver.launch(s.function, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2], s.shared,
                             stream, parameters, nullptr);
    }
    return !code && end ? driver.record(end, stream) : code;
  });
  return code ? done << 32 | code : 0;
}
EXPORT_SHORT(start_plan)

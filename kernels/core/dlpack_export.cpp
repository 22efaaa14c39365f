// SPDX-License-Identifier: Apache-2.0
// GPU tensors that other libraries hold through DLPack (https://dmlc.github.io/dlpack). They may release a tensor in
// any thread at any time, without the GIL. Released tensors go on a list, behind an event in the stream that used them;
// Python collects them when it needs memory.
#include <atomic>
#include <new>

#include "core/driver.h"
#include "core/kernel.h"
#include "core/python.h"

namespace {
typedef Driver::Handle Handle;

struct Managed {  // DLManagedTensor
  void *data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
  void *context;
  void (*deleter)(Managed *);
};
static_assert(sizeof(Managed) == 64, "as DLPack lays it out");

struct Exported : Managed {
  Handle event, stream, cuda_context;
  bool is_recorded;
  uint32_t process;  // a forked child can't use CUDA handles
  Exported *next;
  int64_t extents[kMaxDims + 1];
};

constexpr const char *kName = "dltensor";
constexpr int kCuda = 2;
std::atomic<Exported *> list{nullptr};
static_assert(sizeof list == 8, "Python reads it as a number");
std::atomic<bool> ended{false};

void put(Exported *first, Exported *last) {
  Exported *head = list.load(std::memory_order_relaxed);
  do last->next = head;
  while (!list.compare_exchange_weak(head, first, std::memory_order_release, std::memory_order_relaxed));
}

void release(Managed *managed) {
  if (ended.load(std::memory_order_relaxed)) return;
  Exported *exported = static_cast<Exported *>(managed);
  exported->is_recorded = false;
  // Default streams belong to the current context.
  if (exported->process == python.processes && !driver.push(exported->cuda_context)) {
    exported->is_recorded = !driver.record(exported->event, exported->stream);
    Handle before;
    driver.pop(&before);
  }
  put(exported, exported);
}
}  // namespace

// Address of the list's head, which is not null if there is anything to take back.
EXPORT void *released_list() { return &list; }
EXPORT_SHORT(released_list)

// Called when Python ends: tensors released from now on are left as they are.
EXPORT void stop_releasing() { ended = true; }
EXPORT_SHORT(stop_releasing)

// Capsule destructor: frees a tensor that no library took.
EXPORT void drop_capsule(PyObject *capsule) {
  if (!python.is_valid(capsule, kName)) return;
  auto *managed = static_cast<Managed *>(python.pointer(capsule, kName));
  if (managed->deleter) managed->deleter(managed);
}

// Returns a capsule of n contiguous samples, the first being `row`, or of that sample alone if n is negative. On
// release `event` is recorded in `stream`; it is lent until `take_released` returns it.
EXPORT PyObject *export_capsule(const Tensor *row, int64_t n, int32_t device, Handle stream, Handle event,
                                Handle context) {
  Exported *exported = new (std::nothrow) Exported();
  if (!exported) return python.no_memory();
  exported->data = row->data;
  exported->device_type = kCuda, exported->device_id = device;
  if (n >= 0) exported->extents[exported->ndim++] = n;
  for (int d = 0; d < row->ndim; d++) exported->extents[exported->ndim++] = row->shape[d];
  const int dtype = row->dtype;
  exported->code = dtype == BOOL ? 6 : dtype >= FLOAT16 ? 2 : dtype < INT8;
  exported->bits = 8 * item_size(dtype), exported->lanes = 1;
  exported->shape = exported->extents;
  exported->deleter = release;
  exported->event = event, exported->stream = stream, exported->cuda_context = context,
  exported->process = python.processes;
  PyObject *capsule = python.new_capsule(static_cast<Managed *>(exported), kName, drop_capsule);
  if (!capsule) delete exported;
  return capsule;
}
EXPORT_SHORT(export_capsule)

// Takes at most n tensors from the list and returns how many. Fills in, for each, its event and state: 1 completed, 0
// recorded, -1 could not be recorded.
EXPORT int64_t take_released(int64_t *found, int64_t n) {
  Exported *exported = list.exchange(nullptr, std::memory_order_acquire);
  int64_t taken = 0;
  while (exported && taken < n) {
    Exported *next = exported->next;
    found[2 * taken] = (int64_t)exported->event;
    found[2 * taken + 1] = !exported->is_recorded ? -1 : !driver.query(exported->event);
    delete exported;
    exported = next, taken++;
  }
  if (exported) {
    Exported *last = exported;
    while (last->next) last = last->next;
    put(exported, last);
  }
  return taken;
}
EXPORT_SHORT(take_released)

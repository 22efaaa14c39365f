// SPDX-License-Identifier: Apache-2.0
// Tensors on the GPU that other libraries hold, by DLPack (https://dmlc.github.io/dlpack). They let go of them in
// whatever thread and at whatever moment; Python's lock is not taken for it. What is let go of is put on a list, behind
// an event in the stream that was its user's, and Python collects it when memory is wanted.
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

struct Handed : Managed {
  Handle event, stream, cuda_context;
  bool is_recorded;
  uint32_t process;  // in a forked child CUDA's handles mean nothing
  Handed *next;
  int64_t extents[kMaxDims + 1];
};

constexpr const char *kName = "dltensor";
constexpr int kCuda = 2;
std::atomic<Handed *> list{nullptr};
static_assert(sizeof list == 8, "Python reads it as a number");
std::atomic<bool> ended{false};

void put(Handed *first, Handed *last) {
  Handed *head = list.load(std::memory_order_relaxed);
  do last->next = head;
  while (!list.compare_exchange_weak(head, first, std::memory_order_release, std::memory_order_relaxed));
}

void let_go(Managed *managed) {
  if (ended.load(std::memory_order_relaxed)) return;
  Handed *handed = static_cast<Handed *>(managed);
  handed->is_recorded = false;
  // Default streams are those of the current context.
  if (handed->process == python.processes && !driver.push(handed->cuda_context)) {
    handed->is_recorded = !driver.record(handed->event, handed->stream);
    Handle before;
    driver.pop(&before);
  }
  put(handed, handed);
}
}  // namespace

// Where the list begins: not 0 if there is anything to take back.
EXPORT void *let_go_list() { return &list; }
EXPORT_SHORT(let_go_list)

// Python ends: tensors that are let go of from now on stay as they are.
EXPORT void stop_taking_back() { ended = true; }
EXPORT_SHORT(stop_taking_back)

// The destructor of capsules: what nobody took dies with its capsule.
EXPORT void drop_capsule(PyObject *capsule) {
  if (!python.is_valid(capsule, kName)) return;
  auto *managed = static_cast<Managed *>(python.pointer(capsule, kName));
  if (managed->deleter) managed->deleter(managed);
}

// A capsule of n samples, one behind the other, of which `row` is the first, or, if n is negative, of that one alone.
// `event` is recorded in `stream` when it is let go of; until `take_back` gives the event back, it is lent.
EXPORT PyObject *hand_over(const Tensor *row, int64_t n, int32_t device, Handle stream, Handle event, Handle context) {
  Handed *handed = new (std::nothrow) Handed();
  if (!handed) return python.no_memory();
  handed->data = row->data;
  handed->device_type = kCuda, handed->device_id = device;
  if (n >= 0) handed->extents[handed->ndim++] = n;
  for (int d = 0; d < row->ndim; d++) handed->extents[handed->ndim++] = row->shape[d];
  const int dtype = row->dtype;
  handed->code = dtype == BOOL ? 6 : dtype >= FLOAT16 ? 2 : dtype < INT8;
  handed->bits = 8 * item_size(dtype), handed->lanes = 1;
  handed->shape = handed->extents;
  handed->deleter = let_go;
  handed->event = event, handed->stream = stream, handed->cuda_context = context, handed->process = python.processes;
  PyObject *capsule = python.new_capsule(static_cast<Managed *>(handed), kName, drop_capsule);
  if (!capsule) delete handed;
  return capsule;
}
EXPORT_SHORT(hand_over)

// Takes at most n from the list. Fills in, for each, its event and what is known of it: 1, it has happened; 0, it was
// recorded; -1, it could not be recorded. Returns how many they are.
EXPORT int64_t take_back(int64_t *found, int64_t n) {
  Handed *handed = list.exchange(nullptr, std::memory_order_acquire);
  int64_t taken = 0;
  while (handed && taken < n) {
    Handed *next = handed->next;
    found[2 * taken] = (int64_t)handed->event;
    found[2 * taken + 1] = !handed->is_recorded ? -1 : !driver.query(handed->event);
    delete handed;
    handed = next, taken++;
  }
  if (handed) {
    Handed *last = handed;
    while (last->next) last = last->next;
    put(handed, last);
  }
  return taken;
}
EXPORT_SHORT(take_back)

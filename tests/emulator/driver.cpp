// SPDX-License-Identifier: Apache-2.0
// A libcuda of host memory: the functions of CUDA's driver API that penstock calls. Memory is filled with 0xCD when it
// is given out and guarded on both sides; a write into a guard, seen after a launch or when memory is freed, makes this
// and every later call fail, as an illegal address does on a device. PENSTOCK_EMULATED_MEMORY limits the memory
// (bytes), PENSTOCK_EMULATED_LOCKED the registered memory, PENSTOCK_EMULATED_DEVICES says how many devices there are.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "fibers.h"
#include "host_memory.h"
#include "stream.h"

#define API extern "C" __attribute__((visibility("default"))) int

namespace {

enum Result { OK, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, NO_IMAGE = 200, NOT_FOUND = 500, NOT_READY = 600 };
constexpr int ILLEGAL_ADDRESS = 700, INVALID_DEVICE = 101, INVALID_CONTEXT = 201;

// Nothing here is ever destroyed: streams may still be at work when the process exits.
std::mutex &state = *new std::mutex;
std::map<uint64_t, size_t> &allocations = *new std::map<uint64_t, size_t>, &pinned = *new std::map<uint64_t, size_t>;
RegisteredMemory &registered = *new RegisteredMemory;
size_t used;
auto &streams = *new std::map<void *, std::shared_ptr<EmulatedStream>>;  // shared with who waits while one is destroyed
std::string &failure = *new std::string;                                 // what went wrong on the device; sticky
std::mutex &kernels = *new std::mutex;  // one launch at a time: shared memory is static
thread_local std::vector<void *> contexts;

size_t capacity() {
  const char *text = getenv("PENSTOCK_EMULATED_MEMORY");
  return text ? strtoull(text, nullptr, 10) : (size_t)4 << 30;
}
int n_devices() {
  const char *text = getenv("PENSTOCK_EMULATED_DEVICES");
  return text ? atoi(text) : 1;
}

void report(const std::string &text) {
  std::lock_guard<std::mutex> lock(state);
  if (!failure.empty()) return;
  failure = text;
  fprintf(stderr, "emulated device: %s\n", text.c_str());
}
int status() {
  std::lock_guard<std::mutex> lock(state);
  return failure.empty() ? OK : ILLEGAL_ADDRESS;
}

void check_guards(const std::string &doing) {
  std::string found;
  {
    std::lock_guard<std::mutex> lock(state);
    for (auto &a : allocations)
      if (!guards_intact(a.first, a.second))
        found = doing + " wrote outside of an allocation of " + std::to_string(a.second) + " bytes";
    for (auto &a : pinned)
      if (!guard_intact(a.first + a.second))
        found = "pinned memory was written to behind its " + std::to_string(a.second) + " bytes";
  }
  if (!found.empty()) report(found);
}

EmulatedStream &stream_of(void *handle) {
  static EmulatedStream &standard = *new EmulatedStream;                // stream 0
  return (uintptr_t)handle > 2 ? *(EmulatedStream *)handle : standard;  // 1 and 2 stand for default streams too
}
bool lacks_context(void *stream) { return (uintptr_t)stream <= 2 && contexts.empty(); }
void synchronize_all() {
  std::map<void *, std::shared_ptr<EmulatedStream>> all;
  {
    std::lock_guard<std::mutex> lock(state);
    all = streams;
  }
  for (auto &s : all) s.second->synchronize();
  stream_of(nullptr).synchronize();
}

struct Module {
  void *library;
};
struct Function {
  std::string name;
  EmulatedContext *context;
  void (*call)(const void *);
  const int *argument_size;
};
auto &functions = *new std::map<std::pair<void *, std::string>, std::unique_ptr<Function>>;

void fail_kernel(const char *text) { report(std::string("a kernel failed: ") + text); }

bool in_allocation(uint64_t address, size_t size) {
  std::lock_guard<std::mutex> lock(state);
  auto a = allocations.upper_bound(address);
  if (a == allocations.begin()) return false;
  --a;
  return address + size <= a->first + a->second;
}
bool is_pinned(uint64_t address) {
  if (registered.has(address)) return true;
  std::lock_guard<std::mutex> lock(state);
  return covers(pinned, address);
}

}  // namespace

// What went wrong on the device, or "".
extern "C" __attribute__((visibility("default"))) const char *emulated_failure() {
  static std::string copy;
  std::lock_guard<std::mutex> lock(state);
  copy = failure;
  return copy.c_str();
}

// What a stream is asked for from now on begins when `emulated_let_go` is called with what this returns.
extern "C" __attribute__((visibility("default"))) void *emulated_hold(void *stream) {
  auto gate = std::make_shared<Recorded>();
  stream_of(stream).add([=] { gate->wait(); });
  return new std::shared_ptr<Recorded>(gate);
}
extern "C" __attribute__((visibility("default"))) void emulated_let_go(void *gate) {
  auto *held = (std::shared_ptr<Recorded> *)gate;
  (*held)->happen();
  delete held;
}

// How many ranges of memory are registered.
extern "C" __attribute__((visibility("default"))) int64_t emulated_registered() { return registered.count(); }

// How many kernels a stream was given, and how often the host has waited for it or for an event in it.
extern "C" __attribute__((visibility("default"))) void emulated_counts(void *stream, int64_t *launches,
                                                                       int64_t *waits) {
  const Counts &counts = *stream_of(stream).counts;
  *launches = counts.launches, *waits = counts.waits;
}

API cuInit(unsigned) { return OK; }
API cuDriverGetVersion(int *version) {
  const char *text = getenv("PENSTOCK_EMULATED_CUDA");
  return *version = text ? atoi(text) : 13000, OK;
}
API cuDeviceGetCount(int *count) { return *count = n_devices(), OK; }
API cuDeviceGet(int *device, int number) { return *device = number, number < n_devices() ? OK : INVALID_DEVICE; }
API cuDeviceGetName(char *name, int size, int) { return snprintf(name, size, "Emulated device"), OK; }
API cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = capacity(), OK; }
API cuDeviceGetAttribute(int *value, int attribute, int) {
  *value = attribute == 16 ? 4 : attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 97 ? 232448 : 1;
  return OK;
}

API cuDevicePrimaryCtxRetain(void **context, int device) { return *context = (void *)(intptr_t)(device + 1), OK; }
API cuDevicePrimaryCtxRelease_v2(int) { return OK; }
API cuCtxSetCurrent(void *context) {
  if (!contexts.empty()) contexts.pop_back();
  return contexts.push_back(context), OK;
}
API cuCtxGetCurrent(void **context) { return *context = contexts.empty() ? nullptr : contexts.back(), OK; }
API cuCtxPushCurrent_v2(void *context) { return contexts.push_back(context), OK; }
API cuCtxPopCurrent_v2(void **context) {
  if (contexts.empty()) return INVALID_CONTEXT;
  *context = contexts.back();
  return contexts.pop_back(), OK;
}
API cuCtxSynchronize() {
  for (auto &s : streams) s.second->counts->waits++;
  return synchronize_all(), status();
}

API cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  if (contexts.empty()) return INVALID_CONTEXT;
  if (int s = status()) return s;
  if (!bytes) return INVALID_VALUE;
  std::lock_guard<std::mutex> lock(state);
  if (used + bytes > capacity()) return OUT_OF_MEMORY;
  void *p = nullptr;
  if (posix_memalign(&p, 256, bytes + 2 * kGuard)) return OUT_OF_MEMORY;
  memset(p, kGuardByte, kGuard);
  memset((char *)p + kGuard, kPoison, bytes);
  memset((char *)p + kGuard + bytes, kGuardByte, kGuard);
  *address = (uint64_t)p + kGuard;
  allocations[*address] = bytes;
  used += bytes;
  return OK;
}
API cuMemFree_v2(uint64_t address) {
  synchronize_all();
  check_guards("something");
  std::lock_guard<std::mutex> lock(state);
  auto a = allocations.find(address);
  if (a == allocations.end()) return INVALID_VALUE;
  used -= a->second;
  memset((void *)(address - kGuard), 0xDD, a->second + 2 * kGuard);
  free((void *)(address - kGuard));
  allocations.erase(a);
  return failure.empty() ? OK : ILLEGAL_ADDRESS;
}
API cuMemGetInfo_v2(size_t *available, size_t *total) {
  std::lock_guard<std::mutex> lock(state);
  return *total = capacity(), *available = capacity() - used, OK;
}
API cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  if (contexts.empty()) return INVALID_CONTEXT;
  if (posix_memalign(address, 4096, bytes + kGuard)) return OUT_OF_MEMORY;
  memset(*address, kPoison, bytes);
  memset((char *)*address + bytes, kGuardByte, kGuard);
  std::lock_guard<std::mutex> lock(state);
  return pinned[(uint64_t)*address] = bytes, OK;
}
API cuMemFreeHost(void *address) {
  synchronize_all();
  check_guards("something");
  std::lock_guard<std::mutex> lock(state);
  return pinned.erase((uint64_t)address), free(address), OK;
}
API cuMemHostRegister_v2(void *address, size_t bytes, unsigned) {
  if (contexts.empty()) return INVALID_CONTEXT;
  const char *limit = getenv("PENSTOCK_EMULATED_LOCKED");
  return registered.add((uint64_t)address, bytes, limit ? strtoull(limit, nullptr, 10) : SIZE_MAX) ? OK : OUT_OF_MEMORY;
}
API cuMemHostUnregister(void *address) {
  if (contexts.empty()) return INVALID_CONTEXT;
  const size_t bytes = registered.remove((uint64_t)address);
  if (bytes && !is_mapped((uint64_t)address, bytes)) report("registered memory was unmapped");
  return bytes ? OK : INVALID_VALUE;
}
API cuPointerGetAttribute(void *data, int attribute, uint64_t address) {
  if (!in_allocation(address, 1)) return INVALID_VALUE;
  if (attribute == 2) *(int *)data = 2;  // memory type: device
  if (attribute == 9) *(int *)data = 0;  // device ordinal
  return OK;
}

API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  if (!in_allocation(to, bytes)) report("a copy to the device leaves its allocation");
  if (int s = to_device.count(bytes, status())) return s;
  if (is_pinned((uint64_t)from)) {
    const uint64_t before = checksum(from, bytes);
    stream_of(stream).add([=] {
      if (!is_pinned((uint64_t)from)) return report("pinned memory was given back before it was copied");
      if (checksum(from, bytes) != before) report("the host wrote into pinned memory that was still to be copied");
      memcpy((void *)to, from, bytes);
    });
  } else {  // the driver stages what is not pinned before it returns
    std::string copy((const char *)from, bytes);
    stream_of(stream).add([=] { memcpy((void *)to, copy.data(), bytes); });
  }
  return OK;
}
API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  if (!in_allocation(from, bytes)) report("a copy from the device leaves its allocation");
  if (int s = from_device.count(bytes, status())) return s;
  return stream_of(stream).add([=] { memcpy(to, (const void *)from, bytes); }), OK;
}
API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  if (!in_allocation(from, bytes) || !in_allocation(to, bytes)) report("a copy on the device leaves its allocation");
  if (int s = on_device.count(bytes, status())) return s;
  return stream_of(stream).add([=] { memmove((void *)to, (const void *)from, bytes); }), OK;
}
API cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) {
  if (!in_allocation(to, bytes)) report("a fill leaves its allocation");
  if (int s = status()) return s;
  return stream_of(stream).add([=] { memset((void *)to, value, bytes); }), OK;
}

API cuCtxGetStreamPriorityRange(int *least, int *) { return *least = 1, OK; }  // not the default, 0: tests can tell
API cuStreamGetPriority(void *stream, int *priority) { return *priority = stream_of(stream).priority, OK; }
API cuStreamCreateWithPriority(void **stream, unsigned, int priority) {
  if (int s = lacks_context(nullptr) ? INVALID_CONTEXT : status()) return s;
  auto s = std::make_shared<EmulatedStream>(priority);
  std::lock_guard<std::mutex> lock(state);
  return streams[s.get()] = s, *stream = s.get(), OK;
}
API cuStreamDestroy_v2(void *stream) {
  std::shared_ptr<EmulatedStream> last;  // ends behind the lock, when its work is done
  std::lock_guard<std::mutex> lock(state);
  auto s = streams.find(stream);
  if (s == streams.end()) return INVALID_VALUE;
  last = s->second;
  return streams.erase(s), OK;
}
API cuStreamSynchronize(void *stream) {
  return stream_of(stream).counts->waits++, stream_of(stream).synchronize(), status();
}
API cuStreamWaitEvent(void *stream, void *event, unsigned) {
  auto recorded = ((EmulatedEvent *)event)->last();
  return stream_of(stream).add([=] { recorded->wait(); }), OK;
}

API cuEventCreate(void **event, unsigned) {
  if (int s = lacks_context(nullptr) ? INVALID_CONTEXT : status()) return s;
  return *event = new EmulatedEvent(), OK;
}
API cuEventDestroy_v2(void *event) { return delete (EmulatedEvent *)event, OK; }
API cuEventRecord(void *event, void *stream) {
  if (lacks_context(stream)) return INVALID_CONTEXT;
  auto recorded = ((EmulatedEvent *)event)->record(stream_of(stream).counts);
  return stream_of(stream).add([=] { recorded->happen(); }), OK;
}
API cuEventQuery(void *event) {
  if (int s = status()) return s;
  return ((EmulatedEvent *)event)->last()->is_done() ? OK : NOT_READY;
}
API cuEventSynchronize(void *event) {
  auto recorded = ((EmulatedEvent *)event)->last();
  if (recorded->counts) recorded->counts->waits++;
  return recorded->wait(), status();
}
API cuEventElapsedTime(float *ms, void *from, void *to) {
  const auto time = ((EmulatedEvent *)to)->last()->when - ((EmulatedEvent *)from)->last()->when;
  return *ms = std::chrono::duration<float, std::milli>(time).count(), OK;
}

// An image is what nvrtc.cpp makes: a word that says so, the size, and a shared library.
API cuModuleLoadData(void **module, const void *image) {
  if (int s = lacks_context(nullptr) ? INVALID_CONTEXT : status()) return s;
  uint64_t head[2];
  memcpy(head, image, sizeof head);
  if (head[0] != 0x656c756d45ull) return NO_IMAGE;
  int file = memfd_create("kernel", 0);
  const char *p = (const char *)image + sizeof head;
  for (uint64_t done = 0; done < head[1];) {
    ssize_t n = write(file, p + done, head[1] - done);
    if (n <= 0) return OUT_OF_MEMORY;
    done += n;
  }
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return fprintf(stderr, "emulated device: %s\n", dlerror()), NO_IMAGE;
  return *module = new Module{library}, OK;
}
API cuModuleUnload(void *) { return OK; }
API cuModuleGetFunction(void **function, void *module, const char *name) {
  void *library = ((Module *)module)->library;
  auto call = (void (*)(const void *))dlsym(library, (std::string("emulated_") + name).c_str());
  if (!call) return NOT_FOUND;
  auto *context = (EmulatedContext *)dlsym(library, "emulated_context");
  auto *size = (const int *)dlsym(library, (std::string("emulated_size_") + name).c_str());
  std::lock_guard<std::mutex> lock(state);
  auto &f = functions[{library, name}];
  if (!f) f.reset(new Function{name, context, call, size});
  return *function = f.get(), OK;
}
API cuFuncSetAttribute(void *, int, int) { return OK; }

API cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **) {
  if (int s = status()) return s;
  auto *f = (Function *)function;
  if (!gx || !gy || !gz || !bx || !by || !bz || bx * by * bz > 1024 || gy > 65535 || gz > 65535 || shared > 232448)
    return INVALID_VALUE;
  std::string argument((const char *)parameters[0], *f->argument_size);  // before the call returns, as the driver does
  stream_of(stream).counts->launches++;
  stream_of(stream).add([=] {
    if (status()) return;
    std::lock_guard<std::mutex> lock(kernels);
    static Fibers &fibers = *new Fibers;
    static unsigned long long slots[2][1024];
    std::vector<unsigned long long> dynamic(shared / 8 + 2);
    EmulatedContext &c = *f->context;
    c.threads = {bx, by, bz}, c.blocks = {gx, gy, gz};
    c.slots = slots, c.wait = Fibers::wait, c.fail = fail_kernel;
    c.shared = (void *)(((uint64_t)dynamic.data() + 15) & ~15ull);
    std::string error;
    for (unsigned z = 0; z < gz; z++)
      for (unsigned y = 0; y < gy; y++)
        for (unsigned x = 0; x < gx && error.empty(); x++) {
          c.block = {x, y, z};
          memset(c.shared, kPoison, shared);
          error = fibers.run(&c, [&] { f->call(argument.data()); });
        }
    if (!error.empty()) report("kernel " + f->name + ": " + error);
    check_guards("kernel " + f->name);
  });
  return OK;
}

API cuGetErrorName(int code, const char **name) {
  *name = code == OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                    : "CUDA_ERROR_EMULATED";
  return OK;
}
API cuGetErrorString(int code, const char **text) {
  *text = code == OUT_OF_MEMORY     ? "out of memory"
          : code == ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
                                    : "an error of the emulated device";
  return OK;
}

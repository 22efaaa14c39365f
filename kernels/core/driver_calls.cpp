// SPDX-License-Identifier: Apache-2.0
// Driver calls that every batch makes, timed apart from Python. Python passes in their addresses, as this library does
// not link the driver, and keeps the GIL for these few microseconds.
#include "core/driver.h"
#include "core/kernel.h"

Driver driver;
thread_local int64_t DriverTime::spent = 0;

namespace {
typedef Driver::Handle Handle;
}

// Addresses in the order of `Driver`.
EXPORT void driver_functions(const Driver *functions) { driver = *functions; }
EXPORT_SHORT(driver_functions)

// CPU time of this thread in ns: in total, in counted native calls, and, of these, in the calls below.
EXPORT void thread_clocks(int64_t *clocks) {
  clocks[0] = NativeTime::now();
  clocks[1] = NativeTime::total;
  clocks[2] = DriverTime::spent;
}
EXPORT_SHORT(thread_clocks)

// Adds the time since `since` to the totals of all threads: in Python, in native calls, and in the driver. Sets `since`
// to now.
EXPORT void add_clocks(int64_t *since, int64_t *sums) {
  int64_t now[3], spent[3];
  thread_clocks(now);
  for (int i = 0; i < 3; i++) spent[i] = now[i] - since[i], since[i] = now[i];
  for (int i = 0; i < 3; i++) __atomic_fetch_add(sums + i, spent[i] - (i < 2 ? spent[i + 1] : 0), __ATOMIC_RELAXED);
}
EXPORT_SHORT(add_clocks)

EXPORT int32_t driver_launch(Handle function, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
                             uint32_t bz, uint32_t shared, Handle stream, void **parameters, void **more) {
  return timed([&] { return driver.launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, more); });
}
EXPORT_SHORT(driver_launch)
EXPORT int32_t driver_upload(uint64_t to, const void *from, size_t bytes, Handle stream) {
  return timed([&] { return driver.upload(to, from, bytes, stream); });
}
EXPORT_SHORT(driver_upload)
// Uploads n samples, `step` bytes apart in `data`, through pinned memory, where they may already be. Fills in `rows`:
// copies of `from` with the new addresses.
EXPORT int32_t upload_samples(const Tensor *from, int64_t n, int64_t step, const void *data, size_t bytes, void *pinned,
                              uint64_t to, Handle stream, Tensor *rows) {
  if (pinned != data) memcpy(pinned, data, bytes);
  for (int64_t i = 0; i < n; i++) {
    rows[i] = from[i];
    rows[i].data = (char *)to + i * step;
  }
  return driver_upload(to, pinned, bytes, stream);
}
EXPORT_SHORT(upload_samples)
EXPORT int32_t driver_download(void *to, uint64_t from, size_t bytes, Handle stream) {
  return timed([&] { return driver.download(to, from, bytes, stream); });
}
EXPORT_SHORT(driver_download)
EXPORT int32_t driver_record(Handle event, Handle stream) {
  return timed([&] { return driver.record(event, stream); });
}
EXPORT_SHORT(driver_record)
EXPORT int32_t driver_query(Handle event) {
  return timed([&] { return driver.query(event); });
}
EXPORT_SHORT(driver_query)
EXPORT int32_t driver_wait(Handle stream, Handle event, uint32_t flags) {
  return timed([&] { return driver.wait(stream, event, flags); });
}
EXPORT_SHORT(driver_wait)
EXPORT int32_t driver_elapsed(float *ms, Handle from, Handle to) {
  return timed([&] { return driver.elapsed(ms, from, to); });
}
EXPORT_SHORT(driver_elapsed)
EXPORT int32_t driver_fill(uint64_t to, uint8_t value, size_t bytes, Handle stream) {
  return timed([&] { return driver.fill(to, value, bytes, stream); });
}
EXPORT_SHORT(driver_fill)
// The only call that waits.
EXPORT int32_t driver_synchronize(Handle event) {
  return timed([&] { return driver.synchronize(event); });
}
EXPORT_LONG(driver_synchronize)

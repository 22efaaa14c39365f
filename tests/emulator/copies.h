// SPDX-License-Identifier: Apache-2.0
// What was copied: to the device, from it, on it; how often, and how many bytes.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

struct Copied {
  std::atomic<int64_t> copies{0}, bytes{0};
  // Counts a copy; gives `code` back.
  int count(size_t n, int code) { return copies++, bytes += n, code; }
};
inline Copied to_device, from_device, on_device;

extern "C" __attribute__((used, visibility("default"))) inline void emulated_copies(int64_t (*counts)[2]) {
  for (const Copied *c : {&to_device, &from_device, &on_device}) (*counts)[0] = c->copies, (*counts++)[1] = c->bytes;
}

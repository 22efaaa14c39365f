// SPDX-License-Identifier: Apache-2.0
// What an emulated kernel and the emulator share.
#pragma once

struct Index3 {
  unsigned x, y, z;
};

struct EmulatedContext {
  Index3 thread, block, threads, blocks;
  int linear;                 // the thread's number in its block
  void *shared;               // dynamic shared memory
  unsigned long long *slots;  // one per thread of the block, for exchanges inside a warp
  void (*wait)(int of_warp);  // returns when all threads of the block (of the warp) have come here
  void (*fail)(const char *text);
};

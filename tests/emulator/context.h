// SPDX-License-Identifier: Apache-2.0
// What an emulated kernel and the emulator share.
#pragma once

struct Index3 {
  unsigned x, y, z;
};

struct EmulatedContext {
  Index3 thread, block, threads, blocks;
  int linear;    // the thread's number in its block
  void *shared;  // dynamic shared memory
  // For exchanges inside a warp, two per thread of the block, used in turns: some threads of a warp may begin the next
  // exchange while others have not read the values of this one.
  unsigned long long (*slots)[1024];
  unsigned char turns[32];    // of each warp
  void (*wait)(int of_warp);  // returns when all threads of the block (of the warp) have come here
  void (*fail)(const char *text);
};

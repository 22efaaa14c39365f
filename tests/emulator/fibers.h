// SPDX-License-Identifier: Apache-2.0
// Runs the threads of a block as fibers, so that barriers work; a thread that meets none costs one jump. The jumps are
// the compiler's own, as setjmp's save more than they need: half of an emulated kernel's time was theirs.
#pragma once
#include <ucontext.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "context.h"

class Fibers {
 public:
  // Calls `thread` once for each of `n` threads, as thread number context.linear. Returns "" or what went wrong.
  std::string run(EmulatedContext *context, std::function<void()> thread) {
    context_ = context, thread_ = std::move(thread);
    const Index3 t = context->threads;
    current_ = this;
    int used = 0, linear = 0;
    for (unsigned z = 0; z < t.z; z++)
      for (unsigned y = 0; y < t.y; y++)
        for (unsigned x = 0; x < t.x; x++) {
          Fiber &f = fibers_[used];
          f.linear = linear++, f.thread = {x, y, z};
          start(f);
          if (f.state != kDone) used++;
        }
    while (used) {
      int of_block = 0, done = 0, progress = 0;
      for (int i = 0; i < used; i++) of_block += fibers_[i].state == kAtBlock, done += fibers_[i].state == kDone;
      if (done == used) break;
      if (of_block + done == used) {
        go_on(0, used, kAtBlock);
        continue;
      }
      for (int i = 0, end; i < used; i = end) {  // warps whose living threads all wait for each other go on
        int ready = 1, waiting = 0;
        for (end = i; end < used && fibers_[end].linear / 32 == fibers_[i].linear / 32; end++) {
          waiting += fibers_[end].state == kAtWarp;
          ready = ready && (fibers_[end].state == kAtWarp || fibers_[end].state == kDone);
        }
        if (!ready || !waiting) continue;
        context_->turns[fibers_[i].linear / 32] ^= 1;
        go_on(i, end, kAtWarp), progress++;
      }
      if (!progress) return "threads wait at different barriers";
    }
    return "";
  }

  __attribute__((noinline)) static void wait(int of_warp) {
    Fiber &f = *current_->running_;
    f.state = of_warp ? kAtWarp : kAtBlock;
    if (!__builtin_setjmp(f.here)) current_->next();
  }

 private:
  enum State { kRunning, kAtBlock, kAtWarp, kDone };
  struct Fiber {
    int linear = 0;
    State state = kDone;
    Index3 thread = {};
    void *stack = nullptr;
    void *here[5];
  };
  static constexpr size_t kStack = 256 << 10, kMaxThreads = 1024;

  // Not inlined: the compiler's jumps must lead out of the function that they are in.
  [[noreturn]] __attribute__((noinline)) static void jump(void **to) { __builtin_longjmp(to, 1); }

  void run_as(Fiber &f) {
    running_ = &f, f.state = kRunning;
    context_->linear = f.linear, context_->thread = f.thread;
  }
  // Lets those of the fibers [begin, end) go on that are in a state, each until it waits again or ends.
  __attribute__((noinline)) void go_on(int begin, int end, State state) {
    next_ = begin, end_ = end, going_ = state;
    if (!__builtin_setjmp(main_)) next();
  }
  // Goes on with the next of those fibers without a jump to `go_on`, or, behind the last, returns from there.
  [[noreturn]] __attribute__((noinline)) void next() {
    while (next_ < end_) {
      Fiber &f = fibers_[next_++];
      if (f.state == going_) run_as(f), jump(f.here);
    }
    jump(main_);
  }
  // Runs a fiber from the begin of `thread_` until it waits or ends.
  __attribute__((noinline)) void start(Fiber &f) {
    next_ = end_ = 0;
    run_as(f);
    if (__builtin_setjmp(main_)) return;
    if (f.stack) jump(f.here);
    // Their tops lie in different sets of the cache: those of equal addresses in a page would all share a few lines.
    const size_t shift = (&f - fibers_) % 64 * 64;
    f.stack = std::malloc(kStack + shift);
    ucontext_t fresh;
    getcontext(&fresh);
    fresh.uc_stack.ss_sp = f.stack, fresh.uc_stack.ss_size = kStack + shift, fresh.uc_link = nullptr;
    makecontext(&fresh, begin, 0);
    setcontext(&fresh);
  }
  static void begin() {
    Fibers *self = current_;
    Fiber *f = self->running_;
    for (;;) {
      self->thread_();
      f->state = kDone;
      if (!__builtin_setjmp(f->here)) self->next();
    }
  }

  static inline Fibers *current_ = nullptr;
  EmulatedContext *context_ = nullptr;
  std::function<void()> thread_;
  Fiber fibers_[kMaxThreads];
  Fiber *running_ = nullptr;
  int next_ = 0, end_ = 0;
  State going_ = kDone;
  void *main_[5];
};

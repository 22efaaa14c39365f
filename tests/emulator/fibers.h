// SPDX-License-Identifier: Apache-2.0
// Runs the threads of a block as fibers, so that barriers work; a thread that meets none costs one jump.
#pragma once
#include <ucontext.h>

#include <csetjmp>
#include <cstdlib>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "context.h"

class Fibers {
 public:
  // Calls `thread` once for each of `n` threads, as thread number context.linear. Returns "" or what went wrong.
  std::string run(EmulatedContext *context, std::function<void()> thread) {
    context_ = context, thread_ = std::move(thread);
    const Index3 t = context->threads;
    const int n = (int)(t.x * t.y * t.z);
    current_ = this;
    if (fibers_.size() < (size_t)n) fibers_.resize(n);
    int used = 0;
    for (int i = 0; i < n; i++) {
      Fiber &f = fibers_[used];
      f.linear = i, f.state = kRunning;
      resume(f);
      if (f.state != kDone) used++;
    }
    while (used) {
      int of_block = 0, done = 0, progress = 0;
      for (int i = 0; i < used; i++) of_block += fibers_[i].state == kAtBlock, done += fibers_[i].state == kDone;
      if (done == used) break;
      if (of_block + done == used) {
        for (int i = 0; i < used; i++)
          if (fibers_[i].state == kAtBlock) fibers_[i].state = kRunning, resume(fibers_[i]);
        continue;
      }
      for (int i = 0; i < used;) {  // warps whose living threads all wait for each other go on
        int end = i, ready = 1;
        for (; end < used && fibers_[end].linear / 32 == fibers_[i].linear / 32; end++)
          ready = ready && (fibers_[end].state == kAtWarp || fibers_[end].state == kDone);
        for (; i < end; i++)
          if (ready && fibers_[i].state == kAtWarp) fibers_[i].state = kRunning, resume(fibers_[i]), progress++;
      }
      if (!progress) return "threads wait at different barriers";
    }
    return "";
  }

  static void wait(int of_warp) {
    Fiber &f = *current_->running_;
    f.state = of_warp ? kAtWarp : kAtBlock;
    if (!_setjmp(f.here)) _longjmp(current_->main_, 1);
  }

 private:
  enum State { kRunning, kAtBlock, kAtWarp, kDone };
  struct Fiber {
    int linear = 0;
    State state = kDone;
    void *stack = nullptr;
    jmp_buf here;
  };
  static constexpr size_t kStack = 256 << 10;

  void resume(Fiber &f) {
    running_ = &f;
    const Index3 t = context_->threads;
    context_->linear = f.linear;
    context_->thread = {f.linear % t.x, f.linear / t.x % t.y, f.linear / t.x / t.y};
    if (_setjmp(main_)) return;
    if (f.stack) _longjmp(f.here, 1);
    f.stack = std::malloc(kStack);
    ucontext_t fresh;
    getcontext(&fresh);
    fresh.uc_stack.ss_sp = f.stack, fresh.uc_stack.ss_size = kStack, fresh.uc_link = nullptr;
    makecontext(&fresh, begin, 0);
    setcontext(&fresh);
  }
  static void begin() {
    Fibers *self = current_;
    Fiber *f = self->running_;
    for (;;) {
      self->thread_();
      f->state = kDone;
      if (!_setjmp(f->here)) _longjmp(self->main_, 1);
    }
  }

  static inline Fibers *current_ = nullptr;
  EmulatedContext *context_ = nullptr;
  std::function<void()> thread_;
  std::deque<Fiber> fibers_;  // fibers know their own by address
  Fiber *running_ = nullptr;
  jmp_buf main_;
};

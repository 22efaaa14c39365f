// SPDX-License-Identifier: Apache-2.0
// Streams and events: a thread per stream does what was asked of it in order, some time later.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "copies.h"

// What a stream was asked for, and how often the host has waited for it or for an event in it.
struct Counts {
  std::atomic<int64_t> launches{0}, waits{0};
};

// One record of an event. Who waits for it is not affected when the event is recorded again, on whatever stream.
struct Recorded {
  std::mutex mutex;
  std::condition_variable happened;
  bool done = false;
  std::chrono::steady_clock::time_point when;
  std::shared_ptr<Counts> counts;  // of the stream, if it was recorded in one

  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    happened.wait(lock, [&] { return done; });
  }
  bool is_done() {
    std::lock_guard<std::mutex> lock(mutex);
    return done;
  }
  void happen() {
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
    when = std::chrono::steady_clock::now();
    happened.notify_all();
  }
};

class EmulatedEvent {
 public:
  std::shared_ptr<Recorded> record(const std::shared_ptr<Counts> &counts) {
    std::lock_guard<std::mutex> lock(mutex_);
    last_ = std::make_shared<Recorded>();
    last_->counts = counts;
    return last_;
  }
  std::shared_ptr<Recorded> last() {
    std::lock_guard<std::mutex> lock(mutex_);
    return last_;
  }

 private:
  static std::shared_ptr<Recorded> never() {
    auto r = std::make_shared<Recorded>();
    return r->done = true, r;
  }
  std::mutex mutex_;
  std::shared_ptr<Recorded> last_ = never();  // nothing waits for an event that was never recorded
};

class EmulatedStream {
 public:
  const std::shared_ptr<Counts> counts = std::make_shared<Counts>();
  const int priority;

  explicit EmulatedStream(int priority = 0) : priority(priority), thread_([this] { work(); }) {}
  ~EmulatedStream() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  void add(std::function<void()> task) {
    std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_all();
  }
  void synchronize() {
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [&] { return tasks_.empty() && !busy_; });
  }

 private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      lock.unlock();
      task();
      lock.lock();
      busy_ = false;
      if (tasks_.empty()) idle_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false, stop_ = false;
  std::thread thread_;
};

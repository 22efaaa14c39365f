// SPDX-License-Identifier: Apache-2.0
// Streams and events: a thread per stream does what was asked of it in order, some time later.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

struct EmulatedEvent {
  std::mutex mutex;
  std::condition_variable happened;
  unsigned long long asked = 0, done = 0;  // how often it was recorded, and how often it has happened
  std::chrono::steady_clock::time_point when;

  void wait(unsigned long long ticket) {
    std::unique_lock<std::mutex> lock(mutex);
    happened.wait(lock, [&] { return done >= ticket; });
  }
  unsigned long long ask() {
    std::lock_guard<std::mutex> lock(mutex);
    return ++asked;
  }
  void happen(unsigned long long ticket) {
    std::lock_guard<std::mutex> lock(mutex);
    if (ticket > done) done = ticket;
    when = std::chrono::steady_clock::now();
    happened.notify_all();
  }
};

class EmulatedStream {
 public:
  EmulatedStream() : thread_([this] { work(); }) {}
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

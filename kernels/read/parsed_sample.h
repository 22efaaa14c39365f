// SPDX-License-Identifier: Apache-2.0
// A sample of a batch being read, as seen by its parser.
#pragma once
#include "read/fetch_job.h"

struct FetchJob::Parsed : Sample {
  FetchJob &job;
  Arena &arena;
  Parsed(FetchJob &j, int32_t i, Arena &a, Scratch &s)
      : Sample(j.index_[i], i, j.bytes_.data() + j.begins_[i], (int)(j.begins_[i + 1] - j.begins_[i]), j.out_ + i, j.n_,
               s),
        job(j),
        arena(a) {}
  void *take(int64_t bytes) override { return arena.take(bytes); }
  Object &object(int part) {
    const Span &s = job.spans_[job.begins_[row] + part];
    if (part < 0 || part >= n_parts || s.object < 0) fail("[internal error] there is no part %d", part);
    if (part != opened_) object_ = job.open({s.object, 0, 0, 0}), opened_ = part;
    return *object_;
  }
  int64_t object_length(int part) override { return object(part).length(); }
  void read(int part, int64_t offset, int64_t length, void *to) override {
    Object &o = object(part);
    const int64_t size = o.length();
    if (offset < 0 || length < 0 || offset > size || length > size - offset)
      fail("%lld bytes from byte %lld on are wanted, the file ends at %lld", (long long)length, (long long)offset,
           (long long)size);
    bytes_read += length;
    if (o.read(offset, length, (char *)to) < length) fail("the file was cut short while it was read");
  }
  bool is_at_hand(int part) override { return object(part).is_at_hand(); }
  int64_t bytes_read = 0;
  void leave_rest(int part, const void *data, int64_t begun) override {
    object(part);
    std::string full;
    const char *name = job.name(job.spans_[job.begins_[row] + part].object, full);
    {
      std::lock_guard<std::mutex> lock(job.mutex_);
      job.begun_.push_back(data);
    }
    unread_add(data, {name, object_, begun});
  }

 private:
  int opened_ = -1;
  std::shared_ptr<Object> object_;
};

inline int64_t FetchJob::parse(int32_t i, Arena &arena, Scratch &scratch) {
  int64_t bytes = 0;
  if (!samples_[i].is_bad.load(std::memory_order_relaxed)) {
    Parsed sample(*this, i, arena, scratch);
    if (f.parser) {
      char error[kErrorSize];
      if (((Parser)f.parser)(&sample, f.args, error)) reject(i, "%s", error);
    } else {
      for (int k = 0; k < std::min<int64_t>(f.n_out, sample.n_parts); k++)
        sample.give(k, sample.parts[k].data, sample.parts[k].size);
    }
    bytes = sample.bytes_read;
  }
  if (samples_[i].is_bad.load(std::memory_order_relaxed)) empty(i);
  return bytes;
}

// SPDX-License-Identifier: Apache-2.0
// One batch of a reader on its way: which bytes to read, in which calls, and the samples that they become.
#pragma once
#include <algorithm>
#include <atomic>
#include <string>

#include "core/memory.h"
#include "read/fetcher.h"
#include "read/remote.h"

// Spans begin in memory as they do in the object, modulo this: what is aligned there is aligned here.
constexpr int64_t kAlign = 64;
// Small outputs share blocks of this.
constexpr int64_t kArenaBytes = 64 << 10, kLargeBytes = 8 << 10;

class FetchJob {
  struct Span {
    int64_t object, offset, length;
    int32_t sample;
  };

 public:
  // Spans that are read in one call: `count` from `first` on, in the order of reading.
  struct Run {
    int32_t first, count;
  };

  FetchJob(Fetch *fetch, Storage *files) : f(*fetch), storage_(fetch->remote ? (RemoteStorage *)fetch->remote : files) {
    find_spans();
    join_neighbours();
    left_ = std::make_unique<std::atomic<int32_t>[]>(f.n);
    for (int64_t i = 0; i < f.n; i++) left_[i] = (int32_t)(begins_[i + 1] - begins_[i]);
    prepare_outputs();
    runs_left = (int)runs.size();
  }
  ~FetchJob() {
    for (void *block : blocks_) memory_give(block);
  }

  // Memory of the batch, for one thread.
  struct Arena {
    FetchJob *job = nullptr;
    uint64_t number = 0;  // of the job, as the next one may lie at the same place
    char *next = nullptr, *end = nullptr;
    void *take(int64_t bytes) {
      bytes = bytes > 0 ? (bytes + kAlign - 1) / kAlign * kAlign : kAlign;
      if (bytes > kLargeBytes) return job->block(bytes);
      if (bytes > end - next) end = (next = (char *)job->block(kArenaBytes)) + kArenaBytes;
      next += bytes;
      return next - bytes;
    }
  };

  // Gives how many bytes were read.
  int64_t read(const Run &run, Arena &arena, Scratch &scratch) {
    int64_t bytes = 0;
    RemoteQueue::unwanted = &unwanted;
    const int32_t *spans = order_.empty() ? nullptr : &order_[run.first];
    auto span = [&](int k) { return spans ? spans[k] : run.first + k; };
    try {
      bytes = read_at_once(span, run.count);
    } catch (const std::exception &e) {
      for (int k = 0; k < run.count; k++) {
        auto alone = [&](int) { return span(k); };
        try {
          if (run.count == 1) throw;
          bytes += read_at_once(alone, 1);
        } catch (const std::exception &why) {
          reject(spans_[span(k)].sample, why.what());
        }
      }
    }
    for (int k = 0; k < run.count; k++) {
      const int32_t sample = spans_[span(k)].sample;
      if (left_[sample].fetch_sub(1, std::memory_order_acq_rel) == 1) parse(sample, arena, scratch);
    }
    return bytes;
  }

  Fetch &f;
  const uint64_t number = ++count();
  std::vector<Run> runs;
  // Of the fetcher, by its mutex:
  int next_run = 0, runs_left;
  int64_t held = 0;
  bool collected = false;
  std::atomic<bool> unwanted{false};  // nobody waits for it any more
  std::condition_variable done;
  std::atomic<int> failed{0};

 private:
  static std::atomic<uint64_t> &count() {
    static std::atomic<uint64_t> jobs{0};
    return jobs;
  }
  void find_spans() {
    spans_.reserve(f.n * std::max<int64_t>(f.n_parts, 1));
    begins_.resize(f.n + 1);
    for (int64_t i = 0; i < f.n; i++) {
      const int64_t s = f.index[i];
      if (s < 0 || s >= f.n_samples) fail("[internal error] sample %lld of %lld", (long long)s, (long long)f.n_samples);
      const int64_t first = f.first ? f.first[s] : s * f.n_parts, last = f.first ? f.first[s + 1] : first + f.n_parts;
      for (int64_t k = first; k < last; k++)
        spans_.push_back(
            {f.object ? f.object[k] : k, f.offset ? f.offset[k] : 0, f.length ? f.length[k] : -1, (int32_t)i});
      begins_[i + 1] = (int64_t)spans_.size();
    }
    bytes_.assign(spans_.size(), Part{nullptr, 0});
  }

  // Whole objects are read one by one, in the order of the batch.
  void join_neighbours() {
    const int n = (int)spans_.size();
    if (f.length) {
      order_.resize(n);
      for (int k = 0; k < n; k++) order_[k] = k;
      auto before = [&](int a, int b) {
        const Span &x = spans_[a], &y = spans_[b];
        return x.object != y.object ? x.object < y.object : x.offset < y.offset;
      };
      if (!std::is_sorted(order_.begin(), order_.end(), before)) std::stable_sort(order_.begin(), order_.end(), before);
    }
    int64_t end = 0;
    for (int k = 0; k < n; k++) {
      const Span &s = spans_[order_.empty() ? k : order_[k]];
      const Span *first =
          runs.empty() ? nullptr : &spans_[order_.empty() ? runs.back().first : order_[runs.back().first]];
      const bool joins = first && s.object == first->object && s.object >= 0 && s.length >= 0 && first->length >= 0 &&
                         first->offset >= 0 && s.offset - f.gap <= end && s.length <= f.run_bytes &&
                         s.offset - first->offset <= f.run_bytes - s.length;
      if (joins) {
        runs.back().count++;
        end = std::max(end, s.offset + s.length);
      } else {
        runs.push_back({k, 1});
        end = s.length >= 0 && s.offset >= 0 && s.offset <= INT64_MAX - s.length ? s.offset + s.length : 0;
      }
    }
  }

  void prepare_outputs() {
    for (int64_t k = 0; k < f.n_out; k++) {
      const FetchOutput &o = f.outputs[k];
      for (int64_t i = 0; i < f.n; i++) {
        Tensor &t = f.out[k * f.n + i];
        t.data = o.dense ? (char *)o.dense + i * o.bytes : nullptr;
        std::copy_n(o.shape, kMaxDims, t.shape);
        t.ndim = o.ndim, t.dtype = o.dtype;
      }
    }
    for (int64_t i = 0; i < f.n; i++)
      if (begins_[i] == begins_[i + 1]) without_spans_.push_back((int32_t)i);
  }

  const char *name(int64_t object, std::string &full) const {
    if (object >= f.n_objects) fail("[internal error] object %lld of %lld", (long long)object, (long long)f.n_objects);
    const char *name = f.text + f.begins[object];
    if (*name == '/' || !*f.root || is_url(name)) return name;
    full.assign(f.root).append(name);
    return full.c_str();
  }

  std::shared_ptr<Object> open(const Span &span) {
    std::string full;
    const Storage::Way once = f.direct ? Storage::kDirect : Storage::kOnce;
    return storage_->open(name(span.object, full), span.length < 0 ? once : Storage::kKept);
  }

  template <class F>
  int64_t read_at_once(F span, int count) {
    const Span &first = spans_[span(0)];
    if (first.object < 0) return 0;
    const std::shared_ptr<Object> object = open(first);
    if (first.length == -1 && !first.offset) {
      const Content content = object->whole(f.allow_empty);
      keep(content.data);
      bytes_[span(0)] = {content.data, content.size};
      return content.size;
    }
    const int64_t size = object->length();
    auto fits = [&](const Span &s) {
      return s.offset >= 0 && s.offset <= size && s.length >= -1 && s.length <= size - s.offset;
    };
    int64_t end = -1;
    for (int k = 0; k < count; k++) {
      const Span &s = spans_[span(k)];
      if (!fits(s))
        reject(s.sample,
               "the record has %lld bytes from byte %lld on, the file ends at %lld; it has changed, or its "
               "index is that of another file",
               (long long)s.length, (long long)s.offset, (long long)size);
      else
        end = std::max(end, s.length < 0 ? size : s.offset + s.length);
    }
    const int64_t begin = first.offset / kAlign * kAlign;
    if (end < 0) return 0;  // none of them fits
    char *data = (char *)block(end - begin);
    const int64_t there = begin + object->read(begin, end - begin, data);
    for (int k = 0; k < count; k++) {
      const Span &s = spans_[span(k)];
      if (!fits(s)) continue;
      const int64_t length = s.length < 0 ? size - s.offset : s.length;
      if (s.offset + length > there)
        reject(s.sample, "the file shrank from %lld to %lld bytes while it was read", (long long)size,
               (long long)there);
      else
        bytes_[span(k)] = {data + (s.offset - begin), length};
    }
    return there - begin;
  }

  void reject(int32_t sample, const char *format, ...) __attribute__((format(printf, 3, 4))) {
    if (__atomic_exchange_n(&f.status[sample], 1, __ATOMIC_RELAXED)) return;
    va_list list;
    va_start(list, format);
    vsnprintf(f.errors + (int64_t)sample * kErrorSize, kErrorSize, format, list);
    va_end(list);
    failed++;
  }

 public:
  struct Parsed : Sample {
    FetchJob &job;
    Arena &arena;
    const int32_t row;
    Parsed(FetchJob &j, int32_t i, Arena &a, Scratch &s)
        : Sample(j.f.index[i], &j.bytes_[0] + j.begins_[i], (int)(j.begins_[i + 1] - j.begins_[i]), j.f.out + i, j.f.n,
                 s),
          job(j),
          arena(a),
          row(i) {}
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
      if (o.read(offset, length, (char *)to) < length) fail("the file was cut short while it was read");
    }

   private:
    int opened_ = -1;
    std::shared_ptr<Object> object_;
  };

  void parse(int32_t i, Arena &arena, Scratch &scratch) {
    if (!__atomic_load_n(&f.status[i], __ATOMIC_RELAXED)) {
      Parsed sample(*this, i, arena, scratch);
      if (f.parser) {
        char error[kErrorSize];
        if (((Parser)f.parser)(&sample, f.args, error)) reject(i, "%s", error);
      } else {
        for (int k = 0; k < std::min<int64_t>(f.n_out, sample.n_parts); k++)
          sample.give(k, sample.parts[k].data, sample.parts[k].size);
      }
    }
    if (__atomic_load_n(&f.status[i], __ATOMIC_RELAXED)) empty(i);
  }

  // Those that read nothing are parsed, too.
  void parse_rest(Arena &arena, Scratch &scratch) {
    for (int32_t i : without_spans_) parse(i, arena, scratch);
  }

 private:
  // Of a sample that could not be read nothing is given out.
  void empty(int32_t i) {
    for (int64_t k = 0; k < f.n_out; k++) {
      Tensor &t = f.out[k * f.n + i];
      if (f.outputs[k].dense) {
        memset((char *)f.outputs[k].dense + i * f.outputs[k].bytes, 0, f.outputs[k].bytes);
        continue;
      }
      t = Tensor{};
      t.ndim = f.outputs[k].ndim, t.dtype = f.outputs[k].dtype;
    }
  }
  void keep(void *block) {
    std::lock_guard<std::mutex> lock(mutex_);
    blocks_.push_back(block);
  }
  void *block(int64_t bytes) {
    void *block = memory_take(bytes);
    if (!block) fail("out of memory: %lld bytes are needed", (long long)bytes);
    keep(block);
    return block;
  }

  Storage *storage_;
  std::vector<Span> spans_;  // by sample
  std::vector<int64_t> begins_;
  std::vector<Part> bytes_;
  std::vector<int32_t> order_;                    // in which spans are read; empty: as they are
  std::unique_ptr<std::atomic<int32_t>[]> left_;  // spans of each sample that were not read yet
  std::vector<int32_t> without_spans_;
  std::mutex mutex_;
  std::vector<void *> blocks_;
};

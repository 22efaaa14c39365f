// SPDX-License-Identifier: Apache-2.0
// All frames of an opened video in sequence: two threads decode ahead, the caller converts colours.
#include <unistd.h>

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>

#include "core/kernel.h"
#include "read/remote.h"
#include "video/colors.h"
#include "video/opened.h"
#include "video/runs.h"

namespace {

constexpr size_t kAhead = 8;  // pictures waiting for conversion
// Conversion is faster than decoding. Woken for each picture, the converting thread would alternate with the decoder on
// one core; woken for several, the system gives it a core of its own.
constexpr size_t kAtOnce = 4;
// While one thread decodes the group of frames that are read now, the other begins the group behind it. It stops when
// all pictures that wait take so much memory: half of a group is enough to keep both busy.
constexpr int64_t kNextBytes = 96 << 20;
constexpr int32_t kLeastGroup = 16;  // frames

class Stream {
 public:
  Stream(OpenedVideo &video, int32_t first)
      : video_(video), groups_of_video_(video.index), begun_(first), next_(first), remote_(RemoteStorage::selected) {
    threads_.emplace_back([this]() { decode_groups(); });
  }
  ~Stream() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread &t : threads_) t.join();
    for (auto &[number, held] : waiting_) release(held);
  }

  // Ends it, but not in a forked process, which doesn't have the threads that would be waited for.
  static void end(Stream *stream) {
    if (stream->process_ == getpid()) delete stream;
  }
  OpenedVideo &video() { return video_; }

  // Reads the next n frames.
  void read(int64_t n, bool as_ycbcr, uint8_t *out) {
    const VideoIndex &index = video_.index;
    const int64_t size = (int64_t)index.height * index.width * 3;
    for (int64_t i = 0; i < n; i++) {
      const Held held = take();
      try {
        check_size(index, held.number, held.picture);
        picture_to_pixels(held.picture, as_ycbcr, {0, 0, index.height, index.width},
                          {out + i * size, 3 * index.width, 0}, scratch_);
      } catch (...) {
        release(held);
        throw;
      }
      release(held);
      // Whoever reads only a few frames doesn't need those of the next group.
      if (++taken_ == kAhead) begin_another_thread();
    }
  }

 private:
  struct Held {
    ffmpeg::Frame *frame;
    Picture picture;
    int32_t number;
  };
  struct Group {  // frames [first, end), decoded by one thread
    int32_t first, end;
    size_t held = 0;  // its pictures that wait
    bool is_done = false;
    std::string error;
  };
  struct Stopped : std::exception {};

  static void release(Held held) { ffmpeg::functions()->av_frame_free(&held.frame); }

  void begin_another_thread() {
    try {
      threads_.emplace_back([this]() { decode_groups(); });
    } catch (const std::system_error &) {  // too many threads: one is slower, and enough
    }
  }

  void decode_groups() {
    RemoteStorage::selected = remote_;
    while (Group *const group = begin_group()) {
      std::string error;
      try {
        std::vector<int32_t> wanted((size_t)(group->end - group->first));
        std::iota(wanted.begin(), wanted.end(), group->first);
        decode_frames(packets_of(video_), video_.index, wanted,
                      [&](int32_t number, const Picture &picture) { hand_over(*group, number, picture); });
      } catch (const Stopped &) {
      } catch (const std::exception &e) {
        error = e.what();
      }
      std::lock_guard<std::mutex> lock(mutex_);
      group->error = error, group->is_done = true;
      changed_.notify_all();
    }
  }

  // The next group to be decoded; null if there is none.
  Group *begin_group() {
    std::lock_guard<std::mutex> turn(beginning_);  // not mutex_, as the file is read
    const int32_t first = begun_, n = (int32_t)video_.index.shown.size();
    if (first == n) return nullptr;
    int32_t end = n;
    try {
      end = groups_of_video_.end_of(first, kLeastGroup, packets_of(video_));
    } catch (const std::exception &) {  // the decoder's thread will meet it again, and say at which frame
    }
    std::lock_guard<std::mutex> lock(mutex_);
    if (is_stopped_) return nullptr;
    begun_ = end;
    groups_.push_back({first, end, 0, false, ""});
    return &groups_.back();
  }

  void hand_over(Group &group, int32_t number, const Picture &picture) {
    const ffmpeg::Functions &ff = *ffmpeg::functions();
    Held held{ff.av_frame_alloc(), picture, number};
    if (!held.frame) throw std::bad_alloc();
    if (ff.av_frame_ref(held.frame, picture.frame) < 0) {
      release(held);
      throw std::bad_alloc();
    }
    const int64_t bytes = (picture.line[0] + picture.line[1] + picture.line[2]) * picture.height;  // at most
    std::unique_lock<std::mutex> lock(mutex_);
    waiting_[number] = held, group.held++;
    if (is_time()) changed_.notify_all();
    changed_.wait(lock, [&]() {
      if (is_stopped_) return true;
      if (&group != current()) return (int64_t)waiting_.size() * bytes < kNextBytes;
      // Decoding continues while the requested frame is missing, as pictures may come out of presentation order.
      return group.held < kAhead || !waiting_.count(next_);
    });
    if (is_stopped_) throw Stopped();
  }

  Held take() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (next_ == (int32_t)video_.index.shown.size()) fail("there are no more frames");
    if (!waiting_.count(next_)) {
      changed_.wait(lock, [&]() { return is_time(); });
      at_once_ = kAtOnce;
    }
    Group &group = *current();
    const auto it = waiting_.find(next_);
    if (it == waiting_.end()) fail("%s", group.error.c_str());
    const Held held = it->second;
    const bool was_full = group.held >= kAhead;
    waiting_.erase(it), group.held--;
    next_++;
    if (was_full || next_ == group.end) changed_.notify_all();
    return held;
  }
  // The group of the next frame; null if it isn't begun.
  Group *current() {
    while (!groups_.empty() && groups_.front().is_done && groups_.front().end <= next_) groups_.pop_front();
    for (Group &g : groups_)
      if (next_ < g.end) return &g;
    return nullptr;
  }
  // Whether to wake the thread that waits for the next frame.
  bool is_time() {
    const Group *const group = current();
    return group && (group->is_done || (group->held >= at_once_ && waiting_.count(next_)));
  }

  OpenedVideo &video_;
  const pid_t process_ = getpid();
  const Groups groups_of_video_;
  std::mutex beginning_;
  int32_t begun_;  // the first frame of the group to be begun next
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Group> groups_;  // those begun, without those that were read
  std::map<int32_t, Held> waiting_;
  int32_t next_;
  size_t taken_ = 0;
  size_t at_once_ = 1;  // 1 so that the first frame is returned at once
  bool is_stopped_ = false;
  RemoteStorage *const remote_;
  Scratch scratch_;
  std::vector<std::thread> threads_;
};

}  // namespace

// Streams the frames of a video from `first` on, until video_stream_close or video_close.
EXPORT Stream *video_stream_open(OpenedVideo *video, int64_t first) {
  std::shared_ptr<Stream> opened(new Stream(*video, (int32_t)first), Stream::end);
  std::lock_guard<std::mutex> lock(video->streams_lock);
  video->streams[opened.get()] = opened;
  return opened.get();
}
EXPORT_LONG(video_stream_open)

// Writes the next n frames to `out`; returns 0 with the reason in `error` if they can't be decoded.
EXPORT int32_t video_stream_read(Stream *stream, int64_t n, int32_t as_ycbcr, uint8_t *out, char *error) {
  try {
    stream->read(n, as_ycbcr, out);
    return 1;
  } catch (const std::exception &e) {
    snprintf(error, kErrorSize, "%s", e.what());
    return 0;
  }
}
EXPORT_LONG(video_stream_read)

EXPORT void video_stream_close(Stream *stream) {
  OpenedVideo &video = stream->video();
  std::shared_ptr<void> closed;  // ends it without the lock
  std::lock_guard<std::mutex> lock(video.streams_lock);
  const auto it = video.streams.find(stream);
  closed = std::move(it->second);
  video.streams.erase(it);
}
EXPORT_LONG(video_stream_close)

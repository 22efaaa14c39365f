// SPDX-License-Identifier: Apache-2.0
// All frames of an opened video in sequence: one thread decodes ahead, the caller converts colours.
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>

#include "core/kernel.h"
#include "read/remote.h"
#include "video/colors.h"
#include "video/opened.h"

namespace {

constexpr size_t kAhead = 8;  // pictures waiting for conversion
// Conversion is faster than decoding. Woken for each picture, the converting thread would alternate with the decoder on
// one core; woken for several, the system gives it a core of its own.
constexpr size_t kAtOnce = 4;

class Stream {
 public:
  Stream(const OpenedVideo &video, int32_t first) : video_(video), next_(first), remote_(RemoteStorage::selected) {
    thread_ = std::thread([this]() { decode(); });
  }
  ~Stream() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
    for (auto &[number, held] : waiting_) release(held);
  }

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
    }
  }

 private:
  struct Held {
    ffmpeg::Frame *frame;
    Picture picture;
    int32_t number;
  };
  struct Stopped : std::exception {};

  static void release(Held held) { ffmpeg::functions()->av_frame_free(&held.frame); }

  void decode() {
    RemoteStorage::selected = remote_;
    std::string error;
    try {
      std::vector<int32_t> wanted(video_.index.shown.size() - (size_t)next_);
      std::iota(wanted.begin(), wanted.end(), next_);
      decode_frames(packets_of(video_), video_.index, wanted,
                    [this](int32_t number, const Picture &picture) { hand_over(number, picture); });
    } catch (const Stopped &) {
    } catch (const std::exception &e) {
      error = e.what();
    }
    std::lock_guard<std::mutex> lock(mutex_);
    error_ = error, is_done_ = true;
    changed_.notify_all();
  }

  void hand_over(int32_t number, const Picture &picture) {
    const ffmpeg::Functions &ff = *ffmpeg::functions();
    Held held{ff.av_frame_alloc(), picture, number};
    if (!held.frame) throw std::bad_alloc();
    if (ff.av_frame_ref(held.frame, picture.frame) < 0) {
      release(held);
      throw std::bad_alloc();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    waiting_[number] = held;
    if (is_time()) changed_.notify_all();
    // Decoding continues while the requested frame is missing, as pictures may come out of presentation order.
    changed_.wait(lock, [&]() { return is_stopped_ || waiting_.size() < kAhead || !waiting_.count(next_); });
    if (is_stopped_) throw Stopped();
  }

  Held take() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!waiting_.count(next_)) {
      changed_.wait(lock, [&]() { return is_time() || is_done_; });
      at_once_ = kAtOnce;
    }
    const auto it = waiting_.find(next_);
    if (it == waiting_.end()) fail("%s", error_.empty() ? "there are no more frames" : error_.c_str());
    const Held held = it->second;
    const bool was_full = waiting_.size() >= kAhead;
    waiting_.erase(it);
    next_++;
    if (was_full) changed_.notify_all();
    return held;
  }
  // Whether to wake the thread that waits for the next frame.
  bool is_time() const { return waiting_.size() >= at_once_ && waiting_.count(next_); }

  const OpenedVideo &video_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int32_t, Held> waiting_;
  int32_t next_;
  size_t at_once_ = 1;  // 1 so that the first frame is returned at once
  bool is_stopped_ = false, is_done_ = false;
  std::string error_;
  RemoteStorage *const remote_;
  Scratch scratch_;
  std::thread thread_;
};

}  // namespace

// Streams the frames of a video from `first` on. The video must stay open until video_stream_close.
EXPORT Stream *video_stream_open(const OpenedVideo *video, int64_t first) { return new Stream(*video, (int32_t)first); }
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

EXPORT void video_stream_close(Stream *stream) { delete stream; }
EXPORT_LONG(video_stream_close)

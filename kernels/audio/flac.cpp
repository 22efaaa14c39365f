// SPDX-License-Identifier: Apache-2.0
// FLAC streams (RFC 9639) of up to 24 bits; others, and FLAC in Ogg, are left to libsndfile.
#include <algorithm>
#include <cstring>
#include <vector>

#include "audio/audio_file.h"
#include "audio/flac_frame.h"
#include "core/kernel.h"

namespace {

constexpr int64_t kMostFramesPerByte = 8192;  // beyond it the header is damaged

uint64_t big_endian(const uint8_t *p, int bytes) {
  uint64_t v = 0;
  for (int i = 0; i < bytes; i++) v = v << 8 | p[i];
  return v;
}

// Returns where the frames begin, or 0 if the stream is not supported here.
int64_t read_stream(FlacStream &stream, AudioBytes file) {
  constexpr int64_t kAbout = 34;  // bytes that describe the stream
  const uint8_t *p = file.data;
  if (file.size < 8 + kAbout || std::memcmp(p, "fLaC", 4) != 0 || p[4] & 0x7f || big_endian(p + 5, 3) != kAbout)
    return 0;
  const uint64_t about = big_endian(p + 8 + 10, 8);
  stream.longest = (int32_t)big_endian(p + 8 + 2, 2);
  stream.rate = (int32_t)(about >> 44);
  stream.channels = (int32_t)(about >> 41 & 7) + 1;
  stream.bits = (int32_t)(about >> 36 & 31) + 1;
  stream.frames = (int64_t)(about & 0xfffffffff);
  if (!stream.rate || stream.bits < 4 || stream.bits > 24 || !stream.frames || stream.longest < 16) return 0;
  for (int64_t at = 4; at + 4 <= file.size;) {
    const int64_t next = at + 4 + (int64_t)big_endian(p + at + 1, 3);
    if (next > file.size) break;
    if (p[at] & 0x80) return next;
    at = next;
  }
  fail("damaged: the FLAC file of %lld bytes ends before its first frame", (long long)file.size);
}

// Restores two channels, one or both of which are stored as a difference.
CLONES void unmix(int32_t *a, int32_t *b, int64_t n, int assignment) {
  uint32_t *left = (uint32_t *)a, *right = (uint32_t *)b;
  if (assignment == LEFT_SIDE) {
    for (int64_t i = 0; i < n; i++) right[i] = left[i] - right[i];
  } else if (assignment == SIDE_RIGHT) {
    for (int64_t i = 0; i < n; i++) left[i] += right[i];
  } else {
    for (int64_t i = 0; i < n; i++) {
      const uint32_t side = right[i], middle = left[i] << 1 | (side & 1);
      left[i] = (uint32_t)((int32_t)(middle + side) >> 1), right[i] = (uint32_t)((int32_t)(middle - side) >> 1);
    }
  }
}

// Interleaves n samples of each plane, scaled to the range of the type.
template <class T>
CLONES void interleave(T *__restrict out, const int32_t *__restrict planes, int64_t pitch, int64_t n, int64_t channels,
                       int bits) {
  const int up = std::max((int)sizeof(T) * 8 - bits, 0), down = std::max(bits - (int)sizeof(T) * 8, 0);
  const float scale = 1 / (float)(1 << (bits - 1));
  auto scaled = [&](int32_t x) {
    return std::is_same_v<T, float> ? (T)((float)x * scale) : (T)((int32_t)((uint32_t)x << up) >> down);
  };
  if (channels == 1) {
    for (int64_t i = 0; i < n; i++) out[i] = scaled(planes[i]);
  } else if (channels == 2) {
    for (int64_t i = 0; i < n; i++) out[2 * i] = scaled(planes[i]), out[2 * i + 1] = scaled(planes[pitch + i]);
  } else {
    for (int64_t c = 0; c < channels; c++)
      for (int64_t i = 0; i < n; i++) out[i * channels + c] = scaled(planes[c * pitch + i]);
  }
}

class FlacReader : public AudioReader {
 public:
  FlacReader(AudioBytes file, const FlacStream &stream, int64_t begin)
      : file_(file), stream_(stream), begin_(begin), at_(begin) {}

  void skip(int64_t frames) {
    if (!frames || (jump(frames) && next_ == frames)) return;
    // Frames are not where their numbers say: decode everything before as well.
    at_ = begin_, next_ = 0, used_ = length_ = 0;
    while (next_ < frames) {
      if (used_ == length_) decode();
      const int64_t n = std::min(frames - next_, length_ - used_);
      used_ += n, next_ += n;
    }
  }

  void read(int16_t *out, int64_t n) override { copy(out, n); }
  void read(int32_t *out, int64_t n) override { copy(out, n); }
  void read(float *out, int64_t n) override { copy(out, n); }

 private:
  // Finds the frame with this sample by bisection. Returns false if there is no valid one.
  bool jump(int64_t sample) {
    FlacFrame frame;
    if (!read_flac_header(frame, file_.data + begin_, file_.size - begin_, stream_) || frame.first) return false;
    int64_t low = begin_, high = file_.size;  // bounds of the last frame that begins at or before the sample
    while (sample >= frame.first + frame.length && high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      FlacFrame found;
      const int64_t at = find_frame(found, middle, high);
      if (at < 0 || found.first > sample)
        high = middle;
      else if (found.first > frame.first)
        low = at, frame = found;
      else
        return false;
    }
    if (sample >= frame.first + frame.length) return false;
    at_ = low;
    try {
      decode();
    } catch (const std::exception &) {
      return false;
    }
    used_ = sample - frame.first, next_ = sample;
    return true;
  }

  int64_t find_frame(FlacFrame &frame, int64_t from, int64_t end) const {
    for (const uint8_t *p = file_.data + from, *stop = file_.data + end;
         (p = (const uint8_t *)std::memchr(p, 0xff, stop - p)); p++)
      if (read_flac_header(frame, p, file_.data + file_.size - p, stream_)) return p - file_.data;
    return -1;
  }

  void decode() {
    FlacFrame frame;
    try {
      if (!read_flac_header(frame, file_.data + at_, file_.size - at_, stream_)) fail("there is no FLAC frame");
      planes_.resize(std::max<size_t>(planes_.size(), (size_t)frame.length * stream_.channels));
      at_ += decode_flac_frame(planes_.data(), frame.length, file_.data + at_, file_.size - at_, frame, stream_);
    } catch (const std::runtime_error &e) {
      fail(
          "damaged or truncated: its header promises %lld frames, of which %lld were decoded; at byte %lld of %lld, %s",
          (long long)stream_.frames, (long long)next_, (long long)at_, (long long)file_.size, e.what());
    }
    if (frame.assignment >= LEFT_SIDE)
      unmix(planes_.data(), planes_.data() + frame.length, frame.length, frame.assignment);
    used_ = 0, length_ = frame.length;
  }

  template <class T>
  void copy(T *out, int64_t n) {
    while (n > 0) {
      if (used_ == length_) decode();
      const int64_t here = std::min(n, length_ - used_);
      interleave(out, planes_.data() + used_, length_, here, stream_.channels, stream_.bits);
      used_ += here, next_ += here, out += here * stream_.channels, n -= here;
    }
  }

  const AudioBytes file_;
  const FlacStream stream_;
  const int64_t begin_;
  int64_t at_, next_ = 0;          // where the next frame begins; the index of the next sample
  int64_t used_ = 0, length_ = 0;  // samples of the decoded frame
  std::vector<int32_t> planes_;
};

}  // namespace

AudioInfo peek_flac(AudioBytes file) {
  FlacStream stream;
  const int64_t begin = read_stream(stream, file);
  if (!begin) return {};
  if (stream.frames / kMostFramesPerByte > file.size)
    fail("damaged: the header promises %lld frames, the file has %lld bytes", (long long)stream.frames,
         (long long)file.size);
  return {stream.frames, begin, (double)stream.rate, stream.channels, FLAC};
}

std::unique_ptr<AudioReader> open_flac(AudioBytes file, const AudioInfo &info, int64_t first) {
  FlacStream stream;
  const int64_t begin = read_stream(stream, file);
  if (!begin || stream.channels != info.channels || stream.frames != info.frames)
    fail("[internal error] the file is not the one whose header was read");
  auto reader = std::make_unique<FlacReader>(file, stream, begin);
  reader->skip(first);
  return reader;
}

// SPDX-License-Identifier: Apache-2.0
// FLAC streams (RFC 9639) of up to 24 bits; others, and FLAC in Ogg, are left to libsndfile.
#include <algorithm>
#include <cstring>
#include <vector>

#include "audio/audio_file.h"
#include "audio/flac_frame.h"
#include "core/kernel.h"
#include "core/memory.h"
#include "read/storage.h"

namespace {

constexpr int64_t kMostFramesPerByte = 8192;  // beyond it the header is damaged

uint64_t big_endian(const uint8_t *p, int bytes) {
  uint64_t v = 0;
  for (int i = 0; i < bytes; i++) v = v << 8 | p[i];
  return v;
}

// Returns where the frames begin, or 0 if the stream is not supported here. `is_head`: there may be more behind the
// bytes; returns 0 also if the frames begin there.
int64_t read_stream(FlacStream &stream, AudioBytes file, bool is_head = false) {
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
  if (is_head) return 0;
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

// A file's bytes. If only its beginning is in memory, pieces of the rest are read when they are needed.
class PartlyRead {
 public:
  explicit PartlyRead(AudioBytes file) : size(file.size), data_(file.data), object_(file.object) {
    if (!object_) return;
    block_.reset((uint8_t *)memory_take(size));
    if (!block_) fail("out of memory: the file has %lld bytes", (long long)size);
    data_ = block_.get();
    is_read_.resize((size + kPiece - 1) / kPiece);
  }
  // Returns the address of the bytes [begin, end), or as many of them as the file has.
  const uint8_t *bytes(int64_t begin, int64_t end) {
    const int64_t stop = object_ ? (std::min(end, size) + kPiece - 1) / kPiece : 0;
    for (int64_t i = begin / kPiece; i < stop; i++) {
      if (is_read_[i]) continue;
      int64_t next = i + 1;
      while (next < stop && !is_read_[next]) next++;
      const int64_t from = i * kPiece, n = std::min(next * kPiece, size) - from;
      if (object_->read(from, n, (char *)&block_[from]) < n) fail("the file was cut short while it was read");
      std::fill(&is_read_[i], &is_read_[next - 1] + 1, 1);
    }
    return data_ + begin;
  }
  const int64_t size;

 private:
  static constexpr int64_t kPiece = 16 << 10;
  const uint8_t *data_;
  Object *const object_;
  std::unique_ptr<uint8_t[], decltype(&memory_give)> block_{nullptr, &memory_give};
  std::vector<char> is_read_;  // of each piece
};

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
  // Finds the frame with this sample. Returns false if there is no valid one.
  bool jump(int64_t sample) {
    FlacFrame frame;
    if (!read_header(frame, begin_) || frame.first) return false;
    int64_t low = begin_, high = file_.size;  // bounds of the last frame that begins at or before the sample
    for (int tries = 0; sample >= frame.first + frame.length && high - low > 1; tries++) {
      const int64_t middle = tries < kGuesses ? guess(low, frame.first, high, sample) : low + (high - low) / 2;
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

  // Where a frame's length before the sample is, if the bytes from `low` on are as dense everywhere.
  int64_t guess(int64_t low, int64_t first, int64_t high, int64_t sample) const {
    const double share =
        (double)(sample - stream_.longest - first) / (double)std::max<int64_t>(stream_.frames - first, 1);
    const int64_t at = low + (int64_t)(std::clamp(share, 0.0, 1.0) * (double)(file_.size - low));
    return std::clamp(at, low + 1, high - 1);
  }

  bool read_header(FlacFrame &frame, int64_t at) {
    constexpr int64_t longest = 16;
    return read_flac_header(frame, file_.bytes(at, at + longest), std::min(longest, file_.size - at), stream_);
  }

  int64_t find_frame(FlacFrame &frame, int64_t from, int64_t end) {
    for (constexpr int64_t step = 4096; from < end;) {
      const int64_t n = std::min(step, end - from);
      const uint8_t *const p = file_.bytes(from, from + n), *const sync = (const uint8_t *)std::memchr(p, 0xff, n);
      from += sync ? sync - p : n;
      if (!sync) continue;
      if (read_header(frame, from)) return from;
      from++;
    }
    return -1;
  }

  void decode() {
    FlacFrame frame;
    try {
      if (!read_header(frame, at_)) fail("there is no FLAC frame");
      planes_.resize(std::max<size_t>(planes_.size(), (size_t)frame.length * stream_.channels));
      at_ += decode_frame(frame);
    } catch (const std::runtime_error &e) {
      fail(
          "damaged or truncated: its header promises %lld frames, of which %lld were decoded; at byte %lld of %lld, %s",
          (long long)stream_.frames, (long long)next_, (long long)at_, (long long)file_.size, e.what());
    }
    if (frame.assignment >= LEFT_SIDE)
      unmix(planes_.data(), planes_.data() + frame.length, frame.length, frame.assignment);
    used_ = 0, length_ = frame.length;
  }

  // Returns the number of its bytes.
  int64_t decode_frame(const FlacFrame &frame) {
    // Encoders store samples as they are, with a bit more for differences, where nothing is shorter.
    const int64_t usual = frame.header_size + 2 + stream_.channels * (frame.length * (stream_.bits + 1) / 8 + 8);
    const int64_t left = file_.size - at_;
    if (usual < left) {
      try {
        return decode_flac_frame(planes_.data(), frame.length, file_.bytes(at_, at_ + usual), usual, frame, stream_);
      } catch (const std::runtime_error &) {  // others need not
      }
    }
    return decode_flac_frame(planes_.data(), frame.length, file_.bytes(at_, file_.size), left, frame, stream_);
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

  static constexpr int kGuesses = 4;
  PartlyRead file_;
  const FlacStream stream_;
  const int64_t begin_;
  int64_t at_, next_ = 0;          // where the next frame begins; the index of the next sample
  int64_t used_ = 0, length_ = 0;  // samples of the decoded frame
  std::vector<int32_t> planes_;
};

}  // namespace

static AudioInfo about(const FlacStream &stream, int64_t begin, int64_t size) {
  if (!begin) return {};
  if (stream.frames / kMostFramesPerByte > size)
    fail("damaged: the header promises %lld frames, the file has %lld bytes", (long long)stream.frames,
         (long long)size);
  return {stream.frames, begin, (double)stream.rate, stream.channels, FLAC};
}

AudioInfo peek_flac(AudioBytes file) {
  FlacStream stream;
  const int64_t begin = read_stream(stream, file);
  return about(stream, begin, file.size);
}

AudioInfo peek_flac_head(AudioBytes head, int64_t size) {
  FlacStream stream;
  const int64_t begin = read_stream(stream, head, true);
  return about(stream, begin, size);
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

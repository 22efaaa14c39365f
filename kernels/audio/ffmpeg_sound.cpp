// SPDX-License-Identifier: Apache-2.0
// Sound in packets, decoded by FFmpeg.
#include <algorithm>
#include <cstring>

#include "audio/sound_track.h"
#include "core/kernel.h"
#include "video/ffmpeg.h"

namespace {

using namespace ffmpeg;

enum SampleFormat : int { U8, S16, S32, FLT, DBL, U8P, S16P, S32P, FLTP, DBLP, FORMATS };  // AVSampleFormat
constexpr int kInFrame = 8;  // channel pointers in a frame

// Converts a sample to the requested type: real numbers from -1 to 1, integers of full range.
template <class To, class From>
To converted(From x) {
  constexpr int from = 8 * sizeof(From), to = 8 * sizeof(To);
  if constexpr (std::is_floating_point_v<From>) {
    return std::is_floating_point_v<To> ? (To)x : saturate<To>((double)x * (to == 16 ? 32767.0 : 2147483647.0));
  } else if constexpr (std::is_unsigned_v<From>) {
    return converted<To>((int16_t)((x - 128) * 256));
  } else if constexpr (std::is_floating_point_v<To>) {
    return (To)x / (To)((int64_t)1 << (from - 1));
  } else if constexpr (from < to) {
    return (To)((uint32_t)x << (to - from));
  } else {
    return (To)(x >> (from - to));
  }
}

class Sound : public AudioReader {
 public:
  // `known`: the earlier result of `info`, if any.
  explicit Sound(AudioBytes file, const AudioInfo *known = nullptr)
      : file_(file), track_(read_sound_track(file)), decoder_(ffmpeg(), "sound", track_.codec, track_.extradata, {}) {
    if (!next_frame())
      fail("%s: there is no sound in its %lld packets", track_.codec, (long long)track_.packets.size());
    int64_t rate = 0;
    decoder_.ff.av_opt_get_int(decoder_.context, "ar", 0, &rate);
    if (rate < 1) fail("%s: a sampling rate of %lld Hz", track_.codec, (long long)rate);
    rate_ = (double)rate;
    begin_ = samples(track_.begin), silence_ = samples(track_.silence), length_ = samples(track_.length);
    total_ = samples(track_.duration);
    if (track_.duration < 0) {
      total_ = known ? known->frames - silence_ + begin_ + samples(track_.padding) : count();
      length_ = std::max<int64_t>(total_ - begin_ - samples(track_.padding), 0);
    }
    // A frame has at most 65,536 samples (in ALAC); most have 1,024 or 1,152.
    if (total_ >> 17 > (int64_t)track_.packets.size() || silence_ > kMostSilence * rate)
      fail("damaged: %lld packets should last %lld samples, after %lld of silence", (long long)track_.packets.size(),
           (long long)total_, (long long)silence_);
  }

  AudioInfo info() const { return {silence_ + length_, 0, rate_, channels_, COMPRESSED}; }

  // Everything before is decoded as well, as most codecs need it.
  void skip(int64_t frames) {
    const int64_t silent = std::min(frames, silence_);
    silence_ -= silent, begin_ += frames - silent;
  }

  void read(int16_t *out, int64_t n) override { read_as(out, n); }
  void read(int32_t *out, int64_t n) override { read_as(out, n); }
  void read(float *out, int64_t n) override { read_as(out, n); }

 private:
  static constexpr double kMostSilence = 24 * 3600;  // seconds

  static const Functions &ffmpeg() {
    if (!functions()) fail("[internal error] FFmpeg is not open");
    return *functions();
  }

  int64_t samples(int64_t units) const { return (int64_t)((double)units * rate_ / (double)track_.timescale + 0.5); }

  // Counts the samples by decoding them all, as some containers don't tell.
  int64_t count() {
    while (next_frame()) continue;
    const int64_t n = at_;
    decoder_.ff.avcodec_flush_buffers(decoder_.context);
    next_ = 0, at_ = has_ = used_ = 0, is_silent_ = false;
    return n;
  }

  // Decodes until there are samples; false at the end.
  bool next_frame() {
    at_ += has_, has_ = used_ = 0;
    if (is_silent_) {
      is_silent_ = false, has_ = frame_samples(decoder_.frame);
      return true;
    }
    if (!decode_frame()) return false;
    // A packet of AAC without a sound element lasts as long as others (FAAC's first one has only the encoder's name).
    // AAC is decoded without a delay, so that other packets have a frame at once.
    if (without_frame_ > 1 && !std::strcmp(track_.codec, "aac")) has_ *= without_frame_ - 1, is_silent_ = true;
    return true;
  }

  bool decode_frame() {
    const Functions &ff = decoder_.ff;
    without_frame_ = 0;
    for (;;) {
      const int status = ff.avcodec_receive_frame(decoder_.context, decoder_.frame);
      if (status >= 0) {
        if (frame_samples(decoder_.frame) <= 0) continue;
        check_frame();
        return true;
      }
      if (status != kTryAgain) return false;
      if (next_ < track_.packets.size()) {
        const Packet &p = track_.packets[next_++];
        if (p.offset < 0 || p.offset > file_.size || p.size > file_.size - p.offset)
          fail("a packet lies beyond the end of the file (bytes %lld to %lld of %lld)", (long long)p.offset,
               (long long)(p.offset + p.size), (long long)file_.size);
        if (!p.size) continue;
        without_frame_++;
        decoder_.fill_packet(track_.prefix, file_.data + p.offset, p.size);
        const int sent = ff.avcodec_send_packet(decoder_.context, decoder_.packet);
        ff.av_packet_unref(decoder_.packet);
        if (sent < 0) decoder_.fail_with(sent, "packet %lld (%s) can't be decoded", (long long)next_ - 1, track_.codec);
      } else {
        ff.avcodec_send_packet(decoder_.context, nullptr);
      }
    }
  }

  // Versions of FFmpeg store a frame's channel count in different fields; its memory layout tells it in all.
  void check_frame() {
    Frame *f = decoder_.frame;
    format_ = frame_format(f);
    if (format_ < 0 || format_ >= FORMATS) fail("%s: samples of an unknown kind", track_.codec);
    constexpr int widths[] = {1, 2, 4, 4, 8};
    const int64_t n = frame_samples(f), width = widths[format_ % U8P], plane = frame_line(f, 0);
    int channels = 0;
    if (format_ >= U8P)
      while (channels < kInFrame && frame_plane(f, channels)) channels++;
    else
      channels = track_.channels;
    if (track_.channels > kInFrame && format_ >= U8P)
      fail("%s: sound of %d channels is not supported; 1 to %d are", track_.codec, track_.channels, kInFrame);
    if (channels_ && channels != channels_) fail("%s: the number of channels changes", track_.codec);
    channels_ = channels;
    if (!channels || plane / width < n * (format_ >= U8P ? 1 : channels))
      fail("%s: frames of %lld samples in %d channels are not as expected", track_.codec, (long long)n, channels);
    has_ = n;
  }

  template <class T>
  void read_as(T *out, int64_t n) {
    const int64_t silent = std::min(n, silence_);
    std::fill(out, out + silent * channels_, (T)0);
    silence_ -= silent, out += silent * channels_, n -= silent;
    while (n > 0) {
      if (used_ == has_ && !next_frame()) {
        if (at_ < total_) fail("damaged: %lld of %lld samples could be decoded", (long long)at_, (long long)total_);
        fail("[internal error] samples beyond the end");
      }
      if (at_ + used_ < begin_) {
        used_ = std::min(has_, begin_ - at_);
        continue;
      }
      const int64_t m = std::min(n, has_ - used_);
      switch (format_ % U8P) {
        case U8:
          copy<uint8_t>(out, m);
          break;
        case S16:
          copy<int16_t>(out, m);
          break;
        case S32:
          copy<int32_t>(out, m);
          break;
        case FLT:
          copy<float>(out, m);
          break;
        default:
          copy<double>(out, m);
      }
      out += m * channels_, n -= m, used_ += m;
    }
  }

  template <class From, class T>
  void copy(T *out, int64_t n) const {
    if (is_silent_) {
      std::fill(out, out + n * channels_, (T)0);
      return;
    }
    const bool is_planar = format_ >= U8P;
    for (int32_t c = 0; c < channels_; c++) {
      const auto *in = (const From *)frame_plane(decoder_.frame, is_planar ? c : 0);
      const int64_t step = is_planar ? 1 : channels_, first = used_ * step + (is_planar ? 0 : c);
      for (int64_t i = 0; i < n; i++) out[i * channels_ + c] = converted<T>(in[first + i * step]);
    }
  }

  const AudioBytes file_;
  const SoundTrack track_;
  Decoder decoder_;
  double rate_ = 0;
  int32_t channels_ = 0;
  int format_ = 0;
  int64_t begin_ = 0, silence_ = 0, length_ = 0, total_ = 0;  // in samples
  size_t next_ = 0;                                           // packet
  int64_t without_frame_ = 0;                                 // packets since the last frame
  bool is_silent_ = false;               // whether the current samples are silence before those of the decoder's frame
  int64_t at_ = 0, has_ = 0, used_ = 0;  // index of the frame's first sample, its samples, and those already used
};

}  // namespace

AudioInfo peek_sound_track(AudioBytes file) {
  if (!is_sound_track(file)) return {};
  if (!functions()) return {0, 0, 0, 0, NEEDS_FFMPEG};
  return Sound(file).info();
}

std::unique_ptr<AudioReader> open_sound_track(AudioBytes file, const AudioInfo &info, int64_t first) {
  auto sound = std::make_unique<Sound>(file, &info);
  const AudioInfo found = sound->info();
  if (found.frames != info.frames || found.channels != info.channels)
    fail("[internal error] the file is not the one whose header was read");
  sound->skip(first);
  return sound;
}

// SPDX-License-Identifier: Apache-2.0
#include "audio/decode_audio.h"

#include <algorithm>
#include <cmath>

#include "audio/sinc_filter.h"
#include "core/kernel.h"
#include "core/native_time.h"
#include "core/program.h"
#include "read/unread.h"

namespace {

constexpr int64_t kFrames = 4096;  // decoded at a time

CLONES void mix(float *__restrict out, const float *__restrict in, int64_t n, int64_t channels) {
  const float share = 1 / (float)channels;
  if (channels == 2) {
    for (int64_t i = 0; i < n; i++) out[i] = (in[2 * i] + in[2 * i + 1]) * share;
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    float sum = 0;
    for (int64_t c = 0; c < channels; c++) sum += in[i * channels + c];
    out[i] = sum * share;
  }
}

template <class Out>
CLONES void from_float(Out *__restrict out, const float *__restrict in, int64_t n) {
  const float largest = sizeof(Out) == 2 ? 32767.0f : 2147483647.0f;
  for (int64_t i = 0; i < n; i++) out[i] = std::is_same_v<Out, float> ? (Out)in[i] : saturate<Out>(in[i] * largest);
}

// Copies the channels [first, first + kept) of frames.
template <class T>
void keep_channels(T *out, const T *in, int64_t n, int64_t channels, int64_t first, int64_t kept) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < kept; c++) out[i * kept + c] = in[i * channels + first + c];
}

struct Window {
  int64_t first_frame, frames, first_channel, channels;
};

// Copies what needs no arithmetic, in the output's type.
template <class T>
void copy_frames(T *out, const Window &w, AudioReader &reader, int64_t channels, Scratch &scratch) {
  if (w.channels == channels) return reader.read(out, w.frames);
  T *block = scratch.array<T>(kFrames * channels, 0);
  for (int64_t i = 0; i < w.frames; i += kFrames) {
    const int64_t n = std::min(kFrames, w.frames - i);
    reader.read(block, n);
    keep_channels(out + i * w.channels, block, n, channels, w.first_channel, w.channels);
  }
}

std::unique_ptr<AudioReader> open(AudioBytes file, const DecodeAudioArgs &a, int64_t first) {
  const AudioInfo info = {a.frames, a.offset, a.rate, a.channels, a.encoding};
  const int64_t at = a.begin + first;
  if (a.encoding == FLAC) return open_flac(file, info, at);
  if (a.encoding == COMPRESSED) return open_sound_track(file, info, at);
  return a.encoding == LIBRARY ? open_sound_library(file, info, at) : open_wav(file, info, at);
}

// Reads n frames from `first` on, one channel after another, `pitch` apart.
void read_planes(float *planes, int64_t pitch, int64_t first, int64_t n, AudioBytes file, const DecodeAudioArgs &a,
                 const Window &w, Scratch &scratch) {
  const auto reader = open(file, a, first);
  float *block = scratch.array<float>(kFrames * a.channels, 0);
  for (int64_t i = 0; i < n; i += kFrames) {
    const int64_t m = std::min(kFrames, n - i);
    if (a.channels == 1 && w.channels == 1) {
      reader->read(planes + i, m);
      continue;
    }
    reader->read(block, m);
    if (a.downmix) {
      mix(planes + i, block, m, a.channels);
      continue;
    }
    for (int64_t c = 0; c < w.channels; c++)
      for (int64_t k = 0; k < m; k++) planes[c * pitch + i + k] = block[k * a.channels + w.first_channel + c];
  }
}

void resample(float *out, const Window &w, AudioBytes file, const DecodeAudioArgs &a, Scratch &scratch) {
  const SincFilter &filter = SincFilter::of(a.lobes, 1);
  const SincFilter::Span need = filter.needs(w.first_frame, w.frames, a.rate, a.out_rate);
  const int64_t begin = std::min(std::max<int64_t>(need.begin, 0), a.length);
  const int64_t end = std::max(begin, std::min(need.end, a.length)), pitch = need.end - need.begin;
  float *planes = scratch.array<float>(pitch * w.channels, 2);
  std::fill(planes, planes + pitch * w.channels, 0.0f);
  read_planes(planes + begin - need.begin, pitch, begin, end - begin, file, a, w, scratch);
  for (int64_t c = 0; c < w.channels; c++)
    filter.run(out + c, w.channels, w.first_frame, w.frames, planes + c * pitch - need.begin, a.rate, a.out_rate);
}

template <class T>
void decode(T *out, const Window &w, AudioBytes file, const DecodeAudioArgs &a, Scratch &scratch) {
  const bool is_resampled = a.out_rate != a.rate;
  if (!is_resampled && (!a.downmix || a.channels == 1))
    return copy_frames(out, w, *open(file, a, w.first_frame), a.channels, scratch);
  const int64_t n = w.frames * w.channels;
  float *values = (float *)(void *)out;
  if constexpr (!std::is_same_v<T, float>) values = scratch.array<float>(n, 1);
  if (is_resampled)
    resample(values, w, file, a, scratch);
  else
    read_planes(values, 0, w.first_frame, w.frames, file, a, w, scratch);
  if constexpr (!std::is_same_v<T, float>) from_float(out, (const float *)values, n);
}

void run(const Tensor *out, const Tensor *in, const DecodeAudioArgs &a, Scratch &scratch) {
  *out[1].as<float>() = (float)a.told_rate;
  const std::shared_ptr<const Unread> rest = unread_at(in->data);
  const std::shared_ptr<Object> object = rest ? rest->open() : nullptr;
  decode_window(*out, {in->as<const uint8_t>(), in->volume(), object.get()}, a, scratch);
}

}  // namespace

void decode_window(const Tensor &out, AudioBytes file, const DecodeAudioArgs &a, Scratch &scratch) {
  if (!out.volume()) return;
  const Window w = {a.first_frame, out.shape[0], a.downmix ? 0 : a.first_channel, a.downmix ? 1 : out.shape[1]};
  for_types<int16_t, int32_t, float>(out.dtype, [&](auto t) {
    using T = decltype(t);
    decode(out.as<T>(), w, file, a, scratch);
  });
}

EXPORT_KERNEL(decode_audio, DecodeAudioArgs, run)

AudioInfo peek_audio(AudioBytes file) {
  AudioInfo info = peek_flac(file);
  if (info.encoding == FLAC) return info;
  info = peek_wav(file);
  if (info.encoding != NO_AUDIO && info.encoding != LIBRARY) return info;
  info = peek_sound_track(file);
  return info.encoding == NO_AUDIO ? peek_sound_library(file) : info;
}

AudioInfo peek_audio_head(AudioBytes head, int64_t size) {
  const AudioInfo info = peek_flac_head(head, size);
  return info.encoding == FLAC ? info : peek_wav_head(head, size);
}

// Reads the headers of n sounds. Returns how many can't be decoded; their encoding is 0, and kErrorSize bytes of reason
// are in `errors`, unless that is null.
EXPORT int64_t plan_audio(const Tensor *in, int64_t n, AudioInfo *info, char *errors) {
  NativeTime time;
  int64_t failed = 0;
  for (int64_t i = 0; i < n; i++) {
    try {
      const std::shared_ptr<const Unread> rest = unread_at(in[i].data);
      const uint8_t *data = in[i].as<const uint8_t>();
      info[i] = rest ? peek_audio_head({data, rest->begun}, in[i].volume()) : peek_audio({data, in[i].volume()});
      failed += info[i].encoding == NEEDS_FFMPEG;
    } catch (const std::exception &e) {
      info[i] = AudioInfo{};
      if (errors) snprintf(errors + i * kErrorSize, kErrorSize, "%s", e.what());
      failed++;
    }
  }
  return failed;
}
EXPORT_LONG(plan_audio)
EXPORT_INSTRUCTION(plan_audio)

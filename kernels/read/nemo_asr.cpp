// SPDX-License-Identifier: Apache-2.0
#include "read/nemo_asr.h"

#include <cmath>

#include "audio/decode_audio.h"
#include "read/parser.h"

constexpr double kMostFrames = 1099511627776.0;  // 2^40
constexpr int64_t kHead = 4096;                  // bytes that include the header of most WAV files

// Converts seconds to whole frames, at most `most`.
static int64_t frames_of(double seconds, double rate, int64_t most) {
  const double frames = seconds * rate;
  return frames < (double)most ? (int64_t)frames : most;
}

static AudioBytes read(Sample &s, int64_t begin, int64_t size) {
  uint8_t *data = (uint8_t *)s.take(std::max<int64_t>(size, 1));
  s.read(0, begin, size, data);
  return {data, size};
}

static void parse(Sample &s, const NemoAsrArgs &args) {
  AudioBytes file = {(const uint8_t *)s.parts[0].data, s.parts[0].size};
  AudioInfo info = {};
  int64_t frame_bytes = 0;  // not 0 if only the beginning of a WAV file was read
  if (!file.size) {         // not read yet, as a part of the file may suffice
    const int64_t size = s.object_length(0);
    if (!size) fail("the file is empty");
    file = read(s, 0, std::min(size, kHead));
    info = peek_wav_head(file, size);
    frame_bytes = wav_frame_bytes(info);
    if (!frame_bytes) file = read(s, 0, size);
  }
  if (!frame_bytes) info = peek_audio(file);
  if (info.encoding == NEEDS_FFMPEG)
    fail("FFmpeg decodes it, which is opened where paths end with .m4a, .mp4, .mov, .mkv, .mka, .webm or .aac");
  const double offset = args.offset[s.index], duration = args.duration[s.index];
  DecodeAudioArgs a = {};
  a.frames = info.frames, a.offset = info.offset, a.rate = info.rate;
  a.channels = info.channels, a.encoding = info.encoding;
  a.begin = offset > 0 ? frames_of(offset, info.rate, info.frames) : 0;
  if (offset > 0 && a.begin >= info.frames)
    fail("the entry begins at %g s, but the recording has %g s", offset, (double)info.frames / info.rate);
  const int64_t rest = info.frames - a.begin;
  a.length = duration > 0 ? frames_of(duration, info.rate, rest) : rest;
  if (frame_bytes) {
    file = read(s, info.offset + a.begin * frame_bytes, a.length * frame_bytes);
    a.offset = a.begin = 0, a.frames = a.length;
  }
  a.out_rate = args.sample_rate > 0 ? args.sample_rate : info.rate;
  a.downmix = args.downmix, a.lobes = args.lobes;
  const double length = a.out_rate == a.rate ? (double)a.length : std::ceil((double)a.length * a.out_rate / a.rate);
  if (!(length < kMostFrames)) fail("a sample_rate of %g Hz would give %.0f samples", a.out_rate, length);
  Tensor &sound = s.out(0);
  sound.shape[0] = (int64_t)length;
  if (!a.downmix) sound.shape[1] = info.channels;
  sound.data = s.take(std::max<int64_t>(sound.volume() * item_size(args.dtype), 1));
  decode_window(sound, file, a, s.scratch);
  int k = 1;
  if (args.read_sample_rate) *s.out(k++).as<float>() = (float)info.rate;
  if (args.read_text) {
    const int64_t begin = s.index ? args.text_end[s.index - 1] : 0;
    s.give(k++, (const char *)args.texts + begin, args.text_end[s.index] - begin);
  }
  if (args.read_idxs) *s.out(k).as<int64_t>() = s.index;
}

EXPORT_PARSER(nemo_asr, NemoAsrArgs, parse)

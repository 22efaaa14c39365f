// SPDX-License-Identifier: Apache-2.0
// Encoded sounds in memory. WAV and FLAC are read here (wav.cpp, flac.cpp), MP4 and AAC by FFmpeg
// (ffmpeg_sound.cpp), others by libsndfile (sound_library.cpp).
#pragma once
#include <cstdint>
#include <memory>

class Object;
struct AudioBytes {
  const uint8_t *data;
  int64_t size;
  Object *object = nullptr;  // where to read what of the file is not at `data`: all but its beginning
};

// How the samples are stored: those of a WAV file, from PCM_U8 to MU_LAW; what libsndfile reads is LIBRARY.
enum AudioEncoding : int32_t {
  NO_AUDIO,
  LIBRARY,
  PCM_U8,
  PCM_S16,
  PCM_S24,
  PCM_S32,
  PCM_F32,
  PCM_F64,
  A_LAW,
  MU_LAW,
  FLAC,
  COMPRESSED,        // in packets, which FFmpeg decodes
  NEEDS_FFMPEG = -1  // the same, before FFmpeg is open
};

// Written by plan_audio, read back by the decoder as a promise to verify.
struct AudioInfo {
  int64_t frames;  // samples of each channel
  int64_t offset;  // of the first of them, in bytes, where they are not the library's
  double rate;     // in Hz
  int32_t channels;
  int32_t encoding;  // enum AudioEncoding
};

constexpr int kMostChannels = 1024;

// What the header says; throws where it can't be read.
AudioInfo peek_audio(AudioBytes file);
// The same for WAV; the encoding is LIBRARY if it is none that is read here, NO_AUDIO if it is no WAV.
AudioInfo peek_wav(AudioBytes file);
// The same for the beginning of a file of `size` bytes; NO_AUDIO also if it does not reach to the samples.
AudioInfo peek_wav_head(AudioBytes head, int64_t size);
// Bytes of a frame of WAV; 0 for other encodings.
int64_t wav_frame_bytes(const AudioInfo &info);
// The same for FLAC; NO_AUDIO if it is none, or one that libsndfile reads.
AudioInfo peek_flac(AudioBytes file);
// The same for MP4 and AAC (sound_track.h).
AudioInfo peek_sound_track(AudioBytes file);
AudioInfo peek_sound_library(AudioBytes file);

// The frames of a file one after the other.
class AudioReader {
 public:
  virtual ~AudioReader() = default;
  // The next n frames, channels interleaved; throws if there are fewer. Numbers are scaled to the range of the type.
  virtual void read(int16_t *out, int64_t n) = 0;
  virtual void read(int32_t *out, int64_t n) = 0;
  virtual void read(float *out, int64_t n) = 0;
};
// They begin at frame `first`.
std::unique_ptr<AudioReader> open_wav(AudioBytes file, const AudioInfo &info, int64_t first);
std::unique_ptr<AudioReader> open_flac(AudioBytes file, const AudioInfo &info, int64_t first);
std::unique_ptr<AudioReader> open_sound_track(AudioBytes file, const AudioInfo &info, int64_t first);
std::unique_ptr<AudioReader> open_sound_library(AudioBytes file, const AudioInfo &info, int64_t first);

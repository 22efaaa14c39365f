// SPDX-License-Identifier: Apache-2.0
// Encoded sounds in memory. WAV and FLAC are decoded here (wav.cpp, flac.cpp), MP4 and AAC by FFmpeg
// (ffmpeg_sound.cpp), others by libsndfile (sound_library.cpp).
#pragma once
#include <cstdint>
#include <memory>

class Object;
struct AudioBytes {
  const uint8_t *data;
  int64_t size;
  Object *object = nullptr;  // for reading the rest if only the file's beginning is at `data`
};

// How the samples are stored: PCM_U8 to MU_LAW in WAV files; LIBRARY if libsndfile decodes them.
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
  COMPRESSED,        // in packets, decoded by FFmpeg
  NEEDS_FFMPEG = -1  // the same, while FFmpeg is not open
};

// Written by plan_audio; the decoder verifies it.
struct AudioInfo {
  int64_t frames;  // samples per channel
  int64_t offset;  // of the first sample in bytes, unless libsndfile decodes
  double rate;     // in Hz
  int32_t channels;
  int32_t encoding;  // enum AudioEncoding
};

constexpr int kMostChannels = 1024;

// Reads the header; throws if that fails.
AudioInfo peek_audio(AudioBytes file);
// For the beginning of a WAV or FLAC file of `size` bytes; NO_AUDIO or LIBRARY if the whole file is needed.
AudioInfo peek_audio_head(AudioBytes head, int64_t size);
// For WAV; the encoding is LIBRARY if it is not supported here, NO_AUDIO if the file is no WAV.
AudioInfo peek_wav(AudioBytes file);
// For the beginning of a file of `size` bytes; NO_AUDIO also if the samples begin beyond it.
AudioInfo peek_wav_head(AudioBytes head, int64_t size);
// Bytes per frame of WAV; 0 for other encodings.
int64_t wav_frame_bytes(const AudioInfo &info);
// For FLAC; NO_AUDIO if the file is none, or is left to libsndfile.
AudioInfo peek_flac(AudioBytes file);
// As peek_wav_head.
AudioInfo peek_flac_head(AudioBytes head, int64_t size);
// For MP4 and AAC (sound_track.h).
AudioInfo peek_sound_track(AudioBytes file);
AudioInfo peek_sound_library(AudioBytes file);

// Reads the frames of a file in sequence.
class AudioReader {
 public:
  virtual ~AudioReader() = default;
  // Reads the next n frames, channels interleaved; throws if there are fewer. Scaled to the range of the type.
  virtual void read(int16_t *out, int64_t n) = 0;
  virtual void read(int32_t *out, int64_t n) = 0;
  virtual void read(float *out, int64_t n) = 0;
};
// Readers start at frame `first`.
std::unique_ptr<AudioReader> open_wav(AudioBytes file, const AudioInfo &info, int64_t first);
std::unique_ptr<AudioReader> open_flac(AudioBytes file, const AudioInfo &info, int64_t first);
std::unique_ptr<AudioReader> open_sound_track(AudioBytes file, const AudioInfo &info, int64_t first);
std::unique_ptr<AudioReader> open_sound_library(AudioBytes file, const AudioInfo &info, int64_t first);

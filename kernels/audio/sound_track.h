// SPDX-License-Identifier: Apache-2.0
// Compressed sound that libsndfile doesn't read, as containers hold it: packets that FFmpeg decodes.
#pragma once
#include "audio/audio_file.h"
#include "video/index.h"

struct SoundTrack {
  const char *codec = "";          // FFmpeg's name of the decoder
  std::vector<uint8_t> extradata;  // the codec's configuration, as FFmpeg takes it
  std::vector<uint8_t> prefix;     // bytes that the container took off the front of every packet
  int32_t channels = 0;            // where the decoder gives them interleaved
  std::vector<Packet> packets;     // their times are not used
  // In units of 1 / timescale seconds: what the packets last (-1: it is not said), what is cut off before the first
  // sample that is heard and behind the last, how long there is silence before it, and how long sound is heard.
  int64_t timescale = 1, duration = 0, begin = 0, padding = 0, silence = 0, length = 0;
};

// Whether a file is MP4 (M4A, QuickTime), Matroska (WebM) or a stream of AAC (ADTS).
bool is_sound_track(AudioBytes file);
SoundTrack read_sound_track(AudioBytes file);

SoundTrack read_mp4_sound(Bytes file);
SoundTrack read_matroska_sound(Bytes file);
SoundTrack read_adts(Bytes file);

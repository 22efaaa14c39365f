// SPDX-License-Identifier: Apache-2.0
// Compressed sound that libsndfile doesn't support, from containers: packets for FFmpeg.
#pragma once
#include "audio/audio_file.h"
#include "video/index.h"

struct SoundTrack {
  const char *codec = "";          // FFmpeg's decoder name
  std::vector<uint8_t> extradata;  // codec configuration in FFmpeg's format
  std::vector<uint8_t> prefix;     // bytes that the container removed from the start of every packet
  int32_t channels = 0;            // if the decoder's output is interleaved
  std::vector<Packet> packets;     // their times are unused
  // In units of 1 / timescale seconds: the packets' duration (-1: unknown), what is cut off before and after the
  // audible samples, the silence before them, and the audible length.
  int64_t timescale = 1, duration = 0, begin = 0, padding = 0, silence = 0, length = 0;
};

// Whether a file is MP4 (M4A, QuickTime), Matroska (WebM) or a stream of AAC (ADTS).
bool is_sound_track(AudioBytes file);
SoundTrack read_sound_track(AudioBytes file);

SoundTrack read_mp4_sound(Bytes file);
SoundTrack read_matroska_sound(Bytes file);
SoundTrack read_adts(Bytes file);

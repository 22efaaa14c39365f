// SPDX-License-Identifier: Apache-2.0
// Decodes a sound, mixes its channels and brings it to another sampling rate.
#pragma once
#include <cstdint>

#include "audio/audio_file.h"
#include "core/kernel.h"

struct DecodeAudioArgs {
  int64_t frames;  // of the whole sound, at its own rate;
  int64_t offset;  // with `rate`, `channels` and `encoding` as plan_audio said
  double rate;
  int32_t channels;
  int32_t encoding;
  int64_t begin, length;  // the part of it that is taken, in frames; beyond it there is silence
  double out_rate;
  double told_rate;                    // what the second output says of it
  int64_t first_frame, first_channel;  // of the window of that part that the output is, at the output's rate
  int32_t downmix;                     // the output is the mean of the channels and has no axis of them
  int32_t lobes;                       // of the filter that resamples
};

// Fills `out`, of int16, int32 or float: (frames) with `downmix`, else (frames, channels).
void decode_window(const Tensor &out, AudioBytes file, const DecodeAudioArgs &a, Scratch &scratch);

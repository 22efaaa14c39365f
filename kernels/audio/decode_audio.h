// SPDX-License-Identifier: Apache-2.0
// Decodes a sound, mixes its channels and resamples it.
#pragma once
#include <cstdint>

#include "audio/audio_file.h"
#include "core/kernel.h"

struct DecodeAudioArgs {
  int64_t frames;  // of the whole sound, at its own rate
  int64_t offset;  // like `rate`, `channels` and `encoding` from plan_audio
  double rate;
  int32_t channels;
  int32_t encoding;
  int64_t begin, length;  // the part to take, in frames; silence beyond the sound
  double out_rate;
  double told_rate;                    // the rate reported in the second output
  int64_t first_frame, first_channel;  // origin of the output within that part, at the output's rate
  int32_t downmix;                     // the output is the mean of the channels, without a channel axis
  int32_t lobes;                       // of the resampling filter
};

// Fills `out` (int16, int32 or float): (frames) with `downmix`, else (frames, channels).
void decode_window(const Tensor &out, AudioBytes file, const DecodeAudioArgs &a, Scratch &scratch);

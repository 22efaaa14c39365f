// SPDX-License-Identifier: Apache-2.0
// Decodes a sound, mixes its channels and brings it to another sampling rate.
#pragma once
#include <cstdint>

struct DecodeAudioArgs {
  int64_t frames;  // of the whole sound, at its own rate;
  int64_t offset;  // with `rate`, `channels` and `encoding` as plan_audio said
  double rate;
  int32_t channels;
  int32_t encoding;
  double out_rate;
  int64_t first_frame, first_channel;  // of the window that the output is, at the output's rate
  int32_t downmix;                     // the output is the mean of the channels and has no axis of them
  int32_t lobes;                       // of the filter that resamples
};

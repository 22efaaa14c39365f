// SPDX-License-Identifier: Apache-2.0
// A recording, or a part of it, with its transcript: outputs are the samples and, if requested, the sampling rate, the
// text and the index of the entry.
#pragma once
#include <cstdint>

struct NemoAsrArgs {
  const double *offset, *duration;  // per entry, in seconds; duration <= 0 means to the end
  const uint8_t *texts;             // concatenated
  const int64_t *text_end;
  double sample_rate;  // target rate of resampling; 0 for none
  int32_t dtype;
  int32_t downmix;
  int32_t lobes;  // of the resampling filter
  int32_t read_sample_rate, read_text, read_idxs;
};

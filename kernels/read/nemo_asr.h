// SPDX-License-Identifier: Apache-2.0
// A recording, or a part of it, with what is said in it: outputs are the samples, and, where they are wanted, its
// sampling rate, the text and the number of the entry.
#pragma once
#include <cstdint>

struct NemoAsrArgs {
  const double *offset, *duration;  // of entries, in seconds; a duration that is not positive goes to the end
  const uint8_t *texts;             // one behind the other
  const int64_t *text_end;
  double sample_rate;  // to which sounds are resampled; 0 if they are not
  int32_t dtype;
  int32_t downmix;
  int32_t lobes;  // of the filter that resamples
  int32_t read_sample_rate, read_text, read_idxs;
};

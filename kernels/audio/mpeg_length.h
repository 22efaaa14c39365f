// SPDX-License-Identifier: Apache-2.0
// The length of MP3 files that do not tell it.
#pragma once
#include "audio/audio_file.h"

struct MpegLength {
  int64_t begin = 0;       // of the first frame with sound or a length; 0 for other files
  bool is_untold = false;  // whether this is an MP3 file without a table that tells how many frames it has
  int64_t samples = -1;    // per channel, counted; -1: unknown, as there are other bytes between the frames
};

// Reads the headers of all frames, unless the length is told.
MpegLength mpeg_length(AudioBytes file);

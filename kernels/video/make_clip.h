// SPDX-License-Identifier: Apache-2.0
// Makes clips of files whose indices are known.
#pragma once
#include <cstdint>

struct VideoFiles;  // see clip.h

// Input and output of make_clip.
struct ClipBytes {
  virtual const uint8_t *packet(int64_t offset, int64_t size) = 0;  // valid until the clip is made
  virtual void *take(int64_t size) = 0;                             // memory for the clip
};

// Makes the clip of n frames of a file, given by number; returns its size.
int64_t make_clip(const VideoFiles &files, int64_t file, const int32_t *frames, int64_t n, ClipBytes &bytes);

// SPDX-License-Identifier: Apache-2.0
// A clip: the pictures of a video that some of its frames need, with their index; passed from readers of videos to the
// decoder. Lives in memory only, in native byte order.
#pragma once
#include <string>

#include "video/index.h"
#include "video/make_clip.h"

constexpr char kClipMagic[9] = "\x89PSTKCLP";

// What readers know of their files; owned by Python (video_files_open).
struct VideoFiles {
  std::vector<VideoIndex> index;
  std::vector<std::string> errors;  // why a file can't be read; empty if it can be
};

VideoIndex read_clip(Bytes file);

// The bytes of the file, from *begin to *end, that a clip of these frames is likely to need.
void span_of_clip(const VideoIndex &index, const int32_t *frames, int64_t n, int64_t *begin, int64_t *end);

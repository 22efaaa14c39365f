// SPDX-License-Identifier: Apache-2.0
// The tracks of a Matroska or WebM file, and where their packets lie, for pictures and sound.
#pragma once
#include <string>

#include "video/index.h"

namespace matroska {

constexpr uint64_t kPictures = 1, kSound = 2;

struct Track {
  VideoIndex index;  // for sound only packets, extradata and prefix; times are in units of File::scale ns
  uint64_t number = 0, type = 0;
  bool is_readable = true;
  std::string codec_id;
  uint64_t channels = 1;
  int64_t delay = 0, padding = 0;  // ns of inaudible sound at the beginning and the end
};

struct File {
  std::vector<Track> tracks;
  uint64_t scale = 1000000;
};

// Reads the tracks of a file, with the packets of those of one type.
File read_tracks(const Source &source, uint64_t type);

}  // namespace matroska

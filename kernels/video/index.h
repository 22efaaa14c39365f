// SPDX-License-Identifier: Apache-2.0
// Where the frames of a video lie in its file, and when they are shown: read from the container without decoding.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "decode/image.h"

// One compressed picture, in the order of decoding. Times are in units of 1 / VideoIndex::timescale seconds.
struct Packet {
  int64_t offset, pts;
  int32_t size;
  int32_t is_key;  // whether decoding can begin here
};

struct VideoIndex {
  const char *codec = "";  // FFmpeg's name of the decoder
  int32_t width = 0, height = 0;
  int32_t rotation = 0;  // degrees, counterclockwise, by which a player turns the picture: 0, 90, 180, 270
  int64_t timescale = 1;
  std::vector<uint8_t> extradata;  // the codec's configuration, as FFmpeg takes it
  std::vector<uint8_t> prefix;     // bytes that the container took off the front of every packet
  std::vector<Packet> packets;     // in the order of decoding
  std::vector<int32_t> shown;      // packets by frame number: in the order of presentation, without those edited out
  std::vector<int64_t> times;      // of each frame: when it is shown, as the container's edit list has it

  // Fills `shown` and `times` with all packets, in the order of presentation; the first one may begin at any time.
  void show_all();
};

// Where a file's bytes come from: memory, or a disk. `read` fails if they are not there.
struct Source {
  int64_t size;
  std::function<void(int64_t offset, int64_t length, void *to)> read;
};
Source source_of(Bytes file);

// Told apart by its content: MP4 and QuickTime, Matroska and WebM, AVI; of bytes clips (clip.h), too. Fails with what
// is wrong with the file.
VideoIndex read_video_index(Bytes file);
VideoIndex read_video_index(const Source &file);

VideoIndex read_mp4(const Source &file);
VideoIndex read_matroska(const Source &file);
VideoIndex read_avi(const Source &file);

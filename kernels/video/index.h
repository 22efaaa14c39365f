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

// Of a packet that lies in the file in pieces (from Packet::offset on, within Packet::size bytes): how many bytes of
// the first piece come before it, and its own size.
struct Wrapped {
  int32_t skip, size;
};

struct VideoIndex {
  const char *codec = "";  // FFmpeg's name of the decoder
  int32_t width = 0, height = 0;
  int32_t rotation = 0;  // degrees, counterclockwise, by which a player turns the picture: 0, 90, 180, 270
  int64_t timescale = 1;
  std::vector<uint8_t> extradata;    // the codec's configuration, as FFmpeg takes it
  std::vector<uint8_t> prefix;       // bytes that the container took off the front of every packet
  std::vector<Packet> packets;       // in the order of decoding
  int32_t wrapping = 0, stream = 0;  // into what pieces packets are cut (elementary.h); 0: they are whole
  std::vector<Wrapped> wrapped;      // of each packet, unless they are whole
  std::vector<int32_t> shown;        // packets by frame number: in the order of presentation, without those edited out
  std::vector<int64_t> times;        // of each frame: when it is shown, as the container's edit list has it

  // Fills `shown` and `times` with all packets, in the order of presentation; the first one may begin at any time.
  void show_all();
};

// Where a file's bytes come from: memory, or a disk. `read` fails if they are not there.
struct Source {
  int64_t size;
  std::function<void(int64_t offset, int64_t length, void *to)> read;
};
Source source_of(Bytes file);

// Told apart by its content: MP4 and QuickTime, Matroska and WebM, AVI, MPEG-TS, MPEG-PS, streams of H.264, HEVC,
// MPEG-1 and MPEG-2 without a container; of bytes clips (clip.h), too. Fails with what is wrong with the file.
VideoIndex read_video_index(Bytes file);
VideoIndex read_video_index(const Source &file);

VideoIndex read_mp4(const Source &file);
VideoIndex read_matroska(const Source &file);
VideoIndex read_avi(const Source &file);
VideoIndex read_transport(const Source &file);
VideoIndex read_program(const Source &file);
VideoIndex read_plain_stream(const Source &file, const char *codec);

// SPDX-License-Identifier: Apache-2.0
// Where the frames of a video lie in its file, and when they are shown: read from the container without decoding.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "decode/image.h"

// One compressed picture, in decoding order. Times are in units of 1 / VideoIndex::timescale seconds.
struct Packet {
  int64_t offset, pts;
  int32_t size;
  int32_t is_key;  // whether decoding can begin here
};

// A packet stored in pieces of the file (from Packet::offset on, within Packet::size bytes): how many bytes of the
// first piece precede it, and its own size.
struct Wrapped {
  int32_t skip, size;
};

struct VideoIndex {
  const char *codec = "";  // FFmpeg's decoder name
  int32_t width = 0, height = 0;
  int32_t rotation = 0;  // counterclockwise rotation by the player in degrees: 0, 90, 180, 270
  int64_t timescale = 1;
  std::vector<uint8_t> extradata;    // codec configuration in FFmpeg's format
  std::vector<uint8_t> prefix;       // bytes that the container removed from the start of every packet
  std::vector<Packet> packets;       // in decoding order
  int32_t wrapping = 0, stream = 0;  // how packets are cut into pieces (elementary.h); 0: not at all
  std::vector<Wrapped> wrapped;      // per packet, unless they are whole
  std::vector<int32_t> shown;        // packets by frame number: in presentation order, without those edited out
  std::vector<int64_t> times;        // presentation time of each frame, by the container's edit list

  // Fills `shown` and `times` with all packets in presentation order; the first one may begin at any time.
  void show_all();
};

// The source of a file's bytes: memory or a disk. `read` fails if they are missing.
struct Source {
  int64_t size;
  std::function<void(int64_t offset, int64_t length, void *to)> read;
};
Source source_of(Bytes file);

// Recognised by content: MP4 and QuickTime, Matroska and WebM, AVI, MPEG-TS, MPEG-PS, and plain streams of H.264, HEVC,
// MPEG-1 and MPEG-2; from bytes clips (clip.h), too. Fails with what is wrong with the file.
VideoIndex read_video_index(Bytes file);
VideoIndex read_video_index(const Source &file);

VideoIndex read_mp4(const Source &file);
VideoIndex read_matroska(const Source &file);
VideoIndex read_avi(const Source &file);
VideoIndex read_transport(const Source &file);
VideoIndex read_program(const Source &file);
VideoIndex read_plain_stream(const Source &file, const char *codec);

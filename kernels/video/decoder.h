// SPDX-License-Identifier: Apache-2.0
// Decodes the frames that are wanted of one video, and as few others as its references demand.
#pragma once
#include <functional>

#include "video/ffmpeg.h"
#include "video/index.h"

// A decoded picture, before its colours are converted; valid until the next one.
struct Picture {
  const uint8_t *plane[4];
  int64_t line[4];  // bytes from one row to the next
  int32_t width, height;
  const char *format;          // FFmpeg's name of the pixel format
  int64_t matrix;              // AVColorSpace: ITU-T H.273 matrix coefficients, 2: not said
  int64_t range;               // AVColorRange: 1 limited, 2 full, 0 not said
  int64_t siting;              // AVChromaLocation: 1 left, 2 centre, 3 top left, 0 not said
  const ffmpeg::Frame *frame;  // what owns the planes
};

// Gives the bytes of a packet, by its number; no bytes if they are not there. They are used before the next call.
using PacketReader = std::function<Bytes(int32_t)>;
PacketReader packets_in(Bytes file, const VideoIndex &index);
// `read` gives the part of the file in which a packet lies: puts it together from there.
PacketReader unwrapping(const VideoIndex &index, PacketReader read);

// Fails if a picture has another size than the video.
void check_size(const VideoIndex &index, int32_t frame, const Picture &picture);

// Calls `give(i, picture)` once for each frame number in `wanted` (sorted, each once), in any order. Returns how many
// pictures were decoded.
int64_t decode_frames(const PacketReader &read, const VideoIndex &index, const std::vector<int32_t> &wanted,
                      const std::function<void(int32_t, const Picture &)> &give);

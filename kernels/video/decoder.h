// SPDX-License-Identifier: Apache-2.0
// Decodes the wanted frames of one video, and as few others as their references require.
#pragma once
#include <functional>

#include "video/ffmpeg.h"
#include "video/index.h"

// A decoded picture, before its colours are converted; valid until the next one.
struct Picture {
  const uint8_t *plane[4];
  int64_t line[4];  // bytes between rows
  int32_t width, height;
  const char *format;          // FFmpeg's name of the pixel format
  int64_t matrix;              // AVColorSpace: ITU-T H.273 matrix coefficients, 2: unspecified
  int64_t range;               // AVColorRange: 1 limited, 2 full, 0 unspecified
  int64_t siting;              // AVChromaLocation: 1 left, 2 centre, 3 top left, 0 unspecified
  const ffmpeg::Frame *frame;  // owner of the planes
};

// Returns the bytes of a packet by its number; empty if they are missing. Valid until the next call.
using PacketReader = std::function<Bytes(int32_t)>;
PacketReader packets_in(Bytes file, const VideoIndex &index);
// `read` returns the part of the file that holds a packet; this reassembles the packet from it.
PacketReader unwrapping(const VideoIndex &index, PacketReader read);

// Fails if the picture's size differs from the video's.
void check_size(const VideoIndex &index, int32_t frame, const Picture &picture);

// Calls `give(i, picture)` once for each frame number in `wanted` (sorted, unique), in any order. Returns the number of
// decoded pictures.
int64_t decode_frames(const PacketReader &read, const VideoIndex &index, const std::vector<int32_t> &wanted,
                      const std::function<void(int32_t, const Picture &)> &give);

// SPDX-License-Identifier: Apache-2.0
// Tells from a packet of H.264 where decoding may begin.
#pragma once
#include "video/index.h"

// How packets are divided into NAL units: size of their length fields, 1 to 4 bytes (as in MP4), or 0 for start codes.
int h264_length_size(const VideoIndex &index);

struct H264Packet {
  bool is_idr = false;        // nothing after it refers to pictures before it
  bool is_reference = false;  // other pictures may refer to it
  int64_t recovery = -1;      // pictures until output is correct if decoding begins here; -1: unknown
};
H264Packet read_h264_packet(Bytes packet, int length_size);

// From a unit of messages (SEI): pictures until output is correct if decoding begins here; -1: unknown.
int64_t h264_recovery(Bytes unit);

// SPDX-License-Identifier: Apache-2.0
// What a packet of H.264 says of where decoding may begin.
#pragma once
#include "video/index.h"

// How a packet is divided into NAL units: by lengths of 1 to 4 bytes (as MP4 has them), or 0: by start codes.
int h264_length_size(const VideoIndex &index);

struct H264Packet {
  bool is_idr = false;        // nothing behind it refers to what is before it
  bool is_reference = false;  // other pictures may refer to it
  int64_t recovery = -1;      // pictures after which those shown are right, if decoding begins here; -1: not said
};
H264Packet read_h264_packet(Bytes packet, int length_size);

// Of a unit of messages (SEI): after how many pictures those shown are right, if decoding begins here; -1: not said.
int64_t h264_recovery(Bytes unit);

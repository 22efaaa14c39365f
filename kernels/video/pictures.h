// SPDX-License-Identifier: Apache-2.0
// Finds the pictures in streams that have no container, or one that does not say where pictures are: H.264, HEVC,
// MPEG-1 and MPEG-2, whose units begin with the code 00 00 01.
#pragma once
#include <memory>

#include "decode/image.h"

constexpr int64_t kUnitHead = 4096;  // bytes of a unit that are looked at

// What a unit is to the pictures.
enum UnitRole {
  BESIDE,  // part of whatever picture it is in
  BEFORE,  // belongs to the next picture, if one has begun
  FIRST,   // begins a picture
  MORE     // goes on with it, or is its second field
};

struct StreamPicture {
  bool is_key = false;     // decoding can begin here
  bool is_closed = true;   // what is shown before it does not follow it
  bool is_hidden = false;  // not to be shown
  bool is_lost = false;    // what it refers to is not there, so that nothing is known of it
  bool waits = false;      // MPEG-1 and MPEG-2: others refer to it, so that it is shown behind those that follow
  int64_t order = 0;       // H.264 and HEVC: pictures are shown in this order
};

class StreamParser {
 public:
  virtual ~StreamParser() = default;
  // A unit, without its start code; may be cut off behind kUnitHead bytes. What it can't read is left out.
  virtual UnitRole unit(Bytes b) = 0;

  StreamPicture picture;  // the one that began last
  int32_t width = 0, height = 0;
  int64_t rate = 0, rate_scale = 1;  // pictures in `rate_scale` / `rate` seconds; 0: not said
  bool has_order = true;             // StreamPicture::order counts, not `waits`
  // The units that configure the decoder, as long as no picture has begun: those are put before every clip.
  virtual bool configures(Bytes b) const = 0;
};

std::unique_ptr<StreamParser> h264_parser();
std::unique_ptr<StreamParser> hevc_parser();
std::unique_ptr<StreamParser> mpeg_parser();
// By FFmpeg's name of the codec; null if it is another one.
std::unique_ptr<StreamParser> parser_of(const char *codec);

// FFmpeg's name of the codec of a stream that begins with these bytes; "" if it is none of these.
const char *codec_of_stream(Bytes begin);

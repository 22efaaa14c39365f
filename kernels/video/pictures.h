// SPDX-License-Identifier: Apache-2.0
// Finds the pictures in streams without a container, or with one that does not locate pictures: H.264, HEVC, MPEG-1 and
// MPEG-2, whose units begin with the code 00 00 01.
#pragma once
#include <memory>

#include "decode/image.h"

constexpr int64_t kUnitHead = 4096;  // inspected bytes of a unit

// How a unit relates to pictures.
enum UnitRole {
  BESIDE,  // part of the current picture
  BEFORE,  // belongs to the next picture, if one has begun
  FIRST,   // begins a picture
  MORE     // continues a picture, or is its second field
};

struct StreamPicture {
  bool is_key = false;     // decoding can begin here
  bool is_closed = true;   // no following picture is shown before it
  bool is_hidden = false;  // not to be shown
  bool is_lost = false;    // its references are missing
  bool waits = false;      // MPEG-1 and MPEG-2: a reference, shown after the following pictures
  int64_t order = 0;       // H.264 and HEVC: presentation order
};

class StreamParser {
 public:
  virtual ~StreamParser() = default;
  // Parses a unit without its start code; it may be truncated to kUnitHead bytes. Unreadable units are ignored.
  virtual UnitRole unit(Bytes b) = 0;

  StreamPicture picture;  // the last one begun
  int32_t width = 0, height = 0;
  int64_t rate = 0, rate_scale = 1;  // `rate` / `rate_scale` pictures per second; 0: unknown
  bool has_order = true;             // use StreamPicture::order, not `waits`
  // Whether a unit before the first picture configures the decoder; such units are put before every clip.
  virtual bool configures(Bytes b) const = 0;
};

std::unique_ptr<StreamParser> h264_parser();
std::unique_ptr<StreamParser> hevc_parser();
std::unique_ptr<StreamParser> mpeg_parser();
// By FFmpeg's codec name; null if it is another codec.
std::unique_ptr<StreamParser> parser_of(const char *codec);

// FFmpeg's codec name of a stream that begins with these bytes; "" if unknown.
const char *codec_of_stream(Bytes begin);

// SPDX-License-Identifier: Apache-2.0
// MPEG-PS (MPEG-1 and MPEG-2 systems, DVDs), and streams of H.264, HEVC, MPEG-1 and MPEG-2 without a container.
#include <algorithm>

#include "video/elementary.h"
#include "video/pes.h"
#include "video/pictures.h"
#include "video/pieces.h"

namespace {

enum StartCode { END = 0xb9, PACK = 0xba, FIRST_SYSTEM = 0xbb, FIRST_VIDEO = 0xe0, LAST_VIDEO = 0xef };
constexpr int64_t kReadAtOnce = 1 << 18;
constexpr int64_t kPesHead = 280;  // maximum size

// Packets of the video stream `stream`, or of the first one if it is 0.
class Program : public Chunks {
 public:
  Program(const Source &file, int32_t stream, int64_t place) : file_(file, kReadAtOnce), stream_(stream), at_(place) {}

  bool next(Chunk *c) override {
    for (;;) {
      const Bytes b = file_.at(at_, 14);
      if (b.size < 6) return false;
      const int code = b.data[3];
      if (b.data[0] || b.data[1] || b.data[2] != 1 || code < END) {
        at_++;
        continue;
      }
      if (code == PACK && b.size == 14) {
        at_ += b.data[4] >> 6 == 1 ? 14 + (b.data[13] & 7) : 12;
      } else if (code <= PACK) {
        at_ += 4;
      } else {
        const int64_t begin = at_, size = 6 + (int64_t)b.be16(4);
        at_ += size;
        if (code < FIRST_VIDEO || code > LAST_VIDEO || (stream_ && code != stream_)) continue;
        stream_ = code;
        *c = {};
        const Bytes all = file_.at(begin, size);  // less at the end of a truncated file
        const int64_t head = read_pes({all.data, std::min(all.size, kPesHead)}, c);
        if (head < 0 || head > all.size) continue;
        c->begin = begin, c->end = begin + all.size;
        c->bytes = {all.data + head, all.size - head};
        return true;
      }
    }
  }
  int32_t stream() const { return stream_; }

 private:
  Pieces file_;
  int32_t stream_;
  int64_t at_;
};

// A file that is a single stream.
class Plain : public Chunks {
 public:
  explicit Plain(const Source &file) : file_(file, kReadAtOnce) {}
  bool next(Chunk *c) override {
    *c = {};
    c->begin = at_, c->bytes = file_.at(at_, kReadAtOnce), c->end = at_ += c->bytes.size;
    return c->bytes.size > 0;
  }

 private:
  Pieces file_;
  int64_t at_ = 0;
};

}  // namespace

std::unique_ptr<Chunks> program_chunks(const Source &file, int32_t stream, int64_t place) {
  return std::make_unique<Program>(file, stream, place);
}

VideoIndex read_program(const Source &file) {
  Program first(file, 0, 0);
  Chunk c;
  if (!first.next(&c)) fail("MPEG-PS: there is no video in it");
  const char *codec = codec_of_stream(c.bytes);
  if (!*codec) codec = "mpeg2video";  // the most common one, for a file that begins in the middle
  Program chunks(file, first.stream(), 0);
  return index_stream(chunks, codec, PROGRAM_STREAM, first.stream());
}

VideoIndex read_plain_stream(const Source &file, const char *codec) {
  Plain chunks(file);
  return index_stream(chunks, codec, NOT_WRAPPED, 0);
}

// SPDX-License-Identifier: Apache-2.0
#include "video/opened.h"

#include <algorithm>
#include <memory>

#include "core/kernel.h"
#include "read/remote.h"
#include "video/colors.h"

namespace {

constexpr int64_t kPiece = 256 << 10;  // read at once, as packets of a video are mostly contiguous

struct Piece {
  std::vector<uint8_t> bytes;
  int64_t begin = 0;
};

template <class F>
int32_t or_error(char *error, F f) {
  try {
    f();
    return 1;
  } catch (const std::exception &e) {
    snprintf(error, kErrorSize, "%s", e.what());
    return 0;
  }
}

}  // namespace

PacketReader packets_of(const OpenedVideo &video) {
  const auto read = [&video, piece = std::make_shared<Piece>()](int32_t i) -> Bytes {
    const Packet &p = video.index.packets[i];
    std::vector<uint8_t> &bytes = piece->bytes;
    if (p.offset < piece->begin || p.offset + p.size > piece->begin + (int64_t)bytes.size()) {
      const int64_t left = video.object->length() - p.offset;
      if (p.size > left) return {bytes.data(), 0};
      piece->begin = p.offset;
      bytes.resize((size_t)std::min(left, std::max<int64_t>(p.size, kPiece)));
      bytes.resize((size_t)video.object->read(p.offset, (int64_t)bytes.size(), (char *)bytes.data()));
      if ((int64_t)bytes.size() < p.size) return {bytes.data(), 0};
    }
    return {bytes.data() + (p.offset - piece->begin), p.size};
  };
  return unwrapping(video.index, read);
}

// Opens a file or URL; null with the reason in `error` (kErrorSize bytes). `info`: frames, height, width, rotation.
// `codec`: 16 bytes for its name.
EXPORT OpenedVideo *video_open(const char *path, int64_t *info, char *codec, char *error) {
  auto video = std::make_unique<OpenedVideo>();
  const bool is_open = or_error(error, [&]() {
    video->object = open_object(path, Storage::kKept);
    Object &object = *video->object;
    VideoIndex &index = video->index;
    index = read_video_index(Source{object.length(), [&](int64_t offset, int64_t length, void *to) {
                                      if (object.read(offset, length, (char *)to) < length)
                                        fail("the file was cut short while it was read");
                                    }});
    check_extent("video", index.height, index.width);
    if (index.shown.empty()) fail("the video has no frames");
    info[0] = (int64_t)index.shown.size(), info[1] = index.height, info[2] = index.width, info[3] = index.rotation;
    snprintf(codec, 16, "%s", index.codec);
  });
  return is_open ? video.release() : nullptr;
}
EXPORT_LONG(video_open)

EXPORT void video_close(OpenedVideo *video) { delete video; }
EXPORT_LONG(video_close)

// Per frame: presentation time in seconds, and whether it is a key frame.
EXPORT void video_timeline(const OpenedVideo *video, double *times, uint8_t *is_key) {
  const VideoIndex &index = video->index;
  for (size_t i = 0; i < index.shown.size(); i++) {
    times[i] = (double)index.times[i] / (double)index.timescale;
    is_key[i] = index.packets[index.shown[i]].is_key != 0;
  }
}
EXPORT_LONG(video_timeline)

// Decodes frames (sorted, unique numbers) to `out`, one after the other. Returns the number of decoded pictures, or -1
// with the reason in `error`.
EXPORT int64_t video_read(const OpenedVideo *video, const int32_t *frames, int64_t n, int32_t as_ycbcr, uint8_t *out,
                          char *error) {
  const VideoIndex &index = video->index;
  const int64_t size = (int64_t)index.height * index.width * 3;
  int64_t decoded = -1;
  or_error(error, [&]() {
    Scratch scratch;
    const std::vector<int32_t> wanted(frames, frames + n);
    decoded = decode_frames(packets_of(*video), index, wanted, [&](int32_t frame, const Picture &picture) {
      check_size(index, frame, picture);
      const int64_t place = std::lower_bound(wanted.begin(), wanted.end(), frame) - wanted.begin();
      picture_to_pixels(picture, as_ycbcr, {0, 0, index.height, index.width}, {out + place * size, 3 * index.width, 0},
                        scratch);
    });
  });
  return decoded;
}
EXPORT_LONG(video_read)

// The decoder's colour properties of the first frame: matrix, range and chroma position, numbered as in ITU-T H.273 and
// FFmpeg, and `format` (32 bytes), FFmpeg's pixel format name. Returns whether it could be decoded.
EXPORT int32_t video_colours(const OpenedVideo *video, int64_t *colours, char *format, char *error) {
  return or_error(error, [&]() {
    decode_frames(packets_of(*video), video->index, {0}, [&](int32_t, const Picture &picture) {
      colours[0] = picture.matrix, colours[1] = picture.range, colours[2] = picture.siting;
      snprintf(format, 32, "%s", picture.format ? picture.format : "");
    });
  });
}
EXPORT_LONG(video_colours)

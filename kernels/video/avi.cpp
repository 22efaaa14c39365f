// SPDX-License-Identifier: Apache-2.0
// AVI: RIFF chunks, including OpenDML's additional segments. One pass over the headers of chunks; pictures themselves
// are inspected only for what the container does not tell: which are key frames, and their presentation order.
#include <algorithm>
#include <memory>
#include <numeric>

#include "video/codecs.h"
#include "video/h264.h"
#include "video/pictures.h"
#include "video/pieces.h"

namespace {

constexpr uint32_t tag(const char (&t)[5]) {
  return (uint32_t)(uint8_t)t[0] << 24 | (uint32_t)(uint8_t)t[1] << 16 | (uint32_t)(uint8_t)t[2] << 8 | (uint8_t)t[3];
}

constexpr int64_t kLooked = 4096;       // bytes of a picture to inspect
constexpr int64_t kMaxUnit = 64 << 20;  // MPEG-4: chunks may hold two pictures, so all bytes are inspected

struct Video {
  VideoIndex index;
  int number = -1;             // of the stream
  std::vector<int64_t> slots;  // presentation time of each picture, as a chunk number
  std::vector<bool> waits;     // by packet: others refer to it; it is shown after following ones that are no references
};

// A stream's header (strh) and format (strf).
void read_stream(Bytes b, int number, Video *video) {
  bool is_video = false;
  for (int64_t at = 0; b.has(at, 8);) {
    const uint32_t type = b.be32(at);
    const int64_t size = std::min<int64_t>(b.le32(at + 4), b.size - at - 8);
    const Bytes c = b.part(at + 8, size);
    if (type == tag("strh") && size >= 28) {
      is_video = c.be32(0) == tag("vids") && video->number < 0;
      if (is_video && c.le32(20) && c.le32(24)) {
        // Frame k is shown at k * scale / rate seconds.
        video->index.timescale = c.le32(24);
        video->slots.assign(1, c.le32(20));
      }
    } else if (type == tag("strf") && is_video && size >= 40) {
      video->number = number;
      video->index.width = (int32_t)c.le32(4);
      video->index.height = (int32_t)std::abs((int64_t)(int32_t)c.le32(8));
      video->index.codec = codec_of_fourcc(c.be32(16));
      video->index.extradata.assign(c.data + 40, c.data + size);
    }
    at += 8 + size + (size & 1);
  }
}

// Finds the start codes 00 00 01 `code` in a picture of MPEG-1, 2 or 4.
std::vector<int64_t> starts_of(Bytes b, uint8_t code) {
  std::vector<int64_t> found;
  for (int64_t i = 0; b.has(i, 5); i++)
    if (!b.data[i] && !b.data[i + 1] && b.data[i + 2] == 1 && b.data[i + 3] == code) found.push_back(i);
  return found;
}

class Reading {
 public:
  Reading(const Source &source, Video *video) : file_(source), video_(*video), codec_(video->index.codec) {}

  void chunk(int64_t at, int64_t size) {
    const int64_t slot = n_chunks_++;
    if (codec_ == "mpeg4") return mpeg4(at, size, slot);
    if (size == 0) return;  // the previous picture stays on screen
    Packet p{at, 0, (int32_t)size, packets().empty()};
    bool waits = false;
    if (codec_ == "mpeg2video" || codec_ == "mpeg1video") {
      const Bytes b = file_.at(at, std::min(size, kLooked));
      const std::vector<int64_t> pictures = starts_of(b, 0);
      if (!pictures.empty() && b.has(pictures[0], 6)) {
        const uint32_t type = b.data[pictures[0] + 5] >> 3 & 7;
        p.is_key = type == 1, waits = type != 3;
      }
    } else if (codec_ == "h264") {
      const H264Packet h = read_h264_packet(file_.at(at, std::min(size, kLooked)), 0);
      p.is_key = h.is_idr || h.recovery >= 0 || packets().empty();
      orders_.push_back(order_of_h264(file_.at(at, std::min(size, kLooked))));
    } else if (codec_ == "mjpeg" || codec_ == "prores") {
      p.is_key = true;
    }
    add(p, waits, slot);
  }

  // Index of old files: flags of the chunks in file order, 16 bytes per chunk.
  void old_index(Bytes b) {
    size_t k = 0;
    for (int64_t i = 0; b.has(i, 16) && k < packets().size(); i += 16) {
      if (!is_ours(b.be32(i)) || b.le32(i + 12) == 0) continue;
      packets()[k++].is_key |= (b.le32(i + 4) & 0x10) != 0;
    }
  }
  bool says_keys() const {
    return codec_ == "mpeg4" || codec_ == "mpeg2video" || codec_ == "mpeg1video" || codec_ == "h264";
  }
  bool is_ours(uint32_t type) const {
    const int number = ((int)(type >> 24) - '0') * 10 + ((int)(type >> 16 & 255) - '0');
    const uint32_t kind = type & 0xffff;
    return number == video_.number && (kind == ('d' << 8 | 'c') || kind == ('d' << 8 | 'b'));
  }

  // Numbers pictures in presentation order: H.264 tells it; in other codecs a reference picture waits until the next
  // one comes.
  void order(int64_t scale) {
    std::vector<size_t> shown;
    if (orders_.size() == packets().size()) {
      shown.resize(orders_.size());
      std::iota(shown.begin(), shown.end(), 0);
      std::stable_sort(shown.begin(), shown.end(), [&](size_t a, size_t b) { return orders_[a] < orders_[b]; });
      for (size_t k = 0; k < shown.size(); k++) packets()[shown[k]].pts = slots_[k] * scale;
      return;
    }
    int64_t waiting = -1;
    for (size_t i = 0; i < packets().size(); i++) {
      if (!video_.waits[i]) {
        shown.push_back(i);
        continue;
      }
      if (waiting >= 0) shown.push_back((size_t)waiting);
      waiting = (int64_t)i;
    }
    if (waiting >= 0) shown.push_back((size_t)waiting);
    for (size_t k = 0; k < shown.size(); k++) packets()[shown[k]].pts = slots_[k] * scale;
  }

 private:
  std::vector<Packet> &packets() { return video_.index.packets; }
  void add(Packet p, bool waits, int64_t slot) {
    if (packets().size() >= INT32_MAX) fail("AVI: more than 2^31 pictures");
    packets().push_back(p), video_.waits.push_back(waits), slots_.push_back(slot);
  }

  // Passes all available units of a picture to the parser.
  void read_units(Bytes b) {
    for (int64_t at = 0; b.has(at, 4); at++)
      if (!b.data[at] && !b.data[at + 1] && b.data[at + 2] == 1) parser_->unit({b.data + at + 3, b.size - at - 3});
  }
  int64_t order_of_h264(Bytes picture) {
    const std::vector<uint8_t> &set = video_.index.extradata;
    if (!parser_) parser_ = h264_parser(), read_units({set.data(), (int64_t)set.size()});
    read_units(picture);
    return parser_->picture.order;
  }

  // A chunk may hold a picture and the B frame shown before it; an empty picture then follows in its place.
  void mpeg4(int64_t at, int64_t size, int64_t slot) {
    if (size > kMaxUnit) fail("AVI: a picture of %lld bytes", (long long)size);
    const std::vector<uint8_t> bytes = file_.all(at, size);
    const Bytes b{bytes.data(), (int64_t)bytes.size()};
    const std::vector<int64_t> pictures = starts_of(b, 0xb6);
    if (pictures.empty()) return;
    if (packets().empty() && video_.index.extradata.empty())  // clips from elsewhere need the headers, too
      video_.index.extradata.assign(b.data, b.data + pictures[0]);
    if (n_packed_ && pictures.size() == 1 && size <= 16) {
      n_packed_--;
      return;
    }
    for (size_t k = 0; k < pictures.size(); k++) {
      const int64_t begin = k ? pictures[k] : 0, end = k + 1 < pictures.size() ? pictures[k + 1] : size;
      const uint32_t type = b.data[pictures[k] + 4] >> 6;  // I, P, B, S
      add({at + begin, 0, (int32_t)(end - begin), type == 0}, type != 2, slot + (int64_t)k);
    }
    n_packed_ += (int64_t)pictures.size() - 1;
  }

  Pieces file_;
  Video &video_;
  const std::string_view codec_;
  std::vector<int64_t> slots_;
  std::vector<int64_t> orders_;  // for H.264
  std::unique_ptr<StreamParser> parser_;
  int64_t n_chunks_ = 0, n_packed_ = 0;
};

}  // namespace

VideoIndex read_avi(const Source &source) {
  Pieces file(source);
  Video video;
  int64_t scale = 1;
  int n_streams = 0;
  std::unique_ptr<Reading> reading;
  // Lists are entered; chunks are padded to an even size.
  for (int64_t at = 0; at + 8 <= source.size;) {
    const Bytes head = file.at(at, 12);
    const uint32_t type = head.be32(0);
    const int64_t size = head.le32(4);
    if (type == tag("RIFF") || type == tag("LIST")) {
      if (!head.has(8, 4)) break;
      const uint32_t list = head.be32(8);
      if (list == tag("strl")) {
        const std::vector<uint8_t> bytes = file.all(at + 12, std::min<int64_t>(size - 4, 1 << 20));
        read_stream({bytes.data(), (int64_t)bytes.size()}, n_streams++, &video);
      } else if (list != tag("INFO") && list != tag("odml")) {
        at += 12;
        continue;
      }
    } else if (!reading && video.number >= 0) {
      if (!video.slots.empty()) scale = video.slots[0];
      video.slots.clear();
      reading = std::make_unique<Reading>(source, &video);
    }
    if (reading && reading->is_ours(type) && size <= source.size - at - 8) {
      if (size > INT32_MAX) fail("AVI: a picture of %lld bytes", (long long)size);
      reading->chunk(at + 8, size);
    } else if (reading && type == tag("idx1") && !reading->says_keys()) {
      const std::vector<uint8_t> bytes = file.all(at + 8, size);
      reading->old_index({bytes.data(), (int64_t)bytes.size()});
    }
    at += 8 + size + (size & 1);
  }
  if (video.index.packets.empty()) fail("AVI: there is no video in it");
  reading->order(scale);
  video.index.show_all();
  return std::move(video.index);
}

// SPDX-License-Identifier: Apache-2.0
// A libnvcuvid on the emulated device. FFmpeg, which the process has opened already, does the decoding, when a parser
// gets the data; pictures lie 2 rows and columns inside of the coded ones, are shown some pictures later, with the
// times of the packets in order, as by the driver's parser, and go to the device's memory in the stream of whoever maps
// them. It checks how it is called. What it decodes is what an H100 does. PENSTOCK_EMULATED_NVDEC=0 makes it decode
// nothing.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "video/cuvid.h"
#include "video/ffmpeg.h"

#define API extern "C" __attribute__((visibility("default")))

namespace {

using namespace ffmpeg;

enum { OK, INVALID_VALUE, OUT_OF_MEMORY, INVALID_HANDLE = 400, NOT_SUPPORTED = 801, UNKNOWN = 999 };
constexpr int kInside = 2, kMinSurfaces = 4;

template <class F>
F driver(const char *name) {
  static void *library = dlopen(getenv("PENSTOCK_CUDA_DRIVER"), RTLD_NOW);
  return (F)dlsym(library, name);
}

// The paths of libraries that the process has loaded, by a part of their names.
std::set<std::string> loaded(const char *part) {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> paths;
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path != line.npos && line.find(part, path) != line.npos) paths.insert(line.substr(path));
  }
  return paths;
}
void *handle_of(const std::string &path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD); }
std::string folder_of(const std::string &path) { return path.substr(0, path.rfind('/') + 1); }

// Whoever has loaded DALI has its FFmpeg, too, which has neither H.264 nor HEVC.
bool has_codecs(void *codec) {
  const auto find = (decltype(Functions::avcodec_find_decoder_by_name))dlsym(codec, "avcodec_find_decoder_by_name");
  return find && find("h264") && find("hevc");
}

// Null until the process has loaded FFmpeg.
const Functions *ffmpeg_of_process() {
  static std::mutex mutex;
  static const Functions *found = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (found) return found;
  for (const std::string &codec_path : loaded("/libavcodec"))
    for (const std::string &util_path : loaded("/libavutil")) {
      void *util = handle_of(util_path), *codec = handle_of(codec_path);
      if (folder_of(util_path) != folder_of(codec_path) || !util || !codec || !has_codecs(codec)) continue;
      auto *f = new Functions{};
#define FIND(library, name) f->name = (decltype(f->name))dlsym(library, #name)
      FIND(codec, avcodec_find_decoder_by_name), FIND(codec, avcodec_alloc_context3), FIND(codec, avcodec_free_context);
      FIND(codec, avcodec_open2), FIND(codec, avcodec_send_packet), FIND(codec, avcodec_receive_frame);
      FIND(codec, av_packet_alloc), FIND(codec, av_packet_free), FIND(codec, av_packet_unref);
      FIND(codec, av_new_packet);
      FIND(util, av_frame_alloc), FIND(util, av_frame_free), FIND(util, av_frame_unref), FIND(util, av_opt_set_int);
      FIND(util, av_get_pix_fmt_name);
#undef FIND
      return found = f;
    }
  return nullptr;
}

struct Picture {  // as FFmpeg has decoded it
  int width, height, chroma, bits;
  std::vector<uint8_t> planes[3];
  bool is_damaged;
  int bytes() const { return bits > 8 ? 2 : 1; }
  int columns(int plane) const { return plane && chroma == cuvid::C420 ? (width + 1) / 2 : width; }
  int rows(int plane) const { return plane && chroma == cuvid::C420 ? (height + 1) / 2 : height; }
};
typedef std::shared_ptr<const Picture> Shared;

struct Mapped {
  uint64_t address = 0;
  void *stream = nullptr;
  bool is_used = false;
};
struct Engine {
  cuvid::Creation setup;
  uint64_t width, height, pitch;
  std::vector<Shared> surfaces;
  std::vector<Mapped> mapped;
};

std::mutex &state = *new std::mutex;
std::set<void *> &live = *new std::set<void *>;
std::string &failing = *new std::string;
int failing_in = 0;

bool is_live(void *object) {
  std::lock_guard<std::mutex> lock(state);
  return live.count(object);
}
void enter(void *object) {
  std::lock_guard<std::mutex> lock(state);
  live.insert(object);
}
bool leave(void *object) {
  std::lock_guard<std::mutex> lock(state);
  return live.erase(object);
}
bool fails(const char *call) {
  std::lock_guard<std::mutex> lock(state);
  return failing == call && failing_in-- == 0;
}
bool has_context() {
  void *context = nullptr;
  return !driver<int (*)(void **)>("cuCtxGetCurrent")(&context) && context;
}

const char *name_of(int codec) {
  return codec == cuvid::H264 ? "h264" : codec == cuvid::HEVC ? "hevc" : codec == cuvid::VP8 ? "vp8" : "vp9";
}

class ParserObject {
 public:
  explicit ParserObject(const cuvid::ParserCreation &c) : c_(c), ff_(*ffmpeg_of_process()) {
    const Codec *codec = ff_.avcodec_find_decoder_by_name(name_of(c.codec));
    context_ = ff_.avcodec_alloc_context3(codec);
    set_log_offset(context_, 100);
    ff_.av_opt_set_int(context_, "threads", 1, 0);
    ff_.av_opt_set_int(context_, "flags", kOutputCorrupt, 0);
    if (c.codec == cuvid::H264) ff_.av_opt_set_int(context_, "has_b_frames", 16, 0);
    ff_.avcodec_open2(context_, codec, nullptr);
    frame_ = ff_.av_frame_alloc(), packet_ = ff_.av_packet_alloc();
  }
  ~ParserObject() { ff_.av_packet_free(&packet_), ff_.av_frame_free(&frame_), ff_.avcodec_free_context(&context_); }

  bool parse(const cuvid::Data &data) {
    if (data.size) {
      ff_.av_new_packet(packet_, (int)data.size);
      memcpy(packet_data(packet_), data.bytes, data.size);
      packet_pts(packet_) = data.time;
      times_.insert(data.time);
      if (ff_.avcodec_send_packet(context_, packet_) < 0) is_damaged_ = true;
      ff_.av_packet_unref(packet_);
      if (!receive()) return false;
    }
    if (!(data.flags & cuvid::END_OF_STREAM)) return true;
    ff_.avcodec_send_packet(context_, nullptr);
    return receive() && show(0);
  }

 private:
  bool receive() {
    while (ff_.avcodec_receive_frame(context_, frame_) >= 0) {
      const bool good = take();
      ff_.av_frame_unref(frame_);
      if (!good) return false;
    }
    return true;
  }
  bool take() {
    auto p = std::make_shared<Picture>();
    const std::string format = ff_.av_get_pix_fmt_name(frame_format(frame_));
    p->width = frame_width(frame_), p->height = frame_height(frame_);
    p->chroma = format.find("444") != format.npos ? cuvid::C444 : cuvid::C420;
    p->bits = format.find("p10") != format.npos ? 10 : format.find("p12") != format.npos ? 12 : 8;
    p->is_damaged = is_damaged_;
    for (int k = 0; k < 3; k++)
      for (int y = 0; y < p->rows(k); y++) {
        const uint8_t *row = frame_plane(frame_, k) + (int64_t)y * frame_line(frame_, k);
        p->planes[k].insert(p->planes[k].end(), row, row + p->columns(k) * p->bytes());
      }
    if (!last_ || last_->width != p->width || last_->height != p->height || last_->bits != p->bits) {
      if (!show(0)) return false;
      cuvid::Format f{};
      f.codec = c_.codec, f.is_progressive = 1, f.chroma = p->chroma, f.min_surfaces = kMinSurfaces;
      f.luma_bits_minus_8 = f.chroma_bits_minus_8 = (uint8_t)(p->bits - 8);
      f.width = (uint32_t)(p->width + kInside + 15) / 16 * 16,
      f.height = (uint32_t)(p->height + kInside + 15) / 16 * 16;
      f.shown = {kInside, kInside, kInside + p->width, kInside + p->height};
      const int n = c_.on_sequence(c_.user, &f);
      if (n < kMinSurfaces) return false;
      n_surfaces_ = n;
    }
    last_ = p;
    if (times_.empty() || c_.delay + 2 > (uint32_t)n_surfaces_) return false;
    cuvid::PictureHead head{};
    head.index = next_++ % n_surfaces_, head.n_bytes = sizeof last_, head.bytes = (const uint8_t *)&last_;
    waiting_.push_back({head.index, 1, 1, 0, *times_.begin()});  // whatever time it came with
    times_.erase(times_.begin());
    return c_.on_picture(c_.user, &head) && show(c_.delay);
  }
  bool show(size_t left) {
    for (; waiting_.size() > left; waiting_.pop_front())
      if (!c_.on_shown(c_.user, &waiting_.front())) return false;
    return true;
  }

  const cuvid::ParserCreation c_;
  const Functions &ff_;
  Context *context_;
  Frame *frame_;
  PacketData *packet_;
  Shared last_;
  std::deque<cuvid::Shown> waiting_;
  std::multiset<int64_t> times_;  // of packets whose pictures were not shown
  int n_surfaces_ = 0, next_ = 0;
  bool is_damaged_ = false;
};

// Where a plane of a picture lies in what is given out, row by row.
void lay_out(const Engine &e, const Picture &p, std::vector<uint8_t> &to) {
  to.assign(e.pitch * e.setup.out_height * 3, 0xEE);
  const int bytes = p.bytes(), shift = p.bits > 8 ? 16 - p.bits : 0;
  for (int plane = 0; plane < 3; plane++)
    for (int y = 0; y < p.rows(plane); y++)
      for (int x = 0; x < p.columns(plane); x++) {
        const bool is_half = plane && p.chroma == cuvid::C420;
        const int step = is_half ? 2 : 1, inside = is_half ? kInside / 2 : kInside;
        const uint64_t row = (is_half ? 1 : plane) * e.setup.out_height + (uint64_t)(y + inside);
        uint8_t *at = to.data() + row * e.pitch + (uint64_t)(((x + inside) * step + (is_half && plane == 2)) * bytes);
        const uint8_t *from = p.planes[plane].data() + (y * p.columns(plane) + x) * bytes;
        if (bytes == 1) {
          *at = *from;
        } else {
          uint16_t sample;
          memcpy(&sample, from, 2);
          sample = (uint16_t)(sample << shift);
          memcpy(at, &sample, 2);
        }
      }
}

bool fits(const Engine &e, uint64_t width, uint64_t height, uint64_t n, uint64_t out_width, uint64_t out_height) {
  return width && height && width <= e.setup.max_width && height <= e.setup.max_height && n &&
         n <= e.setup.n_surfaces && out_width % 2 == 0 && out_height % 2 == 0 && out_width >= width &&
         out_height >= height;
}

}  // namespace

API int cuvidGetDecoderCaps(cuvid::Caps *c) {
  if (!has_context()) return 201;
  const char *text = getenv("PENSTOCK_EMULATED_NVDEC");
  const bool is_h264 = c->codec == cuvid::H264 && c->chroma == cuvid::C420 && c->bits_minus_8 == 0;
  const bool is_hevc = c->codec == cuvid::HEVC && (c->chroma == cuvid::C420 || c->chroma == cuvid::C444);
  const bool is_vp8 = c->codec == cuvid::VP8 && c->chroma == cuvid::C420 && c->bits_minus_8 == 0;
  const bool is_vp9 = c->codec == cuvid::VP9 && c->chroma == cuvid::C420;
  const bool is_known = is_h264 || is_hevc || is_vp8 || is_vp9;
  c->is_supported = ffmpeg_of_process() && !(text && !strcmp(text, "0")) && is_known;
  c->n_engines = 2, c->max_width = c->max_height = 4096, c->max_macroblocks = 65536;
  c->min_width = c->min_height = 32;
  return OK;
}
API int cuvidCreateDecoder(cuvid::Decoder *decoder, cuvid::Creation *c) {
  if (!has_context()) return 201;
  if (fails("create")) return OUT_OF_MEMORY;
  auto e = std::make_unique<Engine>();
  e->setup = *c, e->width = c->width, e->height = c->height;
  const bool is_surface = c->surface == (c->chroma == cuvid::C444) * 2 + (c->bits_minus_8 > 0);
  if (!is_surface || !fits(*e, c->width, c->height, c->n_surfaces, c->out_width, c->out_height) || !c->n_mapped)
    return INVALID_VALUE;
  e->surfaces.resize(c->n_surfaces);
  e->pitch = (c->max_width * (c->bits_minus_8 ? 2 : 1) + 511) / 512 * 512;
  e->mapped.resize(c->n_mapped);
  for (Mapped &m : e->mapped)
    if (driver<int (*)(uint64_t *, size_t)>("cuMemAlloc_v2")(&m.address, e->pitch * (c->max_height + 1) * 3))
      return OUT_OF_MEMORY;
  enter(*decoder = e.release());
  return OK;
}
API int cuvidDestroyDecoder(cuvid::Decoder decoder) {
  if (!has_context()) return 201;
  if (!leave(decoder)) return INVALID_HANDLE;
  std::unique_ptr<Engine> e((Engine *)decoder);
  int code = OK;
  for (Mapped &m : e->mapped) {
    if (m.is_used) code = INVALID_HANDLE;
    driver<int (*)(uint64_t)>("cuMemFree_v2")(m.address);
  }
  return code;
}
API int cuvidReconfigureDecoder(cuvid::Decoder decoder, cuvid::Reconfiguration *r) {
  if (!is_live(decoder)) return INVALID_HANDLE;
  Engine &e = *(Engine *)decoder;
  if (!fits(e, r->width, r->height, r->n_surfaces, r->out_width, r->out_height)) return INVALID_VALUE;
  e.width = r->width, e.height = r->height, e.setup.out_width = r->out_width, e.setup.out_height = r->out_height;
  for (Shared &s : e.surfaces) s.reset();
  return OK;
}
API int cuvidDecodePicture(cuvid::Decoder decoder, cuvid::PictureHead *head) {
  if (!has_context() || !is_live(decoder)) return INVALID_HANDLE;
  if (fails("decode")) return UNKNOWN;
  Engine &e = *(Engine *)decoder;
  const Shared &p = *(const Shared *)head->bytes;
  const bool is_kind = p->chroma == e.setup.chroma && p->bits == (int)e.setup.bits_minus_8 + 8 &&
                       p->width + kInside <= (int)e.width && p->height + kInside <= (int)e.height;
  if (!is_kind || head->index < 0 || head->index >= (int)e.surfaces.size()) return INVALID_VALUE;
  e.surfaces[(size_t)head->index] = p;
  return OK;
}
API int cuvidGetDecodeStatus(cuvid::Decoder decoder, int index, cuvid::StatusOf *s) {
  if (!is_live(decoder)) return INVALID_HANDLE;
  const Shared &p = ((Engine *)decoder)->surfaces.at((size_t)index);
  s->status = !p ? cuvid::INVALID : p->is_damaged || fails("status") ? cuvid::FAILED : cuvid::SUCCESS;
  return OK;
}
API int cuvidMapVideoFrame64(cuvid::Decoder decoder, int index, uint64_t *address, uint32_t *pitch, cuvid::Mapping *m) {
  if (!has_context() || !is_live(decoder)) return INVALID_HANDLE;
  if (fails("map")) return UNKNOWN;
  Engine &e = *(Engine *)decoder;
  const Shared p = e.surfaces.at((size_t)index);
  auto free = std::find_if(e.mapped.begin(), e.mapped.end(), [](const Mapped &x) { return !x.is_used; });
  if (!p || free == e.mapped.end()) return INVALID_VALUE;
  free->is_used = true, free->stream = m->stream;
  std::vector<uint8_t> bytes;
  lay_out(e, *p, bytes);
  *address = free->address, *pitch = (uint32_t)e.pitch;
  return driver<int (*)(uint64_t, const void *, size_t, void *)>("cuMemcpyHtoDAsync_v2")(free->address, bytes.data(),
                                                                                         bytes.size(), m->stream);
}
API int cuvidUnmapVideoFrame64(cuvid::Decoder decoder, uint64_t address) {
  if (!has_context() || !is_live(decoder)) return INVALID_HANDLE;
  Engine &e = *(Engine *)decoder;
  for (Mapped &m : e.mapped) {
    if (m.address != address || !m.is_used) continue;
    m.is_used = false;  // what is mapped next comes behind what the stream was asked for
    return driver<int (*)(uint64_t, unsigned char, size_t, void *)>("cuMemsetD8Async")(
        address, 0xDD, e.pitch * e.setup.out_height, m.stream);
  }
  return INVALID_VALUE;
}
API int cuvidCreateVideoParser(cuvid::Parser *parser, cuvid::ParserCreation *c) {
  if (!ffmpeg_of_process() || !c->on_sequence || !c->on_picture || !c->on_shown) return INVALID_VALUE;
  enter(*parser = new ParserObject(*c));
  return OK;
}
API int cuvidParseVideoData(cuvid::Parser parser, cuvid::Data *data) {
  if (!is_live(parser)) return INVALID_HANDLE;
  return ((ParserObject *)parser)->parse(*data) ? OK : UNKNOWN;
}
API int cuvidDestroyVideoParser(cuvid::Parser parser) {
  if (!leave(parser)) return INVALID_HANDLE;
  delete (ParserObject *)parser;
  return OK;
}
// How many decoders and parsers are alive.
API int emulated_video_live() {
  std::lock_guard<std::mutex> lock(state);
  return (int)live.size();
}
// Makes a call ("create", "decode", "map", "status") fail, after so many that don't.
API void emulated_video_fail(const char *call, int after) {
  std::lock_guard<std::mutex> lock(state);
  failing = call, failing_in = after;
}

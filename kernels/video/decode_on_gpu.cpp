// SPDX-License-Identifier: Apache-2.0
#include "video/decode_on_gpu.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/driver.h"
#include "core/kernel.h"
#include "video/colors.h"
#include "video/engines.h"
#include "video/frame_pixels.h"
#include "video/h264.h"
#include "video/runs.h"
#include "video/vpx.h"

namespace {

constexpr uint32_t kThreads = 128, kMostRows = 65535;
constexpr uint32_t kDelay = 2;  // pictures held back by the parser, so that the engine stays busy while one is read

// Use of a lane for a video. Later work on the batch's stream waits for the lane's work, even if the video is given up.
class Use {
 public:
  Use(VideoEngines &engines, const VideoBatch &batch, int codec, const StreamFormat &format)
      : lane(&engines.take(codec, format)), engines_(engines), batch_(batch) {
    driver.wait(lane->stream, (void *)batch.free, 0);
  }
  ~Use() {
    if (is_broken) lane->close(engines_.f);
    driver.record(lane->done, lane->stream);
    driver.wait((void *)batch_.stream, lane->done, 0);
    engines_.give_back(*lane);
  }
  Use(const Use &) = delete;

  Lane *const lane;
  bool is_broken = false;  // the decoder has failed and must not be reused

 private:
  VideoEngines &engines_;
  const VideoBatch &batch_;
};

// Decodes the wanted frames of one video. Fails for anything unexpected: then the CPU decodes it.
class Decoding {
 public:
  Decoding(const Tensor *out, const Tensor *in, const DecodeOnGpuArgs &a)
      : a_(a),
        batch_(*(const VideoBatch *)a.batch),
        engines_(*(VideoEngines *)batch_.engines),
        f_(engines_.f),
        index_(*(const VideoIndex *)a.index),
        file_{in->as<uint8_t>(), in->volume()},
        out_(out->as<uint8_t>()),
        n_(out->shape[0]),
        height_((int32_t)out->shape[1]),
        width_((int32_t)out->shape[2]) {}

  void run() {
    const int codec = codec_on_gpu(index_.codec);
    if (codec < 0) fail("video engines are not used for %s", index_.codec);
    find_wanted();
    if (has_units(index_)) sets_ = parameter_sets(index_);
    const PacketReader read = packets_in(file_, index_);
    runs_ = runs_of(asked_, index_, read, true);
    if (!runs_.empty()) format_ = format_of_stream(codec, read);
    const Current current(engines_.context());
    const cuvid::Caps caps = engines_.caps(codec, format_);
    if (!caps.is_supported || format_.matrix == 0 || (format_.chroma != cuvid::C420 && format_.chroma != cuvid::C444))
      fail("video engines don't decode this kind of %s", index_.codec);
    caps_ = &caps;
    Use use(engines_, batch_, codec, format_);
    use_ = &use;
    fill();
    for (const Run &run : runs_) decode(run, codec, read);
    if (n_shown_ < asked_.size()) fail("a frame is missing");
  }

 private:
  void find_wanted() {
    for (int64_t i = 0; i < n_; i++) {
      if (a_.frames[i] < 0) continue;
      if (a_.frames[i] >= (int64_t)index_.shown.size()) fail("[internal error] frame %d", a_.frames[i]);
      asked_.emplace_back(index_.shown[a_.frames[i]], (int32_t)i);
    }
    std::sort(asked_.begin(), asked_.end());
  }
  std::vector<std::pair<int32_t, int32_t>>::const_iterator first_of(int64_t packet) const {
    return std::lower_bound(asked_.begin(), asked_.end(), std::make_pair((int32_t)packet, INT32_MIN));
  }

  // The bytes of a packet for the parser, with start codes if the codec has units.
  const std::vector<uint8_t> &stream_of(int32_t i, const PacketReader &read, bool with_sets) {
    const Packet &p = index_.packets[i];
    Bytes bytes = read(i);
    if (!bytes.size && p.size) fail("a packet lies beyond the end of the file");
    stream_.clear();
    if (with_sets) stream_ = sets_;
    if (!index_.prefix.empty()) {
      whole_ = index_.prefix;
      whole_.insert(whole_.end(), bytes.data, bytes.data + bytes.size);
      bytes = {whole_.data(), (int64_t)whole_.size()};
    }
    append_packet(index_, bytes, stream_);
    return stream_;
  }

  StreamFormat format_of(int codec, Bytes begin) const {
    if (codec == cuvid::VP8) return read_vp8_format(begin);
    if (codec == cuvid::VP9) return read_vp9_format(begin);
    return read_stream_format(index_, begin);
  }

  // The format is the same in all runs: videos with different parameter sets are left to the CPU.
  StreamFormat format_of_stream(int codec, const PacketReader &read) {
    StreamFormat found;
    for (const Run &run : runs_) {
      const std::vector<uint8_t> &s = stream_of(run.begin, read, true);
      const StreamFormat f = format_of(codec, {s.data(), (int64_t)s.size()});
      if (&run != &runs_[0] && !(f == found)) fail("parameter sets that differ");
      found = f;
    }
    return found;
  }

  void decode(const Run &run, int codec, const PacketReader &read) {
    cuvid::ParserCreation c{};
    c.codec = codec, c.n_surfaces = 1, c.delay = kDelay, c.user = this;
    c.on_sequence = [](void *user, cuvid::Format *format) {
      int n = 0;
      return ((Decoding *)user)->guarded([&](Decoding &d) { n = d.on_sequence(*format); }) ? n : 0;
    };
    c.on_picture = [](void *user, cuvid::PictureHead *picture) {
      return (int)((Decoding *)user)->guarded([&](Decoding &d) { d.on_picture(*picture); });
    };
    c.on_shown = [](void *user, cuvid::Shown *shown) {
      return (int)(!shown || ((Decoding *)user)->guarded([&](Decoding &d) { d.on_shown(*shown); }));
    };
    struct ParserOf {
      const cuvid::Functions &f;
      cuvid::Parser parser = nullptr;
      ~ParserOf() {
        if (parser) f.destroy_parser(parser);
      }
    } own{f_};
    check_cuvid(f_.create_parser(&own.parser, &c), "making a parser");
    packets_.clear();
    n_pictures_ = 0;
    for (int32_t i = run.begin; i < run.end; i++) {
      const Packet &p = index_.packets[i];
      if (p.size == 0 || (i > run.begin && is_needless(run, i, codec, read))) continue;
      // The parser requires increasing times in presentation order and returns pictures as if they were.
      if (!packets_.emplace(p.pts, i).second) fail("two pictures of one time");
      const std::vector<uint8_t> &bytes = stream_of(i, read, i == run.begin);
      parse(own.parser, cuvid::HAS_TIME | cuvid::END_OF_PICTURE, bytes.data(), bytes.size(), p.pts);
    }
    parse(own.parser, cuvid::END_OF_STREAM, nullptr, 0, 0);
    if (n_pictures_ != packets_.size()) fail("%zu pictures came of %zu packets", n_pictures_, packets_.size());
    for (const int32_t i : unsure_) check_status(i);
    unsure_.clear();
  }

  // Whether an unwanted picture can be skipped: nothing refers to it, or it refers to pictures before the run's begin
  // (as leading pictures do, which are shown before the key picture that they follow).
  bool is_needless(const Run &run, int32_t i, int codec, const PacketReader &read) const {
    const auto wanted = first_of(i);
    if (wanted != asked_.end() && wanted->first == i) return false;
    const bool is_leading = index_.packets[i].pts < index_.packets[run.begin].pts;
    if (codec == cuvid::H264) return is_leading || !read_h264_packet(read(i), h264_length_size(index_)).is_reference;
    return codec == cuvid::HEVC && is_leading && is_skipped_leading(index_, read(i));
  }

  void parse(cuvid::Parser parser, uint64_t flags, const uint8_t *bytes, size_t size, int64_t time) {
    cuvid::Data data{flags, size, bytes, time};
    const int code = f_.parse(parser, &data);
    if (!error_.empty()) fail("%s", error_.c_str());
    check_cuvid(code, "parsing a video");
  }

  // Exceptions must not cross the parser.
  template <class F>
  bool guarded(F f) {
    if (!error_.empty()) return false;
    try {
      f(*this);
      return true;
    } catch (const std::exception &e) {
      error_ = *e.what() ? e.what() : "failed";
      return false;
    }
  }

  int on_sequence(const cuvid::Format &s) {
    if (s.shown.right - s.shown.left != index_.width || s.shown.bottom - s.shown.top != index_.height)
      fail("the stream has pictures of another size");
    if (s.chroma != format_.chroma || s.luma_bits_minus_8 + 8 != format_.bits ||
        s.chroma_bits_minus_8 + 8 != format_.bits)
      fail("the stream has pictures of another kind");
    if (s.width < caps_->min_width || s.height < caps_->min_height || s.width > caps_->max_width ||
        s.height > caps_->max_height || (uint64_t)s.width * s.height / 256 > caps_->max_macroblocks)
      fail("the GPU decodes no pictures of this size");
    left_ = s.shown.left, top_ = s.shown.top;
    unsure_.clear();
    return engines_.prepare(*use_->lane, s);
  }

  void on_picture(cuvid::PictureHead &picture) {
    const auto before = std::find(unsure_.begin(), unsure_.end(), picture.index);
    if (before != unsure_.end() && !picture.is_second_field) check_status(*before), unsure_.erase(before);
    use_->is_broken = true;
    check_cuvid(f_.decode(use_->lane->decoder, &picture), "decoding a picture");
    use_->is_broken = false;
    if (std::find(unsure_.begin(), unsure_.end(), picture.index) == unsure_.end()) unsure_.push_back(picture.index);
  }

  // A decoding error also shows in pictures that refer to the damaged one.
  void check_status(int index) {
    cuvid::StatusOf s{};
    if (f_.status(use_->lane->decoder, index, &s) == 0 && (s.status == cuvid::FAILED || s.status == cuvid::CONCEALED))
      fail("a picture is damaged");
  }

  void on_shown(const cuvid::Shown &shown) {
    n_pictures_++;
    const auto packet = packets_.find(shown.time);
    if (packet == packets_.end()) fail("a picture of a time that no packet has");
    const auto first = first_of(packet->second);
    if (first == asked_.end() || first->first != packet->second) return;
    cuvid::Mapping m{};
    m.is_progressive = shown.is_progressive, m.top_field_first = shown.top_field_first;
    m.second_field = shown.repeats + 1, m.unpaired_field = shown.repeats < 0;
    m.stream = use_->lane->stream;
    uint64_t picture = 0;
    uint32_t line = 0;
    check_cuvid(f_.map(use_->lane->decoder, shown.index, &picture, &line, &m), "reading a picture");
    // The surface is unmapped at once: later writes to it are ordered after the kernels in the lane's stream.
    try {
      for (auto it = first; it != asked_.end() && it->first == packet->second; ++it)
        convert(picture, line, it->second), n_shown_++;
    } catch (...) {
      f_.unmap(use_->lane->decoder, picture);
      throw;
    }
    check_cuvid(f_.unmap(use_->lane->decoder, picture), "giving a picture back");
  }

  // For outputs without frames of the video.
  void fill() {
    FramePixels p{};
    for (int64_t i = 0; i < n_; i++)
      if (a_.frames[i] < 0) launch(p, i);
  }

  void convert(uint64_t picture, uint32_t line, int64_t place) {
    FramePixels p{};
    const int64_t rows = use_->lane->height + (use_->lane->height & 1), bytes = format_.bits > 8 ? 2 : 1;
    const bool is_420 = format_.chroma == cuvid::C420;
    p.column_shift = p.row_shift = is_420, p.step = is_420 ? 2 : 1;
    const uint8_t *chroma = (const uint8_t *)picture + rows * line;
    p.planes[0] = (const uint8_t *)picture + top_ * (int64_t)line + left_ * bytes;
    p.planes[1] = chroma + (top_ >> is_420) * (int64_t)line + (left_ >> is_420) * p.step * bytes;
    p.planes[2] = is_420 ? p.planes[1] + bytes : p.planes[1] + rows * line;
    p.line = line;
    p.y = (int32_t)a_.y, p.x = (int32_t)a_.x;
    p.chroma_height = (index_.height + is_420) >> is_420, p.chroma_width = (index_.width + is_420) >> is_420;
    p.k = coefficients_of(format_.matrix, format_.is_full_range, format_.bits);
    p.bits = (int16_t)format_.bits, p.drop = (int16_t)(format_.bits > 8 ? 16 - format_.bits : 0);
    const bool is_known = format_.siting == ycbcr::CENTRE || format_.siting == ycbcr::TOP_LEFT;
    p.siting = is_known ? (int16_t)format_.siting : (int16_t)ycbcr::LEFT;
    p.as_ycbcr = (int16_t)(a_.as_ycbcr != 0);
    launch(p, place);
  }

  void launch(FramePixels &p, int64_t place) {
    if (!height_ || !width_) return;
    p.height = height_, p.width = width_;
    p.out = out_ + place * height_ * width_ * 3;
    memcpy(p.fill, a_.fill, sizeof p.fill);
    void *parameters[] = {&p};
    const uint32_t columns = ((uint32_t)width_ + kThreads * 4 - 1) / (kThreads * 4);
    void *kernel = (void *)(format_.bits > 8 ? batch_.pixels_16 : batch_.pixels_8);
    check_cuvid(driver.launch(kernel, columns, std::min((uint32_t)height_, kMostRows), 1, kThreads, 1, 1, 0,
                              use_->lane->stream, parameters, nullptr),
                "launching a kernel");
  }

  const DecodeOnGpuArgs &a_;
  const VideoBatch &batch_;
  VideoEngines &engines_;
  const cuvid::Functions &f_;
  const VideoIndex &index_;
  const Bytes file_;
  uint8_t *const out_;
  const int64_t n_;
  const int32_t height_, width_;
  std::vector<std::pair<int32_t, int32_t>> asked_;  // packet, frame of the output; sorted
  std::vector<Run> runs_;
  std::vector<uint8_t> sets_, stream_, whole_;
  StreamFormat format_;
  const cuvid::Caps *caps_ = nullptr;
  Use *use_ = nullptr;
  int32_t left_ = 0, top_ = 0;          // origin of the shown part in the coded picture
  std::vector<int32_t> unsure_;         // pictures whose decoding status was not checked yet
  std::map<int64_t, int32_t> packets_;  // of the run, by time
  size_t n_pictures_ = 0;               // shown pictures of the run
  size_t n_shown_ = 0;                  // converted frames
  std::string error_;                   // of a callback
};

void run(const Tensor *out, const Tensor *in, const DecodeOnGpuArgs &a, Scratch &) { Decoding(out, in, a).run(); }

}  // namespace

EXPORT_KERNEL(decode_on_gpu, DecodeOnGpuArgs, run)

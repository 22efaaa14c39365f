// SPDX-License-Identifier: Apache-2.0
#include "video/decoder.h"

#include <algorithm>
#include <list>
#include <memory>
#include <string>

#include "video/runs.h"
#include "video/wrapped.h"

namespace {

using namespace ffmpeg;

constexpr size_t kMostReordered = 16;  // by H.264
constexpr int kReordered = 2;          // by most encoders; also what single frames are decoded with

struct VideoDecoder : Decoder {
  // `n_reordered`: how many pictures may have to wait for one that is shown before them. `lender`: null, or a decoder
  // that fits; see clear_pictures.
  VideoDecoder(const Functions &functions, const VideoIndex &index, int n_reordered, const VideoDecoder *lender)
      : Decoder(functions, "video", index.codec, index.extradata, options(index, n_reordered)) {
    clear_pictures(lender ? lender->context : nullptr);
  }

  static std::vector<std::pair<const char *, int64_t>> options(const VideoIndex &index, int n_reordered) {
    // `runs_of` knows from where on pictures are correct. The decoder itself is stricter and would hold some back.
    std::vector<std::pair<const char *, int64_t>> found = {{"flags", kOutputCorrupt}};
    // H.264 streams need not tell how far pictures are out of order. A decoder that learns it too late drops some; one
    // that lets more wait than needed uses more memory than fits in the caches.
    if (!strcmp(index.codec, "h264")) found.emplace_back("has_b_frames", std::max(n_reordered, kReordered));
    return found;
  }
  bool fits(const VideoIndex &index) const { return codec == index.codec && extradata == index.extradata; }
};

constexpr size_t kKept = 4;  // per thread

// Decoders of videos before, whose memory those of the same codec and configuration use.
class Lenders {
 public:
  // Null if there is none.
  std::unique_ptr<VideoDecoder> take(const VideoIndex &index) {
    for (auto it = kept_.begin(); it != kept_.end(); ++it)
      if ((*it)->fits(index)) {
        std::unique_ptr<VideoDecoder> found = std::move(*it);
        kept_.erase(it);
        return found;
      }
    return nullptr;
  }
  void give_back(std::unique_ptr<VideoDecoder> decoder) {
    kept_.push_front(std::move(decoder));
    if (kept_.size() > kKept) kept_.pop_back();
  }

 private:
  std::list<std::unique_ptr<VideoDecoder>> kept_;
};

thread_local Lenders t_lenders;

// Gives each run a decoder that knows nothing of what was decoded before: what FFmpeg makes of a damaged picture may
// depend on it, also after avcodec_flush_buffers, and a damaged parameter set would stay for undamaged videos. Opening
// a decoder is brief. What isn't is new memory for its pictures, so a decoder of a run before lends it its own.
class RunDecoder {
 public:
  RunDecoder(const Functions &ff, const VideoIndex &index, int reordered)
      : ff_(ff), index_(index), reordered_(reordered), lender_(t_lenders.take(index)) {
    open();
  }
  VideoDecoder *operator->() { return own_.get(); }

  void begin_anew() {
    close();
    open();
  }
  // At the end. If decoding has failed, `lender_` is not kept.
  void give_back() {
    close();
    t_lenders.give_back(std::move(lender_));
  }

 private:
  void open() { own_ = std::make_unique<VideoDecoder>(ff_, index_, reordered_, lender_.get()); }
  void close() {
    if (lender_) return own_.reset();
    lender_ = std::move(own_);
    ff_.avcodec_flush_buffers(lender_->context);  // releases its pictures
  }

  const Functions &ff_;
  const VideoIndex &index_;
  const int reordered_;
  std::unique_ptr<VideoDecoder> lender_;
  std::unique_ptr<VideoDecoder> own_;  // destroyed before `lender_`
};

// The maximum number of pictures decoded before one that is shown before them.
int reordered_in(const std::vector<Run> &runs, const VideoIndex &index) {
  size_t most = 0;
  std::vector<int64_t> before;  // times of those decoded so far, sorted
  for (const Run &run : runs) {
    before.clear();
    for (int32_t i = run.begin; i < run.end; i++) {
      const auto place = std::upper_bound(before.begin(), before.end(), index.packets[i].pts);
      most = std::max(most, (size_t)(before.end() - place));
      before.insert(place, index.packets[i].pts);
    }
  }
  return (int)std::min(most, kMostReordered);
}

}  // namespace

void check_size(const VideoIndex &index, int32_t frame, const Picture &picture) {
  if (picture.width != index.width || picture.height != index.height)
    fail(
        "frame %d has %d x %d pixels (height x width), the video %d x %d; videos that change their size are not "
        "supported",
        frame, picture.height, picture.width, index.height, index.width);
}

PacketReader packets_in(Bytes file, const VideoIndex &index) {
  return unwrapping(index, [file, &index](int32_t i) -> Bytes {
    const Packet &p = index.packets[i];
    return file.has(p.offset, p.size) ? Bytes{file.data + p.offset, p.size} : Bytes{file.data, 0};
  });
}

PacketReader unwrapping(const VideoIndex &index, PacketReader read) {
  if (index.wrapping == 0) return read;
  return [&index, read, whole = std::make_shared<std::vector<uint8_t>>()](int32_t i) {
    const Bytes span = read(i);
    return span.size ? unwrap(span, index, i, *whole) : span;
  };
}

int64_t decode_frames(const PacketReader &read, const VideoIndex &index, const std::vector<int32_t> &wanted,
                      const std::function<void(int32_t, const Picture &)> &give) {
  if (wanted.empty()) return 0;
  const Functions *ff = functions();
  if (!ff) fail("[internal error] FFmpeg is not open");
  // Frames of each packet: an edit list may show a packet twice.
  std::vector<std::pair<int32_t, int32_t>> asked;  // packet, frame number
  for (int32_t i : wanted) asked.emplace_back(index.shown[i], i);
  std::sort(asked.begin(), asked.end());
  const std::vector<Run> runs = runs_of(asked, index, read, false);
  RunDecoder decoder(*ff, index, reordered_in(runs, index));
  int64_t decoded = 0, delivered = 0;
  size_t next = 0;
  const auto first_of = [&](int64_t packet) {
    return std::lower_bound(asked.begin(), asked.end(), std::make_pair((int32_t)packet, INT32_MIN));
  };
  std::vector<bool> is_done(asked.size());
  const auto receive = [&]() {
    for (;;) {
      const int status = ff->avcodec_receive_frame(decoder->context, decoder->frame);
      if (status == kTryAgain || status == kEndOfStream) return;
      if (status < 0) decoder->fail_with(status, "%s can't be decoded", index.codec);
      decoded++;
      Frame *f = decoder->frame;
      for (auto it = first_of(frame_pts(f)); it != asked.end() && it->first == frame_pts(f); ++it) {
        if (is_done[it - asked.begin()]) continue;
        is_done[it - asked.begin()] = true, delivered++;
        Picture picture{};
        picture.frame = f;
        for (int p = 0; p < 4; p++) picture.plane[p] = frame_plane(f, p), picture.line[p] = frame_line(f, p);
        picture.width = frame_width(f), picture.height = frame_height(f);
        picture.format = ff->av_get_pix_fmt_name(frame_format(f));
        ff->av_opt_get_int(decoder->context, "colorspace", 0, &picture.matrix);
        ff->av_opt_get_int(decoder->context, "color_range", 0, &picture.range);
        ff->av_opt_get_int(decoder->context, "chroma_sample_location", 0, &picture.siting);
        give(it->second, picture);
      }
      ff->av_frame_unref(f);
    }
  };
  for (const Run &run : runs) {
    if (&run != &runs.front()) decoder.begin_anew();
    for (int32_t i = run.begin; i < run.end; i++) {
      const Packet &p = index.packets[i];
      while (next < asked.size() && asked[next].first < i) next++;
      const bool is_wanted = next < asked.size() && asked[next].first == i;
      const Bytes bytes = read(i);
      if (!bytes.size && p.size)
        fail("frame %d lies beyond the end of the file (bytes %lld to %lld)", is_wanted ? asked[next].second : i,
             (long long)p.offset, (long long)(p.offset + p.size));
      if (p.size == 0) continue;
      decoder->fill_packet(index.prefix, bytes.data, bytes.size);
      packet_pts(decoder->packet) = i;
      packet_flags(decoder->packet) = p.is_key;
      // Nothing refers to such pictures, so they are skipped.
      ff->av_opt_set_int(decoder->context, "skip_frame", is_wanted ? kSkipNothing : kSkipUnreferenced, 0);
      int status = ff->avcodec_send_packet(decoder->context, decoder->packet);
      if (status == kTryAgain) {
        receive();
        status = ff->avcodec_send_packet(decoder->context, decoder->packet);
      }
      ff->av_packet_unref(decoder->packet);
      if (status < 0 && is_wanted)
        decoder->fail_with(status, "frame %d (%s) can't be decoded", asked[next].second, index.codec);
      receive();
    }
    ff->avcodec_send_packet(decoder->context, nullptr);  // flushes pictures that wait to be shown
    receive();
  }
  if (delivered < (int64_t)asked.size()) {
    const size_t missing = std::find(is_done.begin(), is_done.end(), false) - is_done.begin();
    fail("frame %d can't be decoded: the decoder gave no picture for it", asked[missing].second);
  }
  decoder.give_back();
  return decoded;
}

// SPDX-License-Identifier: Apache-2.0
// FLAC, Ogg (Vorbis, Opus), MP3, AIFF and all other formats of libsndfile.
#include <sndfile.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "audio/audio_file.h"
#include "audio/mpeg_length.h"
#include "core/first_bytes.h"
#include "core/kernel.h"

namespace {

// No format needs less than a byte for this many frames; beyond it the header is damaged.
constexpr int64_t kMostFramesPerByte = 8192;
constexpr int64_t kBlock = 4096;  // frames at a time
constexpr int64_t kTag = 128;     // bytes of an ID3v1 tag at a file's end

class Library : public AudioReader {
 public:
  explicit Library(AudioBytes file) : mpeg_(mpeg_length(file)) {
    file_ = {file.data + mpeg_.begin, file.size - mpeg_.begin};
    SF_VIRTUAL_IO io = {size, seek, read_bytes, nullptr, tell};
    sound_ = sf_open_virtual(&io, SFM_READ, &about_, this);
    if (!sound_)
      fail("not a sound that can be read (WAV, FLAC, Ogg (Vorbis, Opus), MP3, AIFF): %s",
           FirstBytes(file.data, file.size).text());
  }
  ~Library() override { sf_close(sound_); }
  Library(const Library &) = delete;

  const SF_INFO &about() const { return about_; }
  // -1 if only decoding the file can tell.
  int64_t frames() const { return mpeg_.is_untold ? mpeg_.samples : about_.frames; }

  // Decodes all that is left; returns the number of frames.
  int64_t count() {
    std::vector<float> unused(kBlock * about_.channels);
    int64_t n = 0, got;
    while ((got = sf_readf_float(sound_, unused.data(), kBlock)) > 0) n += got;
    return n;
  }

  // Seeking is exact if blocks carry sample numbers; otherwise everything before is decoded.
  void skip(int64_t frames) {
    if (!frames) return;
    if ((about_.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC && sf_seek(sound_, frames, SEEK_SET) == frames) return;
    std::vector<float> unused(kBlock * about_.channels);
    for (; frames > 0; frames -= kBlock) read(unused.data(), std::min(frames, kBlock));
  }

  void read(int16_t *out, int64_t n) override {
    if (is_real()) return read_real(out, n, 32767.0);
    check(sf_readf_short(sound_, out, n), n);
  }
  void read(int32_t *out, int64_t n) override {
    static_assert(sizeof(int) == 4);
    if (is_real()) return read_real(out, n, 2147483647.0);
    check(sf_readf_int(sound_, out, n), n);
  }
  void read(float *out, int64_t n) override { check(sf_readf_float(sound_, out, n), n); }

 private:
  // Whether the format has real numbers, for which libsndfile's integers are unscaled or wrap around.
  bool is_real() const {
    switch (about_.format & SF_FORMAT_SUBMASK) {
      case SF_FORMAT_PCM_S8:
      case SF_FORMAT_PCM_U8:
      case SF_FORMAT_PCM_16:
      case SF_FORMAT_PCM_24:
      case SF_FORMAT_PCM_32:
      case SF_FORMAT_ULAW:
      case SF_FORMAT_ALAW:
      case SF_FORMAT_IMA_ADPCM:
      case SF_FORMAT_MS_ADPCM:
      case SF_FORMAT_GSM610:
        return false;
      default:
        return true;
    }
  }
  template <class T>
  void read_real(T *out, int64_t n, double largest) {
    const int64_t channels = about_.channels;
    std::vector<float> block(kBlock * channels);
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t m = std::min(kBlock, n - i);
      read(block.data(), m);
      for (int64_t k = 0; k < m * channels; k++) out[i * channels + k] = saturate<T>(block[k] * largest);
    }
  }
  void check(int64_t got, int64_t wanted) {
    if (got != wanted)
      fail("damaged or truncated: its headers promise %lld frames, %lld of which could not be decoded",
           (long long)frames(), (long long)(wanted - std::max<int64_t>(got, 0)));
  }
  // libsndfile estimates the length of MP3 files that do not tell it, from the first frame's bit rate, and reads no
  // further than that. For those the file seems longer by as much as bit rates can differ.
  static sf_count_t size(void *self) {
    const Library &l = *(Library *)self;
    return l.mpeg_.is_untold ? 41 * l.file_.size + kTag : l.file_.size;
  }
  static sf_count_t tell(void *self) { return ((Library *)self)->at_; }
  static sf_count_t seek(sf_count_t offset, int whence, void *self) {
    Library &l = *(Library *)self;
    const int64_t end = size(self), from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? l.at_ : end;
    // Offsets come from the file, so sums must not overflow.
    if (offset < -from || offset > end - from) return -1;
    return l.at_ = from + offset;
  }
  static sf_count_t read_bytes(void *to, sf_count_t count, void *self) {
    Library &l = *(Library *)self;
    count = std::max<sf_count_t>(count, 0);
    const int64_t n = std::min<int64_t>(count, std::max<int64_t>(l.file_.size - l.at_, 0));
    if (n) std::memcpy(to, l.file_.data + l.at_, n);
    l.at_ += n;
    if (n || l.at_ == l.file_.size || l.at_ < size(self) - kTag) return n;
    std::memset(to, 0, count);  // no ID3v1 tag
    return count;
  }

  AudioBytes file_;
  const MpegLength mpeg_;
  int64_t at_ = 0;
  SF_INFO about_ = {};
  SNDFILE *sound_;
};

}  // namespace

AudioInfo peek_sound_library(AudioBytes file) {
  Library library(file);
  const SF_INFO &about = library.about();
  if (about.channels < 1 || about.channels > kMostChannels)
    fail("the sound has %d channels; 1 to %d are accepted", about.channels, kMostChannels);
  if (about.samplerate < 1) fail("the sound has a sampling rate of %d Hz", about.samplerate);
  if (about.frames < 0 || about.frames / kMostFramesPerByte > file.size)
    fail("damaged: the header promises %lld frames, the file has %lld bytes", (long long)about.frames,
         (long long)file.size);
  const int64_t frames = library.frames() < 0 ? library.count() : library.frames();
  return {frames, 0, (double)about.samplerate, about.channels, LIBRARY};
}

std::unique_ptr<AudioReader> open_sound_library(AudioBytes file, const AudioInfo &info, int64_t first) {
  auto library = std::make_unique<Library>(file);
  if (library->about().channels != info.channels || (library->frames() >= 0 && library->frames() != info.frames))
    fail("[internal error] the file is not the one whose header was read");
  library->skip(first);
  return library;
}

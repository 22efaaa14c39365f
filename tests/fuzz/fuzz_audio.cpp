// SPDX-License-Identifier: Apache-2.0
// Damages sounds and lets the decoder loose on them, under AddressSanitizer, and the parsers of the readers that use
// it. Built and run by fuzz_audio.py.
//
//   fuzz_audio sounds|sound_head|nemo_asr LIMIT SEED FILE...
//
// FFMPEG_LIBRARIES may name libavutil and libavcodec, separated by a colon; without them the sound of MP4 and AAC files
// is not decoded.
//
// Every input lies in memory of exactly its size. The output is filled with a pattern first: a sound that is reported
// as good must have been written completely, so it must come out the same over two different patterns.
#include <cmath>
#include <memory>
#include <string>

#include "audio/audio_file.h"
#include "audio/decode_audio.h"
#include "core/kernel.h"
#include "one_sample.h"
#include "read/nemo_asr.h"
#include "read/sound_head.h"

extern "C" int64_t ffmpeg_open(const char *util_path, const char *codec_path, char *error);
extern "C" int sound_head(Sample *sample, const void *args, char *error);
extern "C" int nemo_asr(Sample *sample, const void *args, char *error);

// Objects of URLs are left out of this program.
std::shared_ptr<Object> open_remote(const char *, Storage::Way) { fail("URLs are not read here"); }

namespace {

constexpr int64_t kMostSamples = 1 << 22;  // larger headers are the caller's to refuse

struct Counts {
  int64_t inputs = 0, headers = 0, sounds = 0, large = 0;
};

bool decodes(const Tensor &out, AudioBytes file, const DecodeAudioArgs &a, Scratch &scratch) {
  try {
    decode_window(out, file, a, scratch);
    return true;
  } catch (const std::exception &) {
    return false;
  }
}

// A part of the sound, as any type, at any rate.
void decode(AudioBytes file, const AudioInfo &info, Random &r, Scratch &scratch, Counts &counts) {
  if (info.encoding == NEEDS_FFMPEG) return;
  counts.headers++;
  if (info.frames < 0 || info.channels < 1 || !(info.rate > 0)) abort();
  static const double rates[] = {0, 0, 8000, 22050, 44100};
  const double wanted = rates[below(r, 5)], rate = wanted ? wanted : info.rate;
  const double length = rate == info.rate ? (double)info.frames : std::ceil(info.frames * rate / info.rate);
  if (length * info.channels > kMostSamples || (double)info.frames * info.channels > kMostSamples) {
    counts.large++;
    return;
  }
  const bool downmix = r() % 2;
  static const int dtypes[] = {FLOAT, INT16, INT32};
  Tensor out = {nullptr, {(int64_t)length, info.channels}, downmix ? 1 : 2, dtypes[below(r, 3)]};
  DecodeAudioArgs a{};
  a.frames = a.length = info.frames, a.offset = info.offset, a.channels = info.channels, a.encoding = info.encoding;
  a.rate = info.rate, a.out_rate = rate, a.downmix = downmix, a.lobes = 3 + (int32_t)below(r, 20);
  if (r() % 2 && length) {
    a.first_frame = (int64_t)below(r, (uint64_t)length);
    out.shape[0] = 1 + (int64_t)below(r, (uint64_t)length - a.first_frame);
    if (!downmix) {
      a.first_channel = (int64_t)below(r, info.channels);
      out.shape[1] = 1 + (int64_t)below(r, info.channels - a.first_channel);
    }
  }
  const int64_t n = out.volume() * item_size(out.dtype);
  std::unique_ptr<uint8_t[]> first(new uint8_t[n]), second(new uint8_t[n]);
  memset(first.get(), 0x00, n);
  out.data = first.get();
  if (!decodes(out, file, a, scratch)) return;
  memset(second.get(), 0xa7, n);
  // What the thread's scratch memory held before must not show either.
  for (int part = 0; part < Scratch::kParts; part++) memset(scratch.get(4096, part), 0x5c, 4096);
  out.data = second.get();
  if (!decodes(out, file, a, scratch) || memcmp(first.get(), second.get(), n)) {
    fprintf(stderr, "a sound of encoding %d was not written completely\n", info.encoding);
    abort();
  }
  counts.sounds++;
}

void try_sound(const File &file, Random &r, Scratch &scratch, Counts &counts) {
  std::unique_ptr<uint8_t[]> bytes(new uint8_t[file.size()]);  // exact size; no slack
  memcpy(bytes.get(), file.data(), file.size());
  AudioInfo info;
  try {
    // The beginning of a longer file.
    const int64_t there = (int64_t)below(r, file.size() + 1);
    std::unique_ptr<uint8_t[]> head(new uint8_t[there]);
    memcpy(head.get(), file.data(), there);
    info = peek_audio_head({head.get(), there}, (int64_t)file.size());
    if (info.frames < 0 || info.frames * wav_frame_bytes(info) > (int64_t)file.size()) abort();
  } catch (const std::exception &) {
  }
  try {
    info = peek_audio({bytes.get(), (int64_t)file.size()});
  } catch (const std::exception &) {
    return;
  }
  decode({bytes.get(), (int64_t)file.size()}, info, r, scratch, counts);
}

// As readers.file gives it to the decoder: of a long WAV or FLAC file the beginning. The rest is read when the file may
// have become another.
void try_sound_head(const File &file, Random &r, Scratch &scratch, Counts &counts) {
  Memory whole(file), changed(r() % 4 ? file : File(file.begin(), file.begin() + below(r, file.size() + 1)));
  const std::vector<Part> parts{{nullptr, 0}};
  Tensor given{};
  OneSample sample(whole, parts, &given, scratch);
  sample.is_near = r() % 4 == 0;
  const SoundHeadArgs args{(int64_t)below(r, 2 * file.size() + 1)};
  char error[kErrorSize];
  if (sound_head(&sample, &args, error)) return;
  const uint8_t *data = given.as<const uint8_t>();
  const bool has_rest = sample.begun >= 0;
  const int64_t size = given.volume(), there = has_rest ? sample.begun : size;
  if (size != (int64_t)file.size() || there > size || memcmp(data, file.data(), there)) abort();
  AudioInfo info;
  try {
    info = has_rest ? peek_audio_head({data, there}, size) : peek_audio({data, size});
  } catch (const std::exception &) {
    if (has_rest) abort();  // whoever left it has read the header
    return;
  }
  decode({data, size, has_rest ? &changed : nullptr}, info, r, scratch, counts);
}

// An entry of a manifest: a part of the sound, or all of it.
void try_nemo_asr(const File &file, Random &r, Scratch &scratch, Counts &counts) {
  Memory memory(file);
  const bool is_part = r() % 2;
  const std::vector<Part> parts{{is_part ? nullptr : memory.data(), is_part ? 0 : (int64_t)file.size()}};
  static const double seconds[] = {-1, 0, 0.001, 0.01, 1, 1e300}, rates[] = {0, 0, 8000, 22050};
  const double offset = seconds[below(r, 6)], duration = seconds[below(r, 6)];
  const int64_t text_end = 4;
  static const int dtypes[] = {FLOAT, INT16, INT32};
  const int32_t dtype = dtypes[below(r, 3)], downmix = (int32_t)below(r, 2), lobes = 3 + (int32_t)below(r, 20);
  const NemoAsrArgs args{
      &offset, &duration, (const uint8_t *)"text", &text_end, rates[below(r, 4)], dtype, downmix, lobes, 1, 1, 1};
  float rate = 0;
  int64_t number = 0;
  Tensor out[4] = {{nullptr, {}, downmix ? 1 : 2, dtype}, {&rate, {1}, 1, FLOAT}, {}, {&number, {1}, 1, INT64}};
  OneSample sample(memory, parts, out, scratch, kMostSamples);
  char error[kErrorSize];
  if (nemo_asr(&sample, &args, error)) return;
  for (const Tensor &t : out) read_all(t);
  counts.sounds++;
}

}  // namespace

int main(int argc, char **argv) {
  if (const char *names = getenv("FFMPEG_LIBRARIES")) {
    const std::string both = names;
    char error[kErrorSize];
    if (!ffmpeg_open(both.substr(0, both.find(':')).c_str(), both.substr(both.find(':') + 1).c_str(), error)) {
      fprintf(stderr, "%s\n", error);
      return 1;
    }
  }
  const std::string name = argc > 1 ? argv[1] : "";
  const auto try_one = name == "sound_head" ? try_sound_head : name == "nemo_asr" ? try_nemo_asr : try_sound;
  Scratch scratch;
  Counts counts;
  const int failed = fuzz(argc, argv, [&](const File &file, Random &r) {
    counts.inputs++;
    try_one(file, r, scratch, counts);
  });
  if (failed) return failed;
  printf("%s: %lld inputs, %lld with a readable header (%lld of them too large), %lld decoded\n", name.c_str(),
         (long long)counts.inputs, (long long)counts.headers, (long long)counts.large, (long long)counts.sounds);
  return 0;
}

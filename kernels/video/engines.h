// SPDX-License-Identifier: Apache-2.0
// The GPU's video decoders: a number of lanes, each with a stream and, once it was needed, a decoder that is kept for
// the videos to come.
#pragma once
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "video/cuvid.h"
#include "video/parameter_sets.h"

struct Lane {
  void *stream = nullptr, *done = nullptr;  // a CUstream, and a CUevent behind its work
  cuvid::Decoder decoder = nullptr;
  int32_t codec = -1, chroma = 0, bits = 0;
  uint32_t n_surfaces = 0, max_width = 0, max_height = 0;
  uint32_t width = 0, height = 0;  // as coded, of the video at hand
  bool is_busy = false;

  void close(const cuvid::Functions &f);
};

// Makes a context of CUDA the thread's own for a while.
class Current {
 public:
  explicit Current(void *context);
  ~Current();
  Current(const Current &) = delete;
};

class VideoEngines {
 public:
  VideoEngines(const cuvid::Functions &functions, void *context, std::vector<Lane> lanes)
      : f(functions), context_(context), lanes_(std::move(lanes)) {}
  ~VideoEngines();

  // What can be decoded; `is_supported` is 0 for what can't. This and what follows is called with the context.
  cuvid::Caps caps(int codec, const StreamFormat &format);
  // A lane for one video, if possible with a decoder of its kind.
  Lane &take(int codec, const StreamFormat &format);
  void give_back(Lane &lane);
  // Makes the lane's decoder fit, when the sequence is known. Returns how many surfaces it has. Fails if the GPU can't.
  int prepare(Lane &lane, const cuvid::Format &format);

  const cuvid::Functions f;
  void *context() const { return context_; }
  int64_t n_created = 0, n_reconfigured = 0;

 private:
  void *const context_;
  std::mutex mutex_, creating_;
  std::vector<Lane> lanes_;
  std::map<std::tuple<int, int, int>, cuvid::Caps> caps_;
};

// The number of a codec; -1 if decoders of GPUs are not used for it.
int codec_on_gpu(const char *name);

// Fails with what a function of the decoder returned, if it is an error.
void check_cuvid(int code, const char *doing);

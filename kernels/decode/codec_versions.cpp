// SPDX-License-Identifier: Apache-2.0
// Which codecs the library was linked with, for `penstock --version` and `penstock doctor`.
#include <openjpeg.h>
#include <png.h>
#include <sndfile.h>
#include <tiffio.h>
#include <webp/decode.h>
#include <zstd.h>

#include <string>

#include "core/export.h"
#include "decode/libjpeg.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

namespace {

std::string dotted(int version) {  // WebP's: a byte for each part
  return std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 255) + "." + std::to_string(version & 255);
}

// Finds the number in "Name, Version 1.2.3\n..." or "name-1.2.3": from the first digit to the end of its word.
std::string number_in(const std::string &text) {
  size_t begin = text.find_first_of("0123456789");
  if (begin == std::string::npos) return text;
  return text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin);
}

std::string all() {
  return std::string("libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION)) + "\nlibpng " + png_get_libpng_ver(nullptr) +
         "\nlibtiff " + number_in(TIFFGetVersion()) + "\nlibwebp " + dotted(WebPGetDecoderVersion()) + "\nOpenJPEG " +
         opj_version() + "\nlibsndfile " + number_in(sf_version_string()) + "\nzstd " + ZSTD_versionString();
}

}  // namespace

// One line per codec: its name and version. The text is never freed.
EXPORT const char *codec_versions() {
  static const std::string text = all();
  return text.c_str();
}
EXPORT_SHORT(codec_versions)

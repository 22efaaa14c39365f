// SPDX-License-Identifier: Apache-2.0
// The supported codecs, by FFmpeg's names and by those that containers use.
#pragma once
#include <cstdint>
#include <string_view>

// Names are static; "" stands for an unknown codec.
const char *codec_at(int64_t i);  // by index in the list; null beyond the last
const char *codec_named(std::string_view name);
const char *codec_of_fourcc(uint32_t type);  // four letters, the first in the upper byte
const char *codec_of_matroska(std::string_view codec_id);
const char *codec_of_object(uint32_t object_type);       // MPEG-4 systems (ISO/IEC 14496-1, mp4ra.org)
const char *codec_of_stream_type(uint32_t stream_type);  // MPEG-2 systems (ISO/IEC 13818-1)

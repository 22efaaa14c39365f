// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

bool is_url(const char *name);  // of a supported kind
// Whether a URL names an object in a bucket, which is read by a signed URL.
bool is_in_bucket(const char *name);

// A URL without user, password and query, which may contain a signature: "s3://" and "bucket/key".
struct UrlParts {
  std::string_view scheme, rest;
};
UrlParts parts_without_secrets(std::string_view url);
std::string without_secrets(const std::string &url);

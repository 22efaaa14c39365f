// SPDX-License-Identifier: Apache-2.0
#include "read/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace {

// Characters that stop the fast skipping of an unwanted value.
struct Structure {
  bool is[256] = {};
  constexpr Structure() {
    for (char c : {'"', '[', ']', '{', '}', '\0'}) is[(uint8_t)c] = true;
  }
};
constexpr Structure kStructure;

constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr uint64_t kWholePowers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Parses the digits at the beginning of 8 bytes without branches on their number, which would be mispredicted: returns
// their value and moves `p` past them. After 8 digits there may be more.
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
inline uint64_t up_to_8_digits(const char *&p) {
  uint64_t bytes;
  memcpy(&bytes, p, 8);
  const uint64_t values = bytes - 0x3030303030303030;
  // For the first byte that is no digit, one of the two sets the highest bit.
  const uint64_t others = ((bytes + 0x4646464646464646) | values) & 0x8080808080808080;
  const int n = others ? __builtin_ctzll(others) / 8 : 8;
  if (!n) return 0;
  p += n;
  uint64_t v = values << (64 - 8 * n);  // leading zeros
  v = v * 10 + (v >> 8);                // pairs, in every second byte
  return ((v & 0xff000000ff) * (100 + (1000000ull << 32)) + (v >> 16 & 0xff000000ff) * (1 + (10000ull << 32))) >> 32;
}
#else
inline uint64_t up_to_8_digits(const char *&p) {
  uint64_t value = 0;
  for (int i = 0; i < 8 && is_digit(*p); i++) value = value * 10 + (uint64_t)(*p++ - '0');
  return value;
}
#endif

void push_utf8(std::string &out, uint32_t c) {
  if (c < 0x80) {
    out += (char)c;
  } else if (c < 0x800) {
    out += (char)(0xc0 | c >> 6);
    out += (char)(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += (char)(0xe0 | c >> 12);
    out += (char)(0x80 | (c >> 6 & 0x3f));
    out += (char)(0x80 | (c & 0x3f));
  } else {
    out += (char)(0xf0 | c >> 18);
    out += (char)(0x80 | (c >> 12 & 0x3f));
    out += (char)(0x80 | (c >> 6 & 0x3f));
    out += (char)(0x80 | (c & 0x3f));
  }
}

}  // namespace

Json::Json(Object &input)
    : input_(input),
      chunk_(std::min(kChunk, std::max<int64_t>(input.length(), 1))),
      buffer_(chunk_ + kLongestNumber + 8) {  // digits are read 8 at a time
  at_ = end_ = buffer_.data();
  refill();
  if (end_ - at_ >= 3 && !memcmp(at_, "\xef\xbb\xbf", 3)) at_ += 3;  // a byte order mark
}

bool Json::refill() {
  if (at_end_) return false;
  const int64_t left = end_ - at_;
  begins_ += at_ - buffer_.data();
  memmove(buffer_.data(), at_, left);
  const int64_t got = input_.read(begins_ + left, chunk_, buffer_.data() + left);
  at_end_ = got < chunk_;
  at_ = buffer_.data();
  end_ = at_ + left + got;
  buffer_[left + got] = 0;
  return got > 0;
}

void Json::fail_here(const char *what) {
  fail_scan("byte %lld%s%s: %s", (long long)offset(), place.empty() ? "" : ", in ", place.c_str(), what);
}

bool Json::next_value(bool &first) {
  char c = peek();
  if (c == ']') {
    at_++;
    return false;
  }
  if (!first) {
    if (c != ',') fail_here("',' or ']' is expected");
    at_++;
    c = peek();
  }
  if (!c) fail_here("the file ends within an array");
  first = false;
  return true;
}

bool Json::next_key(bool &first, std::string &key) {
  char c = peek();
  if (c == '}') {
    at_++;
    return false;
  }
  if (!first) {
    if (c != ',') fail_here("',' or '}' is expected");
    at_++;
    c = peek();
  }
  if (c != '"') fail_here("a key in quotation marks is expected");
  first = false;
  string(key);
  if (peek() != ':') fail_here("':' is expected");
  at_++;
  return true;
}

void Json::open(char bracket, const char *what) {
  if (peek() != bracket) fail_here(what);
  at_++;
}

void Json::string(std::string &out) {
  out.clear();
  if (peek() != '"') fail_here("a text in quotation marks is expected");
  at_++;
  auto hex = [&] {
    need(4);
    uint32_t value = 0;
    for (int i = 0; i < 4; i++, at_++) {
      const char c = *at_, lower = c | 0x20;
      if (at_ == end_ || !(is_digit(c) || (lower >= 'a' && lower <= 'f')))
        fail_here("four hexadecimal digits are expected");
      value = value << 4 | (is_digit(c) ? c - '0' : lower - 'a' + 10);
    }
    return value;
  };
  while (true) {
    const char *begin = at_;
    while (at_ < end_ && *at_ != '"' && *at_ != '\\') at_++;
    out.append(begin, at_);
    if (at_ == end_) {
      if (!refill()) fail_here("the file ends within a text");
      continue;
    }
    if (*at_++ == '"') return;
    need(1);
    const char c = at_ < end_ ? *at_++ : 0;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out += c;
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'u': {
        uint32_t code = hex();
        if (code >= 0xd800 && code < 0xdc00) {
          need(2);
          if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') fail_here("half of a pair of surrogates is missing");
          at_ += 2;
          const uint32_t low = hex();
          if (low < 0xdc00 || low > 0xdfff) fail_here("half of a pair of surrogates is missing");
          code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        push_utf8(out, code);
        break;
      }
      default:
        fail_here("no character can be escaped like that");
    }
  }
}

int64_t Json::integer(const char *what, int64_t least, int64_t most) {
  peek();
  need(kLongestNumber);
  const bool negative = at_ < end_ && *at_ == '-';
  const char *begin = at_ + negative, *p = begin;
  int64_t value = 0;
  while (p - begin < 18 && is_digit(*p)) value = value * 10 + (*p++ - '0');
  if (negative) value = -value;
  if (p == begin || is_digit(*p) || *p == '.' || *p == 'e' || *p == 'E' || value < least || value > most) {
    char text[160];
    snprintf(text, sizeof text, "%s must be an integer from %lld to %lld", what, (long long)least, (long long)most);
    fail_here(text);
  }
  at_ = p;
  return value;
}

double Json::number() {
  peek();
  need(kLongestNumber);
  const char *begin = at_, *p = begin + (at_ < end_ && *at_ == '-');
  const char *first = p;
  uint64_t digits = up_to_8_digits(p);
  while (is_digit(*p)) digits = digits * 10 + (uint64_t)(*p++ - '0');
  bool ok = p > first;
  int64_t n = p - first, decimals = 0;  // up to 19 digits are exact
  if (*p == '.') {
    const char *dot = ++p;
    const uint64_t more = up_to_8_digits(p);
    digits = digits * kWholePowers[p - dot] + more;
    while (is_digit(*p)) digits = digits * 10 + (uint64_t)(*p++ - '0');
    ok = ok && p > dot;
    decimals = p - dot, n += decimals;
  }
  if (*p == 'e' || *p == 'E') {
    p++;
    if (*p == '-' || *p == '+') p++;
    const char *exponent = p;
    while (is_digit(*p)) p++;
    ok = ok && p > exponent;
    n = 99;  // use the general path
  }
  if (!ok || p - begin >= kLongestNumber) fail_here("a number is expected");
  at_ = p;
  // Both are exact up to 2^53 and 10^22, so one division rounds correctly.
  if (n <= 19 && digits <= 1ull << 53) {
    const double value = decimals ? (double)digits / kPowers[decimals] : (double)digits;
    return *begin == '-' ? -value : value;
  }
  double value = 0;
  const auto result = std::from_chars(begin, p, value);
  if (result.ec == std::errc::result_out_of_range || !std::isfinite(value)) fail_here("the number is out of range");
  return value;
}

int64_t Json::numbers(Column &floats) {
  constexpr int kAtOnce = 32;
  float some[kAtOnce];
  int64_t n = 0;
  for (bool first = true; next_value(first); n++) {
    if (n && n % kAtOnce == 0) floats.append(some, sizeof some);
    // The usual form: up to 7 digits, a point, up to 7 digits, a comma. `number` handles all others.
    if (end_ - at_ >= 32) {
      const char *p = at_, *begin = p;
      uint64_t digits = up_to_8_digits(p);
      const int64_t whole = p - begin;
      int64_t decimals = 0;
      if (*p == '.') {
        const char *dot = ++p;
        const uint64_t more = up_to_8_digits(p);
        decimals = p - dot, digits = digits * kWholePowers[decimals] + more;
        if (!decimals) decimals = 9;
      }
      if (whole > 0 && whole < 8 && decimals < 8 && (*p == ',' || *p == ']')) {
        some[n % kAtOnce] = (float)((double)digits / kPowers[decimals]);
        at_ = p;
        continue;
      }
    }
    some[n % kAtOnce] = (float)number();
  }
  if (n) floats.append(some, ((n - 1) % kAtOnce + 1) * (int64_t)sizeof(float));
  return n;
}

void Json::skip_string() {
  while (true) {
    while (at_ < end_ && *at_ != '"' && *at_ != '\\') at_++;
    if (at_ < end_) {
      if (*at_++ == '"') return;
      need(1);
      if (at_ < end_) {
        at_++;
        continue;
      }
    }
    if (!refill()) fail_here("the file ends within a text");
  }
}

void Json::skip() {
  char open[kDeepest];
  int depth = 0;
  const char first = peek();
  if (!first || first == ',' || first == ':' || first == ']' || first == '}') fail_here("a value is expected");
  if (first != '"' && first != '[' && first != '{') {  // a number or a word
    while (true) {
      while (at_ < end_ && (is_digit(*at_) || (*at_ >= 'a' && *at_ <= 'z') || (*at_ >= 'A' && *at_ <= 'Z') ||
                            *at_ == '-' || *at_ == '+' || *at_ == '.'))
        at_++;
      if (at_ < end_ || !refill()) break;
    }
    const char after = peek();
    if (after != ',' && after != ']' && after != '}') fail_here("this is no value");
    return;
  }
  do {
    while (!kStructure.is[(uint8_t)*at_]) at_++;
    switch (*at_) {
      case '"':
        at_++;
        skip_string();
        break;
      case '[':
      case '{':
        if (depth == kDeepest) fail_here("arrays and objects are nested more than 500 deep");
        open[depth++] = *at_++;
        break;
      case ']':
      case '}':
        if (!depth || open[depth - 1] != (*at_ == ']' ? '[' : '{')) fail_here("a bracket closes what was not opened");
        depth--, at_++;
        break;
      default:
        if (at_ < end_) fail_here("a byte of value 0 is no JSON");
        if (!refill()) fail_here("the file ends within an array or object");
    }
  } while (depth);
}

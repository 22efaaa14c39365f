// SPDX-License-Identifier: Apache-2.0
#include "read/http_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

static std::string encoded(const std::string &path) {
  static const char hex[] = "0123456789ABCDEF", reserved[] = "\"<>\\^`{|}";
  std::string out;
  out.reserve(path.size());
  for (const unsigned char c : path) {
    const bool is_alphanumeric = (c | 0x20u) - 'a' < 26u || c - (unsigned)'0' < 10u;
    if (is_alphanumeric || (c > 0x20 && c < 0x7f && !strchr(reserved, c))) {
      out += (char)c;
    } else {
      out += '%', out += hex[c >> 4], out += hex[c & 15];
    }
  }
  return out;
}

// Returns false for URLs that the general client must request.
bool HttpClient::parse(const std::string &with_token, HttpUrl *url) {
  const size_t line = std::min(with_token.find('\n'), with_token.size());
  const std::string text = with_token.substr(0, line);
  if (line < with_token.size()) url->token = with_token.substr(line + 1);
  const bool has_tls = !text.compare(0, 8, "https://");
  if (!has_tls && text.compare(0, 7, "http://")) return false;
  const size_t begin = has_tls ? 8 : 7, path = std::min(text.find_first_of("/?#", begin), text.size());
  url->server = text.substr(0, path);
  if (url->server.find_first_of("@[") != std::string::npos) return false;
  const size_t colon = std::min(url->server.find(':', begin), path);
  url->host = url->server.substr(begin, colon - begin);
  url->port = colon < path ? url->server.substr(colon + 1) : has_tls ? "443" : "80";
  url->path = encoded(text.substr(path, text.find('#', path) - path));
  url->tls = has_tls ? tls_of(url->server) : nullptr;
  return (url->tls || !has_tls) && !url->host.empty() && !url->path.empty() && url->path[0] == '/';
}

// Null if there is no TLS with this server.
const Tls *HttpClient::tls_of(const std::string &server) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!tls_) tls_ = std::make_unique<Tls>();
  return tls_->is_available() && !without_tls_.count(server) ? tls_.get() : nullptr;
}

HttpClient::Connection HttpClient::take(const HttpUrl &url) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto &all = kept_[url.server];
  if (all.empty()) return {HttpSocket(), 0};
  Connection last = std::move(all.back());
  all.pop_back();
  return last;
}

void HttpClient::keep(const HttpUrl &url, Connection connection) {
  std::lock_guard<std::mutex> lock(mutex_);
  kept_[url.server].push_back(std::move(connection));
}

thread_local std::vector<HttpClient::Asked> HttpClient::asked_;

bool HttpClient::ask_ahead(const std::string &text, int64_t offset, int64_t length) {
  HttpUrl url;
  if (!parse(text, &url)) return false;
  Connection kept = take(url);
  if (!kept.socket.is_open()) return false;
  const RemoteRequest request(text, offset, length, nullptr, "");
  HttpExchange e(
      limits_, url, request, nullptr, [](const void *) { return false; }, nullptr);
  e.socket = std::move(kept.socket);
  try {
    e.send();
  } catch (const HttpExchange::Lost &) {
    return false;
  }
  asked_.push_back({this, text, offset, length, {std::move(e.socket), kept.head}, e.sent_ns()});
  return true;
}

void HttpClient::drop_asked() { asked_.clear(); }  // on an open connection, an answer would be the next request's

bool HttpClient::was_asked(const RemoteRequest &r, const std::string &url, Asked *found) {
  if (!r.unless.empty()) return false;
  for (auto a = asked_.begin(); a != asked_.end(); ++a) {
    if (a->client != this || a->offset != r.offset || a->length != r.length || a->url != url) continue;
    *found = std::move(*a);
    asked_.erase(a);
    return true;
  }
  return false;
}

// Returns false if the server had closed the kept connection meanwhile.
bool HttpClient::begin(HttpExchange &e, const RemoteRequest &request, const std::string &url, bool may_be_kept) {
  Asked asked{};
  const bool was_asked_ahead = may_be_kept && was_asked(request, url, &asked);
  Connection kept{HttpSocket(), 0};
  if (may_be_kept) kept = was_asked_ahead ? std::move(asked.connection) : take(e.url);
  e.socket = std::move(kept.socket), e.was_kept = e.socket.is_open();
  try {
    if (e.was_kept)
      e.expect(kept.head);
    else
      e.connect();
    if (was_asked_ahead)
      e.was_sent(asked.sent_ns);
    else
      e.send();
    do e.receive(0);
    while (!e.is_done && !e.is_silent());
  } catch (const HttpExchange::Lost &) {
    if (e.was_kept && !e.has_begun()) return false;
    throw;
  }
  return true;
}

// Runs until one exchange is done. If one fails, the other continues.
void HttpClient::race(HttpExchange &first, HttpExchange &second) {
  HttpExchange *left[] = {&first, &second};
  int n = 2;
  const auto attempt = [&](auto step) {
    try {
      step();
    } catch (const HttpExchange::Lost &) {
      if (!--n) throw;
      return false;
    } catch (const HttpExchange::Busy &) {
      if (!--n) throw;
      return false;
    }
    return true;
  };
  if (!attempt([&] { second.connect(), second.send(); })) left[1] = nullptr;
  while (!first.is_done && !second.is_done) {
    pollfd p[2];
    bool must_wait = true;
    for (int i = 0; i < 2; i++) {
      p[i] = {left[i] ? left[i]->socket.fd() : -1, POLLIN, 0};
      must_wait &= !left[i] || !left[i]->socket.has_buffered();
    }
    if (must_wait) poll(p, 2, (int)(kLookNs / 1000000));
    for (int i = 0; i < 2 && !first.is_done; i++)  // without an event, checks whether to keep waiting
      if (left[i] && !attempt([&] { left[i]->receive(MSG_DONTWAIT); })) left[i] = nullptr;
  }
}

bool HttpClient::carry_out(RemoteRequest &request, const std::string &text, bool (*is_unwanted)(const void *),
                           const void *of, int *hedged) {
  HttpUrl url;
  if (!parse(text, &url)) return false;
  const auto finish = [&](HttpExchange &e) {
    e.hand_over(request);
    if (e.head.is_kept) keep(url, {std::move(e.socket), e.head_size});
  };
  try {
    for (const bool may_be_kept : {true, false}) {
      HttpExchange first(limits_, url, request, request.to, is_unwanted, of);
      if (!begin(first, request, text, may_be_kept)) continue;
      if (!first.is_done) {
        HttpExchange second(limits_, url, request, nullptr, is_unwanted, of);
        ++*hedged;
        race(first, second);
        finish(first.is_done ? first : second);
      } else {
        finish(first);
      }
      return true;
    }
    return false;
  } catch (const HttpExchange::NotForUs &) {
    return false;
  } catch (const HttpExchange::NoTls &) {
    std::lock_guard<std::mutex> lock(mutex_);
    without_tls_.insert(url.server);
    return false;
  } catch (const HttpExchange::Busy &busy) {
    request.state = RemoteRequest::kFailed, request.why = kServerBusy;
    request.error = "the server answers " + busy.status;
    return true;
  } catch (const HttpExchange::Lost &lost) {
    request.state = RemoteRequest::kFailed, request.why = kNotReachable, request.error = lost.why;
    return true;
  }
}

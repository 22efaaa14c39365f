// SPDX-License-Identifier: Apache-2.0
#include "read/http_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

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

HttpClient::~HttpClient() {
  for (auto &host : kept_)
    for (const Connection &connection : host.second) close(connection.fd);
}

bool HttpClient::parse(const std::string &name, HttpUrl *url) {
  if (name.compare(0, 7, "http://")) return false;
  const size_t path = std::min(name.find_first_of("/?#", 7), name.size());
  url->server = name.substr(7, path - 7);
  if (url->server.find_first_of("@[") != std::string::npos) return false;
  const size_t colon = url->server.find(':');
  url->host = url->server.substr(0, colon);
  url->port = colon == std::string::npos ? "80" : url->server.substr(colon + 1);
  url->path = encoded(name.substr(path, name.find('#', path) - path));
  return !url->host.empty() && !url->path.empty() && url->path[0] == '/';
}

HttpClient::Connection HttpClient::take(const HttpUrl &url) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto &all = kept_[url.server];
  if (all.empty()) return {-1, 0};
  const Connection last = all.back();
  all.pop_back();
  return last;
}

void HttpClient::keep(const HttpUrl &url, Connection connection) {
  std::lock_guard<std::mutex> lock(mutex_);
  kept_[url.server].push_back(connection);
}

thread_local std::vector<HttpClient::Asked> HttpClient::asked_;

bool HttpClient::ask_ahead(const char *name, int64_t offset, int64_t length) {
  HttpUrl url;
  if (!parse(name, &url)) return false;
  const Connection kept = take(url);
  if (kept.fd < 0) return false;
  const RemoteRequest request(name, offset, length, nullptr, "");
  HttpExchange e(
      limits_, url, request, nullptr, [](const void *) { return false; }, nullptr);
  e.fd = kept.fd;
  try {
    e.send();
  } catch (const HttpExchange::Lost &) {
    return false;
  }
  e.fd = -1;
  asked_.push_back({this, name, offset, length, kept, e.sent_ns()});
  return true;
}

void HttpClient::drop_asked() {
  for (const Asked &a : asked_) close(a.connection.fd);  // its answer would be taken for the next request's
  asked_.clear();
}

bool HttpClient::was_asked(const RemoteRequest &r, Asked *found) {
  if (!r.unless.empty()) return false;
  for (auto a = asked_.begin(); a != asked_.end(); ++a) {
    if (a->client != this || a->offset != r.offset || a->length != r.length || a->name != r.name) continue;
    *found = std::move(*a);
    asked_.erase(a);
    return true;
  }
  return false;
}

// Returns false if the server had closed the kept connection meanwhile.
bool HttpClient::begin(HttpExchange &e, const RemoteRequest &request, bool may_be_kept) {
  Asked asked;
  const bool was_asked_ahead = may_be_kept && was_asked(request, &asked);
  const Connection kept = was_asked_ahead ? asked.connection : may_be_kept ? take(e.url) : Connection{-1, 0};
  e.fd = kept.fd, e.was_kept = kept.fd >= 0;
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
    for (int i = 0; i < 2; i++) p[i] = {left[i] ? left[i]->fd : -1, POLLIN, 0};
    poll(p, 2, (int)(kLookNs / 1000000));
    for (int i = 0; i < 2 && !first.is_done; i++)  // without an event, checks whether to keep waiting
      if (left[i] && !attempt([&] { left[i]->receive(MSG_DONTWAIT); })) left[i] = nullptr;
  }
}

bool HttpClient::carry_out(RemoteRequest &request, bool (*is_unwanted)(const void *), const void *of, int *hedged) {
  HttpUrl url;
  if (!parse(request.name, &url)) return false;
  const auto finish = [&](HttpExchange &e) {
    e.hand_over(request);
    if (e.head.is_kept) keep(url, {e.fd, e.head_size}), e.fd = -1;
  };
  try {
    for (const bool may_be_kept : {true, false}) {
      HttpExchange first(limits_, url, request, request.to, is_unwanted, of);
      if (!begin(first, request, may_be_kept)) continue;
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
  } catch (const HttpExchange::Busy &busy) {
    request.state = RemoteRequest::kFailed, request.why = kServerBusy;
    request.error = "the server answers " + busy.status;
    return true;
  } catch (const HttpExchange::Lost &lost) {
    request.state = RemoteRequest::kFailed, request.why = kNotReachable, request.error = lost.why;
    return true;
  }
}

// SPDX-License-Identifier: Apache-2.0
#include "read/tls.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>

// The functions of OpenSSL that are used, with their types of the manual; pointers to its structures are opaque.
#define OPENSSL_FUNCTIONS(F)                                               \
  F(OpenSSL_version_num, unsigned long, ())                                \
  F(ERR_clear_error, void, ())                                             \
  F(TLS_client_method, const void *, ())                                   \
  F(SSL_CTX_new, void *, (const void *method))                             \
  F(SSL_CTX_free, void, (void *))                                          \
  F(SSL_CTX_ctrl, long, (void *, int command, long, void *))               \
  F(SSL_CTX_set_default_read_buffer_len, void, (void *, size_t))           \
  F(SSL_CTX_set_default_verify_paths, int, (void *))                       \
  F(SSL_CTX_set_verify, void, (void *, int mode, void *callback))          \
  F(SSL_new, void *, (void *context))                                      \
  F(SSL_free, void, (void *))                                              \
  F(SSL_ctrl, long, (void *, int command, long, void *))                   \
  F(SSL_set_bio, void, (void *, void *reading, void *writing))             \
  F(SSL_set_connect_state, void, (void *))                                 \
  F(SSL_set_alpn_protos, int, (void *, const char *, unsigned))            \
  F(SSL_set1_host, int, (void *, const char *))                            \
  F(SSL_get0_param, void *, (void *))                                      \
  F(X509_VERIFY_PARAM_set1_ip_asc, int, (void *, const char *))            \
  F(SSL_do_handshake, int, (void *))                                       \
  F(SSL_read, int, (void *, void *, int))                                  \
  F(SSL_write, int, (void *, const void *, int))                           \
  F(SSL_has_pending, int, (const void *))                                  \
  F(SSL_get_error, int, (const void *, int result))                        \
  F(BIO_get_new_index, int, ())                                            \
  F(BIO_meth_new, void *, (int type, const char *name))                    \
  F(BIO_meth_set_read, int, (void *, int (*)(void *, char *, int)))        \
  F(BIO_meth_set_write, int, (void *, int (*)(void *, const char *, int))) \
  F(BIO_meth_set_ctrl, int, (void *, long (*)(void *, int, long, void *))) \
  F(BIO_new, void *, (const void *method))                                 \
  F(BIO_set_data, void, (void *, void *))                                  \
  F(BIO_get_data, void *, (void *))                                        \
  F(BIO_set_init, void, (void *, int))                                     \
  F(BIO_set_flags, void, (void *, int))                                    \
  F(BIO_clear_flags, void, (void *, int))

// Constants of OpenSSL's headers.
enum {
  kSetReadAhead = 41,      // SSL_CTRL_SET_READ_AHEAD
  kSetHostName = 55,       // SSL_CTRL_SET_TLSEXT_HOSTNAME
  kSetLeastVersion = 123,  // SSL_CTRL_SET_MIN_PROTO_VERSION
  kTls12 = 0x0303,         // TLS1_2_VERSION
  kVerifyPeer = 1,         // SSL_VERIFY_PEER
  kErrorSsl = 1,           // SSL_ERROR_*
  kErrorWantRead = 2,
  kErrorWantWrite = 3,
  kErrorSystem = 5,
  kErrorZeroReturn = 6,
  kSourceSink = 0x0400,  // BIO_TYPE_SOURCE_SINK
  kFlush = 11,           // BIO_CTRL_FLUSH
  kRetryRead = 0x09,     // BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY
  kRetryWrite = 0x0a,    // BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY
  kRetryFlags = 0x0f     // BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY
};
static constexpr size_t kReadBuffer = 64 << 10;  // several records (of up to 16 KB) per call of recv

struct OpenSsl {
#define DECLARE(name, result, arguments) result(*name) arguments = nullptr;
  OPENSSL_FUNCTIONS(DECLARE)
#undef DECLARE
  void *socket = nullptr;  // BIO_METHOD; null if the library can't be used

  OpenSsl() {
    void *library = nullptr;
    for (const char *name : {"libssl.so.3", "libssl.so.1.1"})
      if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
#define LOAD(name, result, arguments) \
  if (!(name = reinterpret_cast<result(*) arguments>(dlsym(library, #name)))) return;
    OPENSSL_FUNCTIONS(LOAD)
#undef LOAD
    if (OpenSSL_version_num() < 0x10101000ul) return;
    void *const method = BIO_meth_new(BIO_get_new_index() | kSourceSink, "socket");
    if (!method) return;
    BIO_meth_set_read(method, TlsSession::read_socket);
    BIO_meth_set_write(method, TlsSession::write_socket);
    BIO_meth_set_ctrl(method, TlsSession::control);
    socket = method;
  }
  static const OpenSsl &get() {
    static const OpenSsl library;
    return library;
  }
};

Tls::Tls() {
  const OpenSsl &o = OpenSsl::get();
  void *const c = o.socket ? o.SSL_CTX_new(o.TLS_client_method()) : nullptr;
  if (!c) return;
  if (o.SSL_CTX_set_default_verify_paths(c)) {
    o.SSL_CTX_ctrl(c, kSetLeastVersion, kTls12, nullptr);
    o.SSL_CTX_ctrl(c, kSetReadAhead, 1, nullptr);
    o.SSL_CTX_set_default_read_buffer_len(c, kReadBuffer);
    o.SSL_CTX_set_verify(c, kVerifyPeer, nullptr);
    context_ = c;
  } else {
    o.SSL_CTX_free(c);
  }
  o.ERR_clear_error();
}

Tls::~Tls() {
  if (context_) OpenSsl::get().SSL_CTX_free(context_);
}

TlsSession::TlsSession(const Tls &tls, int fd, const std::string &host) : fd_(fd) {
  const OpenSsl &o = OpenSsl::get();
  ssl_ = o.SSL_new(tls.context_);
  void *const bio = ssl_ ? o.BIO_new(o.socket) : nullptr;
  if (!bio) {
    if (ssl_) o.SSL_free(ssl_);
    throw std::bad_alloc();
  }
  o.BIO_set_data(bio, this);
  o.BIO_set_init(bio, 1);
  o.SSL_set_bio(ssl_, bio, bio);  // `ssl_` owns it now
  o.SSL_set_connect_state(ssl_);
  o.SSL_set_alpn_protos(ssl_, "\x08http/1.1", 9);
  in6_addr address;
  bool is_named;
  if (inet_pton(AF_INET, host.c_str(), &address) == 1) {
    is_named = o.X509_VERIFY_PARAM_set1_ip_asc(o.SSL_get0_param(ssl_), host.c_str());
  } else {
    o.SSL_ctrl(ssl_, kSetHostName, 0, const_cast<char *>(host.c_str()));
    is_named = o.SSL_set1_host(ssl_, host.c_str());
  }
  if (!is_named) {  // the certificate would not be compared with the host's name
    o.SSL_free(ssl_);
    throw std::bad_alloc();
  }
}

TlsSession::~TlsSession() { OpenSsl::get().SSL_free(ssl_); }

int TlsSession::read_socket(void *bio, char *data, int size) {
  const OpenSsl &o = OpenSsl::get();
  const auto *session = static_cast<const TlsSession *>(o.BIO_get_data(bio));
  o.BIO_clear_flags(bio, kRetryFlags);
  const ssize_t n = recv(session->fd_, data, (size_t)size, session->flags_);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) o.BIO_set_flags(bio, kRetryRead);
  return (int)n;
}

int TlsSession::write_socket(void *bio, const char *data, int size) {
  const OpenSsl &o = OpenSsl::get();
  o.BIO_clear_flags(bio, kRetryFlags);
  const ssize_t n = ::send(static_cast<const TlsSession *>(o.BIO_get_data(bio))->fd_, data, (size_t)size, MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) o.BIO_set_flags(bio, kRetryWrite);
  return (int)n;
}

long TlsSession::control(void *, int command, long, void *) { return command == kFlush; }

TlsSession::Handshake TlsSession::shake_hands() {
  const OpenSsl &o = OpenSsl::get();
  o.ERR_clear_error();
  const int result = o.SSL_do_handshake(ssl_);
  if (result == 1) return kDone;
  const int error = o.SSL_get_error(ssl_, result);
  o.ERR_clear_error();
  return error == kErrorWantRead || error == kErrorWantWrite ? kAgain : error == kErrorSsl ? kRefused : kLost;
}

// What a call of OpenSSL that did not succeed means for a socket.
ssize_t TlsSession::failed(int result) {
  const OpenSsl &o = OpenSsl::get();
  const int why = errno, error = o.SSL_get_error(ssl_, result);
  o.ERR_clear_error();
  if (error == kErrorZeroReturn || (error == kErrorSystem && !result)) return 0;
  errno = error == kErrorWantRead || error == kErrorWantWrite ? EAGAIN : error == kErrorSystem ? why : EPROTO;
  return -1;
}

ssize_t TlsSession::send(const char *data, size_t size) {
  const OpenSsl &o = OpenSsl::get();
  o.ERR_clear_error();
  const int n = o.SSL_write(ssl_, data, (int)std::min<size_t>(size, INT_MAX));
  return n > 0 ? n : failed(n);
}

ssize_t TlsSession::receive(const iovec *parts, size_t n, int flags) {
  const OpenSsl &o = OpenSsl::get();
  const bool for_all = flags & MSG_WAITALL;
  flags_ = flags & ~MSG_WAITALL;
  ssize_t done = 0;
  for (size_t i = 0; i < n; i++) {
    for (size_t at = 0; at < parts[i].iov_len;) {
      if (done && !for_all && !o.SSL_has_pending(ssl_)) return done;
      o.ERR_clear_error();
      const int got =
          o.SSL_read(ssl_, (char *)parts[i].iov_base + at, (int)std::min<size_t>(parts[i].iov_len - at, INT_MAX));
      if (got <= 0) {
        const ssize_t result = failed(got);
        return done ? done : result;
      }
      at += (size_t)got, done += got;
    }
  }
  return done;
}

bool TlsSession::has_buffered() const { return OpenSsl::get().SSL_has_pending(ssl_); }

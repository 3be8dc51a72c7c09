#include "tls/socket_bio.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace slurmlet::tls {
namespace {

SocketLink& link_of(BIO* bio) { return *static_cast<SocketLink*>(BIO_get_data(bio)); }

template <typename Call>
int attempt(SocketLink& link, const Call& call) {
  ssize_t n = -1;
  do {
    n = call();
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
    link.error_number = errno;
  }
  return static_cast<int>(n);
}

int read_socket(BIO* bio, char* into, int size) {
  SocketLink& link = link_of(bio);
  BIO_clear_retry_flags(bio);
  if (link.allowance == 0) {
    link.is_overdrawn = true;
    return -1;
  }
  const std::size_t wanted = std::min(static_cast<std::size_t>(size), link.allowance);
  const int n = attempt(link, [&] { return ::recv(link.socket, into, wanted, 0); });
  if (n > 0) {
    link.allowance -= static_cast<std::size_t>(n);
  } else if (n == 0) {
    link.is_at_end = true;
  } else if (link.error_number == 0) {
    BIO_set_retry_read(bio);
  }
  return n;
}

int write_socket(BIO* bio, const char* bytes, int size) {
  SocketLink& link = link_of(bio);
  BIO_clear_retry_flags(bio);
  const int n = attempt(link, [&] {
    return ::send(link.socket, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  });
  if (n < 0 && link.error_number == 0) {
    BIO_set_retry_write(bio);
  }
  return n;
}

long control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  switch (command) {
    case BIO_CTRL_FLUSH:
      return 1;
    case BIO_CTRL_EOF:
      return link_of(bio).is_at_end ? 1 : 0;
    default:
      return 0;
  }
}

struct Method {
  BIO_METHOD* value = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "slurmlet socket");
  Method() {
    if (value != nullptr) {
      BIO_meth_set_read(value, read_socket);
      BIO_meth_set_write(value, write_socket);
      BIO_meth_set_ctrl(value, control);
    }
  }
  ~Method() { BIO_meth_free(value); }
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
};

}  // namespace

BioPtr make_socket_bio(SocketLink& link) {
  static const Method method;  // a table of functions, for all of them
  BioPtr bio{method.value == nullptr ? nullptr : BIO_new(method.value)};
  if (bio) {
    BIO_set_data(bio.get(), &link);
    BIO_set_init(bio.get(), 1);
  }
  return bio;
}

}  // namespace slurmlet::tls

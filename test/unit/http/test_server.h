#pragma once

// A real HTTPS/1.1 server on loopback for tests: one thread per connection, responses written by
// the test's handler on that thread.

#include <openssl/ssl.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "tls/openssl_ptr.h"
#include "tls/test_certificates.h"

namespace slurmlet::http {

// A thing that happens once, on which other threads wait (for 10 s at most, then false).
class Event {
 public:
  void set();
  bool wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

// A listening socket on a free loopback port.
UniqueFd listen_on_loopback(int& port);

struct SeenRequest {
  std::string method;
  std::string path;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string client_name;  // common name of the client's certificate
  std::string server_name;  // SNI
  int connection = 0;       // counted from 1
};

class Exchange {
 public:
  Exchange(SSL* ssl, SeenRequest request) : ssl_(ssl), request_(std::move(request)) {}
  const SeenRequest& request() const { return request_; }
  void respond(int status, const std::string& body, const std::string& more_headers = "");
  void start_chunked(int status);
  bool chunk(std::string_view data);
  void end_chunks() { write("0\r\n\r\n"); }
  bool write(std::string_view bytes);
  // Returns when the client has closed the connection.
  void wait_for_client_to_close();
  // The connection is closed when the handler returns, orderly or without TLS close.
  void close() { open_ = false; }
  void drop() { open_ = orderly_ = false; }
  bool open() const { return open_; }
  bool orderly() const { return orderly_; }

 private:
  SSL* ssl_;
  SeenRequest request_;
  bool open_ = true;
  bool orderly_ = true;
};

struct ServerSpec {
  tls::Issued certificate;
  std::string client_ca = {};  // asks for and requires a client certificate of this CA
  int max_version = 0;         // 0 = newest
};

class TestServer {
 public:
  using Handler = std::function<void(Exchange&)>;
  TestServer(const ServerSpec& spec, Handler handler);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  int port() const { return port_; }
  std::string url(const std::string& host = "localhost") const {
    return "https://" + host + ":" + std::to_string(port_);
  }
  int connections() const { return accepted_; }
  std::vector<SeenRequest> requests() const;
  // Waits until so many connections have been closed since the start; false after 10 s.
  bool wait_closed(int count);

 private:
  void accept_loop();
  void serve(int fd, int number);
  bool read_request(SSL* ssl, std::string& buffer, SeenRequest& request);

  Handler handler_;
  tls::ContextPtr context_;
  int port_ = 0;
  UniqueFd listener_;
  std::atomic<int> accepted_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int closed_ = 0;
  std::vector<SeenRequest> requests_;
  std::list<UniqueFd> fds_;
  std::list<std::thread> workers_;
  std::thread acceptor_;
};

}  // namespace slurmlet::http

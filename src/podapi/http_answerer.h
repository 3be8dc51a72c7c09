#pragma once

// HTTP/1.1 without sockets: the text of a request in, the text of the answer out. The one place
// that knows cpp-httplib (https://github.com/yhirose/cpp-httplib), used for its parser and writer
// only: its own accept loop reads headers without a limit (up to 0.19), polls an idle connection a
// hundred times a second, and cannot be stopped while a client dawdles.
//
// Every answer ends the connection. Thread-safe if the handler is. Constructing one sets SIGPIPE to
// "ignore" for the process (cpp-httplib does).

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "podapi/routes.h"

namespace slurmlet::podapi {

class HttpAnswerer {
 public:
  using Handler = std::function<Response(const Request&)>;

  explicit HttpAnswerer(Handler handler);
  ~HttpAnswerer();
  HttpAnswerer(const HttpAnswerer&) = delete;
  HttpAnswerer& operator=(const HttpAnswerer&) = delete;

  // `head` is the request up to the empty line; only its first line counts, as no header changes
  // what these routes answer. "" if there is nothing to say to it.
  std::string answer(std::string_view head) const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace slurmlet::podapi

#pragma once

// List and watch of one resource without its type: the state machine behind Watch<T> (api.h), after
// https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes.
//
//   list ──► open ──► streaming ──► (ended) ──► open again from the last resourceVersion
//    ▲                                │
//    └── 410 Gone, garbage, a resourceVersion the server does not take ◄┘
//
// A list is asked for whole: usually it is short, and then the API server has it in memory, while a
// page makes older ones read etcd. Fresh::kAny lets it answer from there without asking etcd how
// fresh that is (resourceVersion=0; it ignores a limit then). One that is too long for us is read
// in pages, one a step, as few objects at a time as fit. What does not fit alone is left out by
// name and looked at again later.
//
// Not thread-safe: one owner thread, that of the http::Client.

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/delay.h"
#include "base/result.h"
#include "http/client.h"
#include "kube/line_splitter.h"
#include "kube/rest_call.h"

namespace slurmlet::kube {

// "NAMESPACE/NAME" of an object, or what there is of it.
std::string object_name(const nlohmann::json& object);

// Gets the objects. False from page() and changed(): this is not what was expected; list again.
class ObjectSink {
 public:
  enum class Change { kAdded, kModified, kDeleted };
  virtual ~ObjectSink() = default;
  // Discards the pages of a list so far.
  virtual void begin_list() = 0;
  virtual bool page(const nlohmann::json& items) = 0;
  // An object of the list that is too large, by its name.
  virtual void unreadable(std::string name) = 0;
  // The list is complete. Whether every object was readable.
  virtual bool end_list() = 0;
  virtual bool changed(Change change, const nlohmann::json& object) = 0;
};

class ListWatch {
 public:
  // Of one object as JSON: etcd takes 1.5 MiB, and a byte may become six ("<" is written \u003c).
  static constexpr std::size_t kMaxObjectBytes = std::size_t{10} << 20;
  // The first page of a list that is too long; then half, or twice, of the one before.
  static constexpr int kFirstLimit = 16;
  static constexpr int kMostLimit = 256;
  // The server sends a bookmark about once a minute; where it is missed, somebody between us and it
  // forgot the connection. Counted from when they are taken, by an owner that steps anyway.
  static constexpr Duration kSilence = std::chrono::seconds{90};
  // After this many consecutive silent streams the connection is not to blame.
  static constexpr int kSilentStreams = 3;
  // The server may leave a watch in its queue for 15 s before it rejects it.
  static constexpr Duration kHeaderTimeout = std::chrono::seconds{20};
  // A stream that ends sooner is a failure, and the next one backs off.
  static constexpr Duration kShortLife = std::chrono::seconds{5};
  // kLatest: an object that a list lacks does not exist, and position() follows the server's
  // bookmarks. kAny: a list may be some seconds old, and bookmarks wait for the owner's next step.
  enum class Fresh { kLatest, kAny };

  // `path` is the collection, e.g. "/api/v1/pods"; `selector` "fieldSelector=…" or
  // "labelSelector=…".
  ListWatch(http::Client& client, std::string path, const std::string& selector, Fresh fresh,
            CallOptions options, Random random);

  SteadyTime step(Now now, ObjectSink& sink);
  void rest();
  void restart();
  void credential_replaced(SteadyTime now);
  const std::string& position() const { return resource_version_; }
  void watch_from(const std::string& resource_version);
  const std::optional<Error>& last_error() const { return error_; }

 private:
  enum class Line { kFine, kListAgain, kClosed };  // kClosed: the stream was ended by what it said
  // A watch, from its request to its end.
  struct Open {
    std::unique_ptr<http::Stream> stream;
    SteadyTime since, expires_at;  // when the server is to end it
    SteadyTime heard_at;           // when it last gave something
    bool connected = false;        // its status was 200
    std::string rejection = {};    // body of another status
    LineSplitter splitter{kMaxObjectBytes};
  };
  // A list that is too long.
  struct Paging {
    std::string token = {};  // of the next page; "" = the beginning
    int limit = 0;           // objects of a page; 0 = all
  };

  void list(SteadyTime now, ObjectSink& sink);
  http::Request list_request() const;
  // Nothing: it is too long.
  std::optional<Result<nlohmann::json>> get_page(const http::Request& request);
  void take_page(SteadyTime now, const nlohmann::json& page, bool names_only, ObjectSink& sink);
  void list_failed(SteadyTime now, const Error& error);
  void start_watch(SteadyTime now);
  void read(SteadyTime now, ObjectSink& sink);
  void read_rejection(SteadyTime now);
  bool take_lines(SteadyTime now, ObjectSink& sink);
  Line take_line(SteadyTime now, const std::string& line, ObjectSink& sink);
  void take_error(SteadyTime now, const Error& error);
  void stream_ended(SteadyTime now);
  void fell_silent(SteadyTime now);
  void count(int status) const;
  // Closes the watch and goes on after `delay`: with a list, or where the watch stopped.
  void resume_after(SteadyTime now, Duration delay);
  void list_after(SteadyTime now, Duration delay);
  SteadyTime wake_time() const;

  http::Client& client_;
  const std::string path_;
  const std::string query_;  // "?" and the selector
  const Fresh fresh_;
  CallOptions options_;
  Random random_;
  Backoff backoff_;

  std::string resource_version_;  // "" = list first
  Paging paging_;
  SteadyTime relist_at_ = kNever;  // at what could not be read
  std::optional<Open> open_;
  SteadyTime due_{};  // of the next list or watch, while none is open
  int silent_ = 0;    // watches that fell silent since one gave something
  std::optional<Error> error_;
};

}  // namespace slurmlet::kube

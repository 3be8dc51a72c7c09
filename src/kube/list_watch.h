#pragma once

// List and watch of one resource without its type: the state machine behind Watch<T> (api.h), after
// https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes.
//
//   list ──► open ──► streaming ──► (ended) ──► open again from the last resourceVersion
//    ▲                                │
//    └── 410 Gone, garbage, a resourceVersion the server does not take ◄┘
//
// Not thread-safe: one owner thread, that of the http::Client.

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/result.h"
#include "http/client.h"
#include "kube/line_splitter.h"
#include "kube/rest_call.h"

namespace slurmlet::kube {

// Gets the objects. False: this is not what was expected; list again.
class ObjectSink {
 public:
  enum class Change { kAdded, kModified, kDeleted };
  virtual ~ObjectSink() = default;
  virtual bool replaced(const nlohmann::json& items) = 0;
  virtual bool changed(Change change, const nlohmann::json& object) = 0;
};

class ListWatch {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{8} << 20;
  // The server sends a bookmark about once a minute: five missed ones mean that somebody between us
  // and it forgot the connection.
  static constexpr Duration kSilence = std::chrono::minutes{5};
  static constexpr Duration kHeaderTimeout = std::chrono::seconds{10};
  // A stream that lived longer is resumed at once, a shorter one with back-off.
  static constexpr Duration kShortLife = std::chrono::seconds{5};
  // 410 comes to all nodes at the same moment (a compaction, a restored etcd).
  static constexpr Duration kRelistSpread = std::chrono::seconds{5};

  // `path` is the collection, e.g. "/api/v1/pods".
  ListWatch(http::Client& client, std::string path, const std::string& field_selector,
            CallOptions options, Random random);

  SteadyTime step(Now now, ObjectSink& sink);
  const std::optional<Error>& last_error() const { return error_; }

 private:
  enum class Line { kFine, kListAgain, kClosed };  // kClosed: the stream was ended by what it said

  void list(SteadyTime now, ObjectSink& sink);
  void open(SteadyTime now);
  void read(SteadyTime now, ObjectSink& sink);
  void read_refusal(SteadyTime now);
  bool take_lines(SteadyTime now, ObjectSink& sink);
  Line take_line(SteadyTime now, const std::string& line, ObjectSink& sink);
  void take_error(SteadyTime now, const Error& error);
  void stream_ended(SteadyTime now);
  void fell_silent(SteadyTime now);
  void count(int status) const;
  // Closes the stream and goes on after `delay`: with a list, or where the watch stopped.
  void resume_after(SteadyTime now, Duration delay);
  void list_after(SteadyTime now, Duration delay);
  SteadyTime wake_time() const;

  http::Client& client_;
  const std::string path_;
  const std::string query_;  // "?fieldSelector=…"
  CallOptions options_;
  Random random_;
  Backoff backoff_;
  LineSplitter splitter_{kMaxLineBytes};

  std::string resource_version_;  // "" = list first
  std::unique_ptr<http::Stream> stream_;
  bool connected_ = false;  // the stream's status was 200
  bool spoke_ = false;      // the stream gave something
  std::string refusal_;     // body of a status other than 200
  SteadyTime due_{};        // of the next list or open, without a stream
  SteadyTime opened_at_{};
  SteadyTime heard_at_{};  // when the stream last gave something
  std::optional<Error> error_;
};

}  // namespace slurmlet::kube

#include "kube/list_watch.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/text.h"
#include "kube/json_read.h"
#include "kube/status_error.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

// The server and we do not count a watch's life from the same moment.
constexpr Duration kExpiryMargin = std::chrono::seconds{15};
constexpr std::size_t kMaxRejectionBytes = std::size_t{64} << 10;
// The client ends a stream without headers at kHeaderTimeout; this covers an error body that never
// ends, and backs up the former.
constexpr Duration kRejectionTimeout = ListWatch::kHeaderTimeout + std::chrono::seconds{5};

std::string resource_version_of(const json& object) {
  return string_at(member(object, "metadata"), "resourceVersion");
}

// As the API server writes it, once a minute a watch. Read when the owner steps anyway; written
// otherwise it costs a step.
constexpr const char* kBookmark = R"({"type":"BOOKMARK")";

constexpr const char* kNamesOnly =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json;q=0.9";

// Answers after which the same resourceVersion would always be rejected. Not a time-out: a load
// balancer reports that of a slow server.
bool needs_list(Code code) {
  return code == Code::kGone || code == Code::kInvalid || code == Code::kNotFound;
}

}  // namespace

std::string object_name(const json& object) {
  const json& metadata = member(object, "metadata");
  return string_at(metadata, "namespace") + "/" + string_at(metadata, "name");
}

ListWatch::ListWatch(http::Client& client, std::string path, const std::string& selector,
                     Fresh fresh, CallOptions options, Random random)
    : client_(client),
      path_(std::move(path)),
      query_("?" + selector),
      fresh_(fresh),
      options_(std::move(options)),
      random_(std::move(random)),
      backoff_(Delay::kWatchRetry, random_) {}

SteadyTime ListWatch::step(Now now, ObjectSink& sink) {
  if (open_) {
    read(now.steady, sink);
  }
  if (!open_ && now.steady >= wake_time()) {
    if (resource_version_.empty()) {
      list(now.steady, sink);
    } else {
      start_watch(now.steady);
    }
  }
  return wake_time();
}

SteadyTime ListWatch::wake_time() const {
  if (!open_) {
    return options_.pace == nullptr ? due_ : std::max(due_, options_.pace->not_before());
  }
  return open_->connected ? std::min(relist_at_, open_->heard_at + kSilence)
                          : open_->since + kRejectionTimeout;
}

void ListWatch::rest() {
  if (open_) {
    resume_after({}, Duration::zero());
  }
}

void ListWatch::restart() {
  list_after({}, Duration::zero());
  error_.reset();
  client_.close_idle_connections();  // the list must not wait for one that is dead
}

void ListWatch::watch_from(const std::string& resource_version) {
  if (resource_version_.empty()) {
    resource_version_ = resource_version;
  }
}

void ListWatch::credential_replaced(SteadyTime now) {
  if (!open_ && error_ && error_->code == Code::kDenied) {
    due_ = std::min(due_, now + delay(Delay::kCredentialReplaced, random_));
  }
}

// --- listing

http::Request ListWatch::list_request() const {
  http::Request request;
  request.path = path_ + query_;
  if (paging_.limit > 0) {
    request.path += "&limit=" + std::to_string(paging_.limit);
  } else if (fresh_ == Fresh::kAny) {
    request.path += "&resourceVersion=0";
  }
  if (!paging_.token.empty()) {
    request.path += "&continue=" + url_encode(paging_.token);
  }
  request.may_be_cut = true;
  if (paging_.limit == 1) {
    request.max_body = kMaxObjectBytes;
  }
  return request;
}

std::optional<Result<json>> ListWatch::get_page(const http::Request& request) {
  const auto response = TRY(rest_call(client_, request, options_, "LIST"));
  if (response.is_cut) {
    return std::nullopt;
  }
  if (paging_.limit > 0 && response.body.size() < request.max_body / 4) {
    paging_.limit = std::min(2 * paging_.limit, kMostLimit);
  }
  return answer_json(request, response);
}

void ListWatch::list(SteadyTime now, ObjectSink& sink) {
  http::Request request = list_request();
  const bool alone = paging_.limit == 1;
  bool names_only = false;
  auto page = get_page(request);
  if (!page && !alone) {
    paging_.limit = paging_.limit == 0 ? kFirstLimit : paging_.limit / 2;
    due_ = now;
    return;
  }
  if (!page) {
    names_only = true;
    request.accept = kNamesOnly;
    page = get_page(request);
  }
  if (!page) {
    page = Error{Code::kInternal, request_name(request) + ": an object's metadata is too long"};
  }
  if (*page) {
    take_page(now, **page, names_only, sink);
  } else {
    list_failed(now, page->error());
  }
}

void ListWatch::list_failed(SteadyTime now, const Error& error) {
  error_ = error;
  if (error.code == Code::kGone || error.code == Code::kInvalid) {
    paging_.token.clear();  // tokens live for some minutes only
  }
  due_ = now + backoff_.next(error.retry_after);
}

void ListWatch::take_page(SteadyTime now, const json& page, bool names_only, ObjectSink& sink) {
  if (paging_.token.empty()) {
    sink.begin_list();
  }
  const json none = json::array();
  const json* found = find(page, "items");
  const json& items = found == nullptr ? none : *found;
  const std::string version = resource_version_of(page);
  if (version.empty() || !sink.page(names_only ? none : items)) {
    error_ = Error{Code::kInternal, "GET " + path_ + ": the answer is not a list"};
    paging_.token.clear();
    due_ = now + backoff_.next();
    return;
  }
  if (names_only) {
    for (const json& item : items) {
      sink.unreadable(object_name(item));
    }
  }
  due_ = now;  // the rest with a fresh reading of the clock: the call may have taken seconds
  paging_.token = string_at(*find(page, "metadata"), "continue");
  if (!paging_.token.empty()) {
    return;
  }
  paging_ = {};
  relist_at_ = sink.end_list() ? kNever : now + delay(Delay::kRelistUnreadable, random_);
  resource_version_ = version;
  error_.reset();
}

// --- watching

void ListWatch::start_watch(SteadyTime now) {
  const auto life =
      std::chrono::duration_cast<std::chrono::seconds>(delay(Delay::kWatchLife, random_));
  http::Request request;
  request.path = path_ + query_ + "&watch=true&allowWatchBookmarks=true&resourceVersion=" +
                 url_encode(resource_version_) + "&timeoutSeconds=" + std::to_string(life.count());
  request.timeout = kHeaderTimeout;
  if (fresh_ == Fresh::kAny) {
    request.quiet_line = kBookmark;
  }
  open_.emplace(Open{client_.open_stream(request), now, now + life, now});
}

void ListWatch::read(SteadyTime now, ObjectSink& sink) {
  const int status = open_->stream->status();
  if (status != 200) {
    read_rejection(now);
    return;
  }
  if (!std::exchange(open_->connected, true)) {
    open_->heard_at = now;
    error_.reset();
    count(status);
    if (options_.pace != nullptr) {
      options_.pace->answered();
    }
  }
  if (now - open_->since > kShortLife) {
    backoff_.reset();
  }
  if (!take_lines(now, sink)) {
    return;
  }
  if (open_->stream->ended()) {
    stream_ended(now);
  } else if (now >= relist_at_) {
    list_after(now, Duration::zero());
  } else if (now - open_->heard_at >= kSilence) {
    fell_silent(now);
  }
}

void ListWatch::fell_silent(SteadyTime now) {
  error_ = Error{Code::kUnavailable, "WATCH " + path_ + ": no data for 90 s; reconnecting"};
  if (++silent_ < kSilentStreams) {
    // The connection is dead without having said so, perhaps with those of others.
    resume_after(now, delay(Delay::kWatchSilent, random_));
  } else {
    // A server restored from a backup lets a version of the future wait, bookmarks included, until
    // its own has caught up; what happened till then would be missed.
    silent_ = 0;
    list_after(now, delay(Delay::kRelist, random_));
  }
  client_.close_idle_connections();  // others of this client may be as dead
}

// No headers yet, or an answer other than 200.
void ListWatch::read_rejection(SteadyTime now) {
  http::Stream& stream = *open_->stream;
  const int status = stream.status();
  std::string& rejection = open_->rejection;
  rejection.append(stream.take(), 0, kMaxRejectionBytes - rejection.size());
  if (!stream.ended() && now - open_->since < kRejectionTimeout) {
    return;
  }
  count(status);
  const Error error =
      status != 0
          ? status_error("WATCH " + path_,
                         status_from_body(status, rejection, stream.retry_after()))
          : stream.error().value_or(Error{Code::kTimeout, "WATCH " + path_ + ": no answer"});
  if (options_.pace != nullptr) {
    options_.pace->failed(error);
  }
  if (status != 0) {
    take_error(now, error);
    return;
  }
  error_ = error;
  resume_after(now, backoff_.next());
}

// False when the stream is no more.
bool ListWatch::take_lines(SteadyTime now, ObjectSink& sink) {
  const std::string bytes = open_->stream->take();
  if (bytes.empty()) {
    return true;
  }
  open_->heard_at = now;
  silent_ = 0;
  std::vector<std::string> lines;
  const bool all_good = open_->splitter.feed(bytes, lines);
  Line outcome = Line::kFine;
  for (const std::string& line : lines) {
    outcome = take_line(now, line, sink);
    if (outcome != Line::kFine) {
      break;
    }
  }
  if (outcome == Line::kListAgain) {
    error_ = Error{Code::kInternal,
                   "WATCH " + path_ + ": the stream is not a valid watch; listing again"};
    list_after(now, backoff_.next());
  } else if (outcome == Line::kFine && !all_good) {
    error_ = Error{Code::kInternal, "WATCH " + path_ + ": an event is longer than " +
                                        std::to_string(kMaxObjectBytes) + " bytes; listing again"};
    list_after(now, backoff_.next());
  }
  return open_.has_value();
}

ListWatch::Line ListWatch::take_line(SteadyTime now, const std::string& line, ObjectSink& sink) {
  const auto event = parse_json(line);
  if (!event) {
    return Line::kListAgain;
  }
  const std::string type = string_at(*event, "type");
  const json* object = find(*event, "object");
  if (object == nullptr) {
    return Line::kListAgain;
  }
  if (type == "ERROR") {
    take_error(now,
               status_error("WATCH " + path_, status_from_json(*object).value_or(ApiStatus{})));
    return Line::kClosed;
  }
  std::string version = resource_version_of(*object);
  if (version.empty()) {
    return Line::kListAgain;
  }
  bool understood = type == "BOOKMARK";
  if (type == "ADDED") {
    understood = sink.changed(ObjectSink::Change::kAdded, *object);
  } else if (type == "MODIFIED") {
    understood = sink.changed(ObjectSink::Change::kModified, *object);
  } else if (type == "DELETED") {
    understood = sink.changed(ObjectSink::Change::kDeleted, *object);
  }
  if (!understood) {
    return Line::kListAgain;
  }
  resource_version_ = std::move(version);
  return Line::kFine;
}

// What the server said instead of events, as a status or within the stream.
void ListWatch::take_error(SteadyTime now, const Error& error) {
  error_ = error;
  if (error.code == Code::kGone) {
    // Expected now and then, and fixed by a list: the delay is for the rest of the fleet. If every
    // new watch gets this, the back-off limits it.
    const bool at_once = now - open_->since <= kShortLife;
    const Duration spread = delay(Delay::kRelist, random_);
    list_after(now, std::max({spread, at_once ? backoff_.next() : Duration::zero(),
                              requested_pause(error.retry_after, random_)}));
  } else if (needs_list(error.code)) {
    list_after(now, backoff_.next(error.retry_after));
  } else {
    resume_after(now, backoff_.next(error.retry_after));
  }
}

void ListWatch::stream_ended(SteadyTime now) {
  const auto error = open_->stream->error();
  if (error) {
    error_ = error;
  }
  if (now - open_->since <= kShortLife) {
    resume_after(now, backoff_.next());
    return;
  }
  // A watch that expires is alone; one cut short means an API server or load balancer went, and all
  // its clients return.
  const bool expired = !error && now + kExpiryMargin >= open_->expires_at;
  resume_after(now, delay(expired ? Delay::kWatchExpired : Delay::kWatchLost, random_));
}

void ListWatch::count(int status) const {
  if (options_.counter != nullptr) {
    options_.counter->count("WATCH", status);
  }
}

void ListWatch::resume_after(SteadyTime now, Duration delay) {
  open_.reset();
  due_ = now + delay;
}

void ListWatch::list_after(SteadyTime now, Duration delay) {
  resume_after(now, delay);
  resource_version_.clear();
  paging_ = {};
  relist_at_ = kNever;
}

}  // namespace slurmlet::kube

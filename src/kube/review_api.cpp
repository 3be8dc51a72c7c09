#include "kube/review_api.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/json_read.h"
#include "kube/rest_send.h"
#include "kube/status_error.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxAnswerBytes = std::size_t{64} << 10;

// The POST that creates a review.
http::Request review_request(std::string path, std::string body) {
  return {"POST", std::move(path), std::move(body), kJson};
}

// authentication.k8s.io/v1 UserInfo.
UserInfo user_from_json(const json& object) {
  UserInfo user;
  user.name = string_at(object, "username");
  user.uid = string_at(object, "uid");
  user.groups = strings_of(member(object, "groups"));
  if (const json& extra = member(object, "extra"); extra.is_object()) {
    for (const auto& [key, values] : extra.items()) {
      user.extra.emplace(key, strings_of(values));
    }
  }
  return user;
}

// No status means not allowed. kInternal when it contradicts itself.
Result<TokenReview> token_review_from_json(const json& object) {
  const json& status = member(object, "status");
  TokenReview review;
  review.authenticated = bool_at(status, "authenticated");
  review.error = one_line(string_at(status, "error"));
  review.user = user_from_json(member(status, "user"));
  if (review.authenticated && review.user.name.empty()) {
    return Error{Code::kInternal, "the answer accepts the token but names no user"};
  }
  return review;
}

// Of a SubjectAccessReview or SelfSubjectAccessReview; never an Error.
Result<AccessReview> access_review_from_json(const json& object) {
  const json& status = member(object, "status");
  // A server that says both contradicts itself; client-go takes it for an error.
  return AccessReview{bool_at(status, "allowed") && !bool_at(status, "denied"),
                      one_line(string_at(status, "reason"))};
}

template <typename T>
using ReadReview = Result<T> (*)(const json& review);

// One POST whose answer is read as it comes.
template <typename T>
class ReviewCall final : public PendingCall<T> {
 public:
  ReviewCall(http::Client& client, const http::Request& request, RequestCounter* counter,
             ReadReview<T> decode, SteadyTime now)
      : name_(request_name(request)),
        counter_(counter),
        decode_(decode),
        deadline_(now + kCallTimeout),
        stream_(client.open_stream(request)) {}
  ReviewCall(const ReviewCall&) = delete;
  ReviewCall& operator=(const ReviewCall&) = delete;
  ~ReviewCall() override {
    if (stream_ != nullptr) {
      finish(0);
    }
  }

  std::unique_ptr<Result<T>> poll(SteadyTime now) override {
    if (stream_ == nullptr) {
      return nullptr;
    }
    body_ += stream_->take();
    if (body_.size() > kMaxAnswerBytes) {
      return fail({Code::kInternal, name_ + ": the answer is longer than 64 KiB"});
    }
    if (stream_->ended()) {
      if (auto error = stream_->error()) {
        return fail(*std::move(error));  // names the request already
      }
      const int status = stream_->status();
      finish(status);
      return std::make_unique<Result<T>>(answer(status));
    }
    if (now >= deadline_) {
      return fail({Code::kTimeout, name_ + ": no answer within 10 s"});
    }
    return nullptr;
  }

  SteadyTime deadline() const override { return deadline_; }

 private:
  void finish(int status) {
    stream_.reset();
    if (counter_ != nullptr) {
      counter_->count("POST", status);
    }
  }
  std::unique_ptr<Result<T>> fail(Error error) {
    finish(0);
    return std::make_unique<Result<T>>(std::move(error));
  }
  Result<T> answer(int status) const {
    if (status < 200 || status > 299) {
      return status_error(name_, status_from_body(status, body_));
    }
    const auto review = parse_json(body_);
    if (!review) {
      return Error{Code::kInternal, name_ + ": the answer is not valid JSON"};
    }
    auto decoded = decode_(*review);
    return decoded ? std::move(decoded) : decoded.error().with_prefix(name_);
  }

  std::string name_;
  RequestCounter* counter_;
  ReadReview<T> decode_;
  SteadyTime deadline_;
  std::unique_ptr<http::Stream> stream_;  // nullptr once the answer was handed out
  std::string body_;
};

json access_spec(const AccessCheck& check) {
  json attributes{{"version", "v1"},
                  {"resource", "nodes"},
                  {"subresource", check.subresource},
                  {"name", check.node_name}};
  put(attributes, "verb", check.verb);
  json spec{{"user", check.user.name}, {"resourceAttributes", std::move(attributes)}};
  put(spec, "uid", check.user.uid);
  put(spec, "groups", check.user.groups);
  put(spec, "extra", check.user.extra);
  return spec;
}

Result<UserInfo> user_of_review(const json& object) {
  const json* user = find(member(object, "status"), "userInfo");
  if (user == nullptr) {
    return Error{Code::kInternal, "without a user"};
  }
  return user_from_json(*user);
}

Result<std::string> version_of(const json& object) {
  std::string version = one_line(string_at(object, "gitVersion"));
  if (version.empty()) {
    return Error{Code::kInternal, "without gitVersion"};
  }
  return version;
}

}  // namespace

std::unique_ptr<PendingCall<TokenReview>> RestReviewApi::review_token(const std::string& token,
                                                                      SteadyTime now) {
  const json body{{"apiVersion", "authentication.k8s.io/v1"},
                  {"kind", "TokenReview"},
                  {"spec", {{"token", token}}}};
  return std::make_unique<ReviewCall<TokenReview>>(
      client_, review_request("/apis/authentication.k8s.io/v1/tokenreviews", to_text(body)),
      options_.counter, token_review_from_json, now);
}

std::unique_ptr<PendingCall<AccessReview>> RestReviewApi::review_access(const AccessCheck& check,
                                                                        SteadyTime now) {
  const json body{{"apiVersion", "authorization.k8s.io/v1"},
                  {"kind", "SubjectAccessReview"},
                  {"spec", access_spec(check)}};
  return std::make_unique<ReviewCall<AccessReview>>(
      client_, review_request("/apis/authorization.k8s.io/v1/subjectaccessreviews", to_text(body)),
      options_.counter, access_review_from_json, now);
}

std::string describe(const OwnRight& right) {
  std::string out = right.verb + " " + right.resource;
  if (!right.group.empty()) {
    out += "." + right.group;
  }
  if (!right.subresource.empty()) {
    out += "/" + right.subresource;
  }
  if (!right.name.empty()) {
    out += " " + (right.namespace_name.empty() ? "" : right.namespace_name + "/") + right.name;
  } else if (!right.field_selector.empty()) {
    out += " with " + right.field_selector;
  } else if (!right.namespace_name.empty()) {
    out += " in " + right.namespace_name;
  }
  return out;
}

std::string own_right_body(const OwnRight& right) {
  json attributes{{"verb", right.verb}, {"resource", right.resource}};
  put(attributes, "group", right.group);
  put(attributes, "subresource", right.subresource);
  put(attributes, "name", right.name);
  put(attributes, "namespace", right.namespace_name);
  if (!right.field_selector.empty()) {
    attributes["fieldSelector"] = {{"rawSelector", right.field_selector}};
  }
  return to_text({{"apiVersion", "authorization.k8s.io/v1"},
                  {"kind", "SelfSubjectAccessReview"},
                  {"spec", {{"resourceAttributes", std::move(attributes)}}}});
}

Result<AccessReview> review_own_right(http::Client& client, const CallOptions& options,
                                      const OwnRight& right) {
  return send_for(client, options,
                  review_request("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                                 own_right_body(right)),
                  access_review_from_json);
}

Result<UserInfo> who_am_i(http::Client& client, const CallOptions& options) {
  const json body{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "SelfSubjectReview"}};
  return send_for(
      client, options,
      review_request("/apis/authentication.k8s.io/v1/selfsubjectreviews", to_text(body)),
      user_of_review);
}

Result<std::string> server_version(http::Client& client, const CallOptions& options) {
  return send_for(client, options, {"GET", "/version"}, version_of);
}

}  // namespace slurmlet::kube

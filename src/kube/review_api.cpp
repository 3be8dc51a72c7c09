#include "kube/review_api.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/json_read.h"
#include "kube/review_json.h"
#include "kube/status_error.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxAnswerBytes = std::size_t{64} << 10;

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

json access_spec(const AccessQuestion& question) {
  json attributes{{"version", "v1"},
                  {"resource", "nodes"},
                  {"subresource", question.subresource},
                  {"name", question.node_name}};
  if (!question.verb.empty()) {
    attributes["verb"] = question.verb;
  }
  json spec{{"user", question.user.name}, {"resourceAttributes", std::move(attributes)}};
  if (!question.user.uid.empty()) {
    spec["uid"] = question.user.uid;
  }
  if (!question.user.groups.empty()) {
    spec["groups"] = question.user.groups;
  }
  if (!question.user.extra.empty()) {
    spec["extra"] = question.user.extra;
  }
  return spec;
}

}  // namespace

std::unique_ptr<PendingCall<TokenReview>> RestReviewApi::review_token(const std::string& token,
                                                                      SteadyTime now) {
  const json body{{"apiVersion", "authentication.k8s.io/v1"},
                  {"kind", "TokenReview"},
                  {"spec", {{"token", token}}}};
  return std::make_unique<ReviewCall<TokenReview>>(
      client_,
      review_request("/apis/authentication.k8s.io/v1/tokenreviews", to_text(body), kCallTimeout),
      options_.counter, token_review_from_json, now);
}

std::unique_ptr<PendingCall<AccessReview>> RestReviewApi::review_access(
    const AccessQuestion& question, SteadyTime now) {
  const json body{{"apiVersion", "authorization.k8s.io/v1"},
                  {"kind", "SubjectAccessReview"},
                  {"spec", access_spec(question)}};
  return std::make_unique<ReviewCall<AccessReview>>(
      client_,
      review_request("/apis/authorization.k8s.io/v1/subjectaccessreviews", to_text(body),
                     kCallTimeout),
      options_.counter, access_review_from_json, now);
}

}  // namespace slurmlet::kube

#pragma once

// A ReviewApi scripted by the test. Not thread-safe.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kube/review_api.h"

namespace slurmlet::fakes {

class FakeReviewApi final : public kube::ReviewApi {
 public:
  // --- scripted by the test: answers the next poll(); otherwise answer_…() does
  std::function<Result<kube::TokenReview>(const std::string&)> tokens;
  std::function<Result<kube::AccessReview>(const kube::AccessCheck&)> access;

  // --- seen by the test
  std::vector<std::string> reviewed_tokens;
  std::vector<kube::AccessCheck> reviewed_access;

  void answer_token(Result<kube::TokenReview> answer) { *last_token_ = std::move(answer); }
  void answer_access(Result<kube::AccessReview> answer) { *last_access_ = std::move(answer); }

  static kube::TokenReview user(const std::string& name, std::vector<std::string> groups = {}) {
    return {true, {name, "", std::move(groups), {}}, ""};
  }

  // --- kube::ReviewApi
  std::unique_ptr<kube::PendingCall<kube::TokenReview>> review_token(const std::string& token,
                                                                     SteadyTime now) override {
    reviewed_tokens.push_back(token);
    last_token_ = std::make_shared<Slot<kube::TokenReview>>();
    if (tokens) {
      *last_token_ = tokens(token);
    }
    return std::make_unique<Call<kube::TokenReview>>(last_token_, now);
  }
  std::unique_ptr<kube::PendingCall<kube::AccessReview>> review_access(
      const kube::AccessCheck& query, SteadyTime now) override {
    reviewed_access.push_back(query);
    last_access_ = std::make_shared<Slot<kube::AccessReview>>();
    if (access) {
      *last_access_ = access(query);
    }
    return std::make_unique<Call<kube::AccessReview>>(last_access_, now);
  }

 private:
  template <typename T>
  using Slot = std::optional<Result<T>>;

  template <typename T>
  class Call final : public kube::PendingCall<T> {
   public:
    Call(std::shared_ptr<Slot<T>> slot, SteadyTime now)
        : slot_(std::move(slot)), deadline_(now + std::chrono::seconds{10}) {}
    std::unique_ptr<Result<T>> poll(SteadyTime now) override {
      if (!*slot_ && now < deadline_) {
        return nullptr;
      }
      auto result = *slot_ ? **slot_ : Result<T>{Error{Code::kTimeout, "no answer within 10 s"}};
      return std::make_unique<Result<T>>(std::move(result));
    }
    SteadyTime deadline() const override { return deadline_; }

   private:
    std::shared_ptr<Slot<T>> slot_;
    SteadyTime deadline_;
  };

  std::shared_ptr<Slot<kube::TokenReview>> last_token_;
  std::shared_ptr<Slot<kube::AccessReview>> last_access_;
};

}  // namespace slurmlet::fakes

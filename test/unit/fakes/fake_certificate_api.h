#pragma once

// certificates.k8s.io in memory, behind kube::CertificateApi: requests that the test approves,
// denies or deletes, and watches that tell of it. Errors can be scripted, every call is logged
// (see Scripted in fake_api.h).

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_api.h"
#include "kube/certificate_api.h"

namespace slurmlet::fakes {

class FakeCertificateApi final : public kube::CertificateApi, public Scripted {
 public:
  using Event = kube::WatchEvent<kube::CertificateRequest>;

  // --- the server's state, for the test
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, request] : requests_) {
      out.push_back(name);
    }
    return out;
  }
  const kube::CertificateRequest& find(const std::string& name) const { return requests_.at(name); }
  void put(kube::CertificateRequest request) {
    request.uid = next_version();
    requests_.insert_or_assign(request.name, request);
  }
  void approve(const std::string& name) {
    change(name, [](auto& request) { request.approved = true; });
  }
  void issue(const std::string& name, const std::string& certificate) {
    change(name, [&](auto& request) {
      request.approved = true;
      request.certificate = certificate;
    });
  }
  void deny(const std::string& name, const std::string& message) {
    change(name, [&](auto& request) {
      request.denied = true;
      request.message = message;
    });
  }
  void fail(const std::string& name, const std::string& message) {
    change(name, [&](auto& request) {
      request.approved = request.failed = true;
      request.message = message;
    });
  }
  void remove(const std::string& name) {
    const auto gone = requests_.at(name);
    requests_.erase(name);
    tell({Event::Type::kDeleted, {gone}});
  }
  // Late news of a request of that name that is long gone.
  void tell_of_an_earlier_deletion(const std::string& name) {
    auto earlier = requests_.at(name);
    earlier.uid = "earlier";
    tell({Event::Type::kDeleted, {earlier}});
  }
  // As long as it is set, watches cannot be opened.
  void break_watches(std::optional<Error> error) { watch_error_ = std::move(error); }
  int open_watches() const { return static_cast<int>(watches_.size()); }

  // --- kube::CertificateApi
  Result<kube::CertificateRequest> create(const kube::CertificateRequest& request) override {
    if (const auto error = begin("create " + request.name)) {
      return *error;
    }
    if (requests_.contains(request.name)) {
      return Error{Code::kConflict, "POST: 409 Conflict: \"" + request.name + "\" already exists"};
    }
    put(request);
    return requests_.at(request.name);
  }
  Result<kube::CertificateRequest> get(const std::string& name) override {
    if (const auto error = begin("get " + name)) {
      return *error;
    }
    const auto at = requests_.find(name);
    if (at == requests_.end()) {
      return Error{Code::kNotFound, "GET: 404 Not Found: \"" + name + "\" not found"};
    }
    return at->second;
  }
  std::unique_ptr<kube::Watch<kube::CertificateRequest>> watch(const std::string& name) override {
    begin("watch " + name);
    return std::make_unique<RequestWatch>(*this, name);
  }

 private:
  class RequestWatch final : public kube::Watch<kube::CertificateRequest> {
   public:
    RequestWatch(FakeCertificateApi& api, std::string name) : api_(api), name_(std::move(name)) {
      api_.watches_.push_back(this);
    }
    RequestWatch(const RequestWatch&) = delete;
    RequestWatch& operator=(const RequestWatch&) = delete;
    ~RequestWatch() override { std::erase(api_.watches_, this); }

    SteadyTime step(Now now, std::vector<Event>& events) override {
      if (api_.watch_error_) {
        listed_ = false;
        return now.steady + std::chrono::seconds{30};
      }
      if (!std::exchange(listed_, true)) {
        pending_.clear();
        const auto at = api_.requests_.find(name_);
        Event list{Event::Type::kReplaced, {}};
        if (at != api_.requests_.end()) {
          list.objects.push_back(at->second);
        }
        events.push_back(std::move(list));
      }
      for (Event& event : std::exchange(pending_, {})) {
        events.push_back(std::move(event));
      }
      return kNever;
    }
    std::optional<Error> last_error() const override { return api_.watch_error_; }
    void restart() override { listed_ = false; }
    void take(const Event& event) {
      if (event.objects.front().name == name_) {
        pending_.push_back(event);
      }
    }

   private:
    FakeCertificateApi& api_;
    std::string name_;
    bool listed_ = false;
    std::vector<Event> pending_;
  };

  template <typename Edit>
  void change(const std::string& name, const Edit& edit) {
    edit(requests_.at(name));
    tell({Event::Type::kModified, {requests_.at(name)}});
  }
  void tell(const Event& event) {
    for (RequestWatch* watch : watches_) {
      watch->take(event);
    }
  }

  std::map<std::string, kube::CertificateRequest> requests_;
  std::vector<RequestWatch*> watches_;
  std::optional<Error> watch_error_;
};

}  // namespace slurmlet::fakes

#include "kube/watch.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/result.h"
#include "base/text.h"
#include "kube/json_read.h"
#include "kube/object_json.h"
#include "kube/typed_watch.h"
#include "node/vocabulary.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

constexpr const char* kMachineGroup = "cluster.x-k8s.io";
constexpr std::array kMachineVersions{"v1beta2", "v1beta1"};  // the best one first
constexpr Duration kRetryMissing = std::chrono::minutes{3};   // for Machines where there are none
constexpr Duration kRetry = std::chrono::seconds{15};         // a server that did not answer

class MachineWatch final : public Watch<Machine> {
 public:
  MachineWatch(http::Client& client, std::string cluster, CallOptions options, Random random)
      : client_(client),
        cluster_(std::move(cluster)),
        options_(std::move(options)),
        random_(std::move(random)) {}

  SteadyTime step(Now now, std::vector<WatchEvent<Machine>>& events) override {
    if (!watch_ && now.steady >= retry_at_) {
      look(now.steady);
    }
    if (!watch_) {
      return retry_at_;
    }
    const std::size_t old = events.size();
    const SteadyTime next = watch_->step(now, events);
    for (auto event = events.begin() + static_cast<std::ptrdiff_t>(old); event != events.end();
         ++event) {
      for (Machine& machine : event->objects) {
        machine.api_version = version_;
      }
    }
    error_ = watch_->last_error();
    const bool is_404 = error_ && error_->request && error_->request->http_status == 404;
    if (is_404) {  // this version may be served no more
      watch_.reset();
      retry_at_ = now.steady + kRetry;
      return retry_at_;
    }
    return next;
  }
  std::optional<Error> last_error() const override { return error_; }
  void restart() override {
    watch_.reset();
    retry_at_ = {};
    error_.reset();
  }

 private:
  // By the lists of API groups and of their kinds: the path of one that is not served is answered
  // 404, as by any load balancer.
  Result<std::string> find_version() {
    const auto groups = TRY(get("/apis"));
    std::set<std::string> served;
    for (const json& group : list_at(groups, "groups")) {
      if (string_at(group, "name") == kMachineGroup) {
        for (const json& version : list_at(group, "versions")) {
          served.insert(string_at(version, "version"));
        }
      }
    }
    for (const char* wanted : kMachineVersions) {
      if (!served.contains(wanted)) {
        continue;
      }
      // Of a Cluster API that was removed, kinds with finalizers stay, and with them the version.
      const auto kinds = get(std::string{"/apis/"} + kMachineGroup + "/" + wanted);
      if (!kinds && kinds.error().code != Code::kNotFound) {
        return kinds.error();
      }
      const json none;
      const json& found = list_at(kinds ? *kinds : none, "resources");
      if (std::any_of(found.begin(), found.end(),
                      [](const json& kind) { return string_at(kind, "name") == "machines"; })) {
        return std::string{wanted};
      }
    }
    return Error{Code::kNotFound,
                 "the server has no Machines of cluster.x-k8s.io/v1beta2 or v1beta1"};
  }

  Result<json> get(const std::string& path) {
    const http::Request request{"GET", path};
    const auto response = rest_call(client_, request, options_, "GET");
    return response ? answer_json(request, *response) : response.error();
  }

  void look(SteadyTime now) {
    auto version = find_version();
    if (!version) {
      error_ = version.error();
      retry_at_ = now + (error_->code == Code::kNotFound ? kRetryMissing : kRetry);
      return;
    }
    version_ = *std::move(version);
    const auto slash = cluster_.find('/');
    const std::string name = cluster_.empty() ? "" : "=" + cluster_.substr(slash + 1);
    watch_ = std::make_unique<TypedWatch<Machine>>(
        std::make_unique<ListWatch>(
            client_,
            std::string{"/apis/"} + kMachineGroup + "/" + version_ +
                (cluster_.empty() ? "" : "/namespaces/" + url_encode(cluster_.substr(0, slash))) +
                "/machines",
            "labelSelector=" + url_encode("cluster.x-k8s.io/cluster-name" + name),
            ListWatch::Fresh::kLatest, options_, random_),
        machine_from_json);
  }

  http::Client& client_;
  const std::string cluster_;
  CallOptions options_;
  Random random_;
  std::string version_;
  std::unique_ptr<Watch<Machine>> watch_;
  SteadyTime retry_at_{};
  std::optional<Error> error_;
};

}  // namespace

std::unique_ptr<Watch<node::ObservedNode>> watch_own_node(http::Client& client,
                                                          const std::string& node_name,
                                                          CallOptions options, Random random) {
  return std::make_unique<TypedWatch<node::ObservedNode>>(
      std::make_unique<ListWatch>(client, "/api/v1/nodes",
                                  "fieldSelector=" + url_encode("metadata.name=" + node_name),
                                  ListWatch::Fresh::kLatest, std::move(options), std::move(random)),
      node_from_json);
}

std::unique_ptr<Watch<Pod>> watch_own_pods(http::Client& client, const std::string& node_name,
                                           CallOptions options, Random random) {
  return std::make_unique<TypedWatch<Pod>>(
      std::make_unique<ListWatch>(client, "/api/v1/pods",
                                  "fieldSelector=" + url_encode("spec.nodeName=" + node_name),
                                  ListWatch::Fresh::kAny, std::move(options), std::move(random)),
      pod_from_json);
}

std::unique_ptr<Watch<SiteNode>> watch_site_nodes(http::Client& client, CallOptions options,
                                                  Random random, ConditionTypes conditions) {
  return std::make_unique<TypedWatch<SiteNode>>(
      std::make_unique<ListWatch>(client, "/api/v1/nodes",
                                  "labelSelector=" + url_encode(node::vocabulary::kVersion),
                                  ListWatch::Fresh::kLatest, std::move(options), std::move(random)),
      [wanted = std::move(conditions)](const auto& value) {
        return site_node_from_json(value, wanted);
      });
}

std::unique_ptr<Watch<Machine>> watch_machines(http::Client& client, const std::string& cluster,
                                               CallOptions options, Random random) {
  return std::make_unique<MachineWatch>(client, cluster, std::move(options), std::move(random));
}

}  // namespace slurmlet::kube

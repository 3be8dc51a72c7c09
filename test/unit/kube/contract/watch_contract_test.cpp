// The watches against a real API server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "cluster.h"
#include "kube/list_watch.h"
#include "kube/watch.h"

namespace slurmlet::kube::contract {
namespace {

using std::chrono::seconds;

// Hands everything on to a real client, but may change a watch request before it leaves.
class RewritingClient final : public http::Client {
 public:
  using Rewrite = std::function<void(std::size_t nth, std::string& path)>;
  RewritingClient(http::Client& real, Rewrite rewrite)
      : real_(real), rewrite_(std::move(rewrite)) {}
  std::vector<std::string> watched;  // paths as asked by the watch, before the change

  Result<http::Response> call(const http::Request& request) override { return real_.call(request); }
  std::unique_ptr<http::Stream> open_stream(const http::Request& request) override {
    http::Request changed = request;
    rewrite_(watched.size(), changed.path);
    watched.push_back(request.path);
    return real_.open_stream(changed);
  }
  std::vector<int> wait(SteadyTime until, const std::vector<int>& fds) override {
    return real_.wait(until, fds);
  }
  void interrupt() override { real_.interrupt(); }
  void set_abort_fd(int fd) override { real_.set_abort_fd(fd); }
  void close_idle_connections() override { real_.close_idle_connections(); }
  std::string local_address() const override { return real_.local_address(); }

 private:
  http::Client& real_;
  Rewrite rewrite_;
};

std::string parameter(const std::string& path, const std::string& name) {
  const std::string key = "&" + name + "=";
  const auto at = path.find(key);
  return at == std::string::npos
             ? ""
             : path.substr(at + key.size(), path.find('&', at + key.size()) - at - key.size());
}

void set_parameter(std::string& path, const std::string& name, const std::string& value) {
  const std::string key = "&" + name + "=";
  const auto at = path.find(key) + key.size();
  path.replace(at, std::min(path.find('&', at), path.size()) - at, value);
}

template <typename T>
int count(const std::vector<WatchEvent<T>>& events, typename WatchEvent<T>::Type type) {
  return static_cast<int>(
      std::ranges::count_if(events, [type](const auto& event) { return event.type == type; }));
}

class WatchContract : public ContractTest {
 protected:
  const Random random_ = [] { return 0.05; };  // no test waits for a long jitter
};

TEST_F(WatchContract, OwnNodeFromRegistrationToDeletion) {
  using Type = WatchEvent<node::ObservedNode>::Type;
  admin("DELETE", "/api/v1/nodes/" + name_);
  const auto watch = watch_own_node(*client_, name_, options_, random_);
  std::vector<WatchEvent<node::ObservedNode>> events;
  const auto count_of = [&events](Type type) { return count(events, type); };
  ASSERT_TRUE(run_until(*client_, *watch, events, seconds{20},
                        [&] { return count_of(Type::kReplaced) == 1; }));
  EXPECT_TRUE(events[0].objects.empty());

  const node::ObservedNode node = ensure_node();
  ASSERT_TRUE(run_until(*client_, *watch, events, seconds{20}, [&] {
    return count_of(Type::kAdded) == 1;
  })) << (watch->last_error() ? watch->last_error()->message : "");
  EXPECT_EQ(events[1].objects.at(0).uid, node.uid);

  admin("PATCH", "/api/v1/nodes/" + name_, R"({"spec":{"unschedulable":true}})",
        "application/merge-patch+json");
  EXPECT_TRUE(run_until(*client_, *watch, events, seconds{20}, [&] {
    return std::ranges::any_of(events, [](const auto& event) {
      return event.type == Type::kModified && event.objects.at(0).unschedulable;
    });
  }));

  admin("DELETE", "/api/v1/nodes/" + name_);
  EXPECT_TRUE(run_until(*client_, *watch, events, seconds{20},
                        [&] { return count_of(Type::kDeleted) == 1; }));
  EXPECT_FALSE(watch->last_error());
  ensure_node();
}

TEST_F(WatchContract, PodsBoundToTheNodeAndNoOthers) {
  using Type = WatchEvent<Pod>::Type;
  ensure_node();
  const auto watch = watch_own_pods(*client_, name_, options_, random_);
  std::vector<WatchEvent<Pod>> events;
  ASSERT_TRUE(run_until(*client_, *watch, events, seconds{20}, [&] { return !events.empty(); }));
  create_pod("contract-unbound", "");
  const Pod pod = create_pod("contract-watched", name_);
  const auto told = [&events](Type type, const std::string& uid) {
    return std::ranges::any_of(events, [&](const auto& event) {
      return event.type == type && event.objects.at(0).uid == uid;
    });
  };
  EXPECT_TRUE(run_until(*client_, *watch, events, seconds{20},
                        [&] { return told(Type::kAdded, pod.uid); }));
  ASSERT_TRUE(pods_->remove_now(pod));
  EXPECT_TRUE(run_until(*client_, *watch, events, seconds{20},
                        [&] { return told(Type::kDeleted, pod.uid); }));
  for (const auto& event : events) {
    for (const Pod& object : event.objects) {
      EXPECT_NE(object.name, "contract-unbound");
    }
  }
  admin("DELETE", "/api/v1/namespaces/default/pods/contract-unbound?gracePeriodSeconds=0");
}

// A watch of the node's pods that the server ends after eight seconds, with a bookmark before that.
class ShortWatchContract : public WatchContract {
 protected:
  void open_short_watch() {
    ensure_node();
    short_client_.emplace(*client_, [](std::size_t, std::string& path) {
      set_parameter(path, "timeoutSeconds", "8");
    });
    watch_ = watch_own_pods(*short_client_, name_, {&counter_, {}}, random_);
    ASSERT_TRUE(run_until(*short_client_, *watch_, events_, seconds{20}, [&] {
      return counter_.snapshot().contains({"WATCH", 200});
    }));
    // Moves the server's version of pods on, unseen by our selector.
    create_pod("contract-unbound", "");
  }

  std::optional<RewritingClient> short_client_;
  RequestCounter counter_;
  std::unique_ptr<Watch<Pod>> watch_;
  std::vector<WatchEvent<Pod>> events_;
};

TEST_F(ShortWatchContract, ResumesFromTheBookmarkThatTheServerSendsBeforeItEndsTheStream) {
  ASSERT_NO_FATAL_FAILURE(open_short_watch());
  ASSERT_TRUE(run_until(*short_client_, *watch_, events_, seconds{20},
                        [&] { return short_client_->watched.size() == 2; }));
  EXPECT_GT(std::stoll(parameter(short_client_->watched[1], "resourceVersion")),
            std::stoll(parameter(short_client_->watched[0], "resourceVersion")));
  EXPECT_EQ(count(events_, WatchEvent<Pod>::Type::kReplaced), 1) << "resumed, not listed again";
  EXPECT_FALSE(watch_->last_error());
  admin("DELETE", "/api/v1/namespaces/default/pods/contract-unbound?gracePeriodSeconds=0");
}

TEST_F(ShortWatchContract, ABookmarkIsNoReasonForAStep) {
  ASSERT_NO_FATAL_FAILURE(open_short_watch());
  // The next news is the end of the stream; the bookmark that came before it is there too.
  short_client_->wait(clock_.now().steady + seconds{20}, {});
  const Now now = clock_.now();
  EXPECT_LT(watch_->step(now, events_), now.steady + ListWatch::kSilence / 2) << "still open";
  EXPECT_NE(watch_->position(), parameter(short_client_->watched[0], "resourceVersion"));
  admin("DELETE", "/api/v1/namespaces/default/pods/contract-unbound?gracePeriodSeconds=0");
}

TEST_F(WatchContract, AVersionTooOldIsCuredByAList) {
  ensure_node();
  RewritingClient client(*client_, [](std::size_t nth, std::string& path) {
    if (nth == 0) {
      set_parameter(path, "resourceVersion", "1");
    }
  });
  const auto watch = watch_own_pods(client, name_, options_, random_);
  std::vector<WatchEvent<Pod>> events;
  if (!run_until(client, *watch, events, seconds{20},
                 [&] { return watch->last_error().has_value(); })) {
    GTEST_SKIP() << "this server is so young that it knows everything since version 1; restart it";
  }
  EXPECT_EQ(watch->last_error()->code, Code::kGone) << watch->last_error()->message;
  ASSERT_TRUE(run_until(client, *watch, events, seconds{20},
                        [&] {
                          return count(events, WatchEvent<Pod>::Type::kReplaced) >= 2 &&
                                 client.watched.size() >= 2;
                        }))
      << count(events, WatchEvent<Pod>::Type::kReplaced) << " lists, " << client.watched.size()
      << " watches; " << watch->last_error().value_or(Error{}).message;
  EXPECT_FALSE(watch->last_error());
}

TEST_F(WatchContract, AWatchOfAnotherNodeIsDenied) {
  const auto watch = watch_own_node(*client_, name_ + "-other", options_, random_);
  std::vector<WatchEvent<node::ObservedNode>> events;
  ASSERT_TRUE(run_until(*client_, *watch, events, seconds{20},
                        [&] { return watch->last_error().has_value(); }));
  EXPECT_EQ(watch->last_error()->code, Code::kDenied) << watch->last_error()->message;
}

}  // namespace
}  // namespace slurmlet::kube::contract

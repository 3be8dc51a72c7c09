#pragma once

// The loops of the main thread, wired together, and one turn of them: facts, the desired Node, its
// registration and patches, pods, events, and the daemon's own credentials.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "credentials/access.h"
#include "credentials/own_credentials.h"
#include "daemon/detach_file.h"
#include "daemon/node_identity.h"
#include "daemon/shared.h"
#include "daemon/state_dir.h"
#include "http/client.h"
#include "kube/rest_api.h"
#include "kube/watch.h"
#include "node/desired_node.h"
#include "sync/event_sink.h"
#include "sync/facts_sync.h"
#include "sync/node_sync.h"
#include "sync/pod_sync.h"

namespace slurmlet::daemon {

class MainLoop {
 public:
  // References must outlive it.
  MainLoop(const config::Settings& settings, NodeIdentity identity, credentials::ApiAccess& access,
           credentials::ServingCertificate& serving, std::unique_ptr<http::Client> client,
           Shared& shared);

  // One turn; returns when the next is due.
  SteadyTime step();

  // After a step(): waits until `next`, or until one of `others` (-1 = none) or of its own
  // descriptors is readable.
  void wait(SteadyTime next, const std::vector<int>& others);
  void abort_calls_on(int fd) { client_->set_abort_fd(fd); }

  // On exit, within `limit`: sends waiting Events and, on host shutdown, the Node as not ready.
  void send_last(bool host_stops, Duration limit);

  // Whether it is time to get another credential with the bootstrap token.
  bool needs_bootstrap() const { return credentials_.needs_bootstrap(now()); }

 private:
  // The API server's objects, over one client.
  struct Api {
    Api(http::Client& client, const std::string& node_name, Shared& shared);
    kube::Pace pace;
    kube::CallOptions options;
    kube::RestNodeApi nodes;
    kube::RestLeaseApi leases;
    kube::RestPodApi pods;
    kube::RestEventApi events;
    std::unique_ptr<kube::Watch<node::ObservedNode>> node_watch;
    std::unique_ptr<kube::Watch<kube::Pod>> pod_watch;
  };

  const std::string& name() const { return identity_.policy.node_name; }
  Now now() const { return shared_.clock.now(); }
  std::unique_ptr<sync::FactsSync> make_facts();
  sync::NodeSyncOptions node_options();
  DeletionScope deletion_scope() const;
  std::optional<node::DeletionRecord> load_deletion();
  void save_deletion(const std::optional<node::DeletionRecord>& deletion);
  void notice_other_credential();
  Now begin_part();
  void say_shutting_down();
  void save_identity_once();
  void remember(const std::string& provider_id);
  bool refresh_desired(Now at, bool shutting_down = false);
  void publish(Now at);

  const config::Settings& settings_;
  NodeIdentity identity_;
  const credentials::ApiAccess& access_;
  std::unique_ptr<http::Client> client_;
  Shared& shared_;
  Api api_;
  std::unique_ptr<sync::FactsSync> facts_;  // from the first step on
  std::string credential_;                  // that the end of the Node is saved under
  sync::EventSink events_;
  sync::NodeSync node_;
  DetachFile detach_file_;
  sync::PodSync pods_;
  credentials::OwnCredentials credentials_;
  node::DesiredNodeMaker desired_;
  bool identity_saved_ = false;
};

}  // namespace slurmlet::daemon

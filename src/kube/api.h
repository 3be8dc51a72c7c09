#pragma once

// The calls slurmlet makes to the API server, as interfaces without HTTP or JSON, so that the loops
// in sync/ are tested with fakes. All calls have a deadline of their own; errors are typed by Code
// (see base/result.h) and carry method, path, HTTP status and the API's own message.
// An implementation belongs to the thread of its http::Client.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "node/lease_holder.h"
#include "node/node.h"
#include "node/node_diff.h"

namespace slurmlet::kube {

// coordination.k8s.io/v1 Lease; those of nodes are in namespace kube-node-lease.
struct Lease {
  std::string name;
  std::string resource_version;  // "" when it does not exist yet
  std::string holder_identity;
  int duration_seconds = 40;
  std::string renew_time;  // MicroTime as text
  std::string acquire_time;
  std::string owner_node_name;  // ownerReference to the Node: kind Node, apiVersion v1
  std::string owner_node_uid;   // "" = no ownerReference
  bool operator==(const Lease&) const = default;
};

inline node::LeaseHolder holder_of(const Lease& lease) {
  return {lease.holder_identity, lease.renew_time, lease.duration_seconds};
}

class LeaseApi {
 public:
  virtual ~LeaseApi() = default;
  virtual Result<Lease> get(const std::string& name) = 0;  // kNotFound
  virtual Result<Lease> create(const Lease& lease) = 0;    // kConflict: exists
  virtual Result<Lease> update(const Lease& lease) = 0;    // PUT; kConflict, kNotFound
  // PATCH, unread, of a Lease that `holder` holds: sets renewTime and keeps the one before in
  // acquireTime. kInvalid: another client holds it; kNotFound.
  virtual Result<Lease> renew_held(const std::string& name, const std::string& holder,
                                   const std::string& renew_time) = 0;
};

class NodeApi {
 public:
  virtual ~NodeApi() = default;
  // Of the API server: "v1.37.2".
  virtual Result<std::string> server_version() = 0;
  virtual Result<node::ObservedNode> get(const std::string& name) = 0;
  // Creates the Node with everything in it, status included. kConflict: a Node of that name exists.
  virtual Result<node::ObservedNode> create(const node::DesiredNode& desired, WallTime now) = 0;
  // Strategic-merge PATCH of nodes/NAME/status (labels and annotations travel in it too), guarded
  // by the uid: a Node re-created meanwhile is answered kInvalid (422).
  virtual Result<node::ObservedNode> patch_status(const std::string& name,
                                                  const node::NodePatch& patch) = 0;
  // Sets spec.providerID where it is empty.
  virtual Result<node::ObservedNode> set_provider_id(const std::string& name,
                                                     const std::string& uid,
                                                     const std::string& provider_id) = 0;
};

struct OwnerRef {
  std::string kind, name, uid;
  bool operator==(const OwnerRef&) const = default;
};

// A container of a Pod, for saying of it that it will never run.
struct PodContainer {
  std::string name, image;
  bool has_ended = false;  // its status says so
  bool operator==(const PodContainer&) const = default;
};

// The part of a Pod that deciding its rejection needs.
struct Pod {
  std::string namespace_name, name, uid;
  std::string phase;                   // Pending, Running, Succeeded, Failed
  bool deleting = false;               // metadata.deletionTimestamp set
  std::optional<OwnerRef> controller;  // ownerReference with controller: true
  std::vector<PodContainer> ephemeral_containers = {};
  // What a kubelet that had this node's name reported of them: the lists of the pod's status as
  // JSON text, "" where there is none. The first are those of init containers and sidecars.
  std::string init_container_statuses = {}, container_statuses = {};
  std::string ephemeral_container_statuses = {};
  // Containers without a status, of a pod without a controller.
  std::vector<PodContainer> unreported_containers = {};
  bool operator==(const Pod&) const = default;
};

class PodApi {
 public:
  virtual ~PodApi() = default;
  // PATCH pods/status: phase Failed, reason, message, and the containers' states as object_json.h
  // says; uid-guarded. kNotFound: the pod is gone; kConflict, kInvalid: try again or wait for the
  // watch.
  virtual Status set_failed(const Pod& pod, const std::string& reason,
                            const std::string& message) = 0;
  // DELETE with grace period 0 and uid precondition.
  virtual Status remove_now(const Pod& pod) = 0;
};

struct ObjectRef {
  std::string kind, namespace_name, name, uid;
  std::string api_version = "v1";
};

// core/v1 Event about the Node or a pod.
struct Event {
  std::string namespace_name;  // "default" for the Node
  std::string name;            // of the Event object
  std::string type;            // "Normal", "Warning"
  std::string reason, message;
  ObjectRef about;
  std::string source_component, source_host;
  WallTime first_seen, last_seen;
  int count = 1;
};

class EventApi {
 public:
  virtual ~EventApi() = default;
  virtual Status create(const Event& event) = 0;
  // PATCH of count, message and lastTimestamp of an Event created before; kNotFound when expired.
  virtual Status update(const Event& event) = 0;
};

// The part of any Node that the operator of a site needs. Small: there are ten thousand.
struct SiteNode {
  std::string name, uid;
  std::map<std::string, std::string> annotations;  // those that it reads (object_json.h)
  bool unschedulable = false;
  bool deleting = false;
  std::string provider_id = {};
  std::vector<node::ObservedCondition> conditions = {};  // of the wanted types
  bool operator==(const SiteNode&) const = default;
};

// The part of a Cluster API Machine that the operator of a site needs.
struct Machine {
  std::string api_version;  // "v1beta2": by which it was read
  std::string namespace_name, name, uid, resource_version;
  std::string cluster;                 // of Cluster API, by name; in the Machine's namespace
  std::string node;                    // its nodeRef, "" before it has one
  std::string provider_id;             // "" before it has one
  bool provisioned = false;            // its infrastructure is, or was: a host may run
  bool hooked = false;                 // our hook holds its deletion up
  std::string drain_policy;            // the annotation
  std::vector<std::string> addresses;  // names and IP addresses
  std::optional<WallTime> deleted_at;
  std::optional<WallTime> created_at = {};
  std::string deployment = {};                  // its MachineDeployment, in its namespace
  std::optional<std::string> delete_mark = {};  // cluster.x-k8s.io/delete-machine
  bool sleeping = false;                        // kSkipRemediation is ours
  bool controller = false;                      // kSlurmRole says so
  bool operator==(const Machine&) const = default;
};

class MachineApi {
 public:
  virtual ~MachineApi() = default;
  // The Machine now, from the server, not a watch. kNotFound: it is gone, or another one has its
  // name.
  virtual Result<Machine> get(const Machine& machine) = 0;
  // Removes our hook, and nothing else. kConflict: the Machine has changed since it was read.
  virtual Status release(const Machine& machine) = 0;
  // Removes our kSkipRemediation, likewise.
  virtual Status mark_awake(const Machine& machine) = 0;
};

class SiteApi {
 public:
  virtual ~SiteApi() = default;
  // The Node now, from the server, not a watch. kNotFound.
  virtual Result<SiteNode> get(const std::string& node) = 0;
  // Sets annotations of a Node, or removes them (nothing). kNotFound: it is gone; kConflict or
  // kInvalid: another Node has this name now.
  virtual Status annotate(const std::string& node, const std::string& uid,
                          const std::map<std::string, std::optional<std::string>>& changes) = 0;
  // Deletes a Node. kNotFound: it is gone; kConflict: another Node has this name now.
  virtual Status remove(const std::string& node, const std::string& uid) = 0;
};

// What a watch reports. kReplaced carries the whole set after a list; the others one object each.
template <typename T>
struct WatchEvent {
  enum class Type { kReplaced, kAdded, kModified, kDeleted };
  Type type;
  std::vector<T> objects;
};

// A list followed by a watch that is resumed from the last resourceVersion (bookmarks included) as
// long as it may be, and listed afresh after 410 Gone. Reconnects with jittered back-off.
template <typename T>
class Watch {
 public:
  virtual ~Watch() = default;
  // Does what is due (list, open, read) and appends what happened. Returns when to be called again
  // at the latest; earlier when the client's wait() returns for stream news.
  virtual SteadyTime step(Now now, std::vector<WatchEvent<T>>& events) = 0;
  // Whether the last contact succeeded; the Error if not.
  virtual std::optional<Error> last_error() const = 0;
  // Forgets its position: the next step lists, on a new stream.
  virtual void restart() = 0;
  // The rest is what daemons need: a watch of others need not have it.

  // Names ("NAMESPACE/NAME") of the objects that the last list left out: they are too large, or
  // make no sense. They are listed again now and then.
  virtual const std::vector<std::string>& unreadable() const {
    static const std::vector<std::string> kNone;
    return kNone;
  }
  // Holds no connection until the next step(), which goes on where this one stopped. For a loop
  // that will not be stepped for a while.
  virtual void rest() {}
  // Retries soon what was denied.
  virtual void credential_replaced(SteadyTime) {}
  // The resourceVersion reached; "" = it must list.
  virtual std::string position() const { return ""; }
  // Skips the initial list: watches from the resourceVersion of the only object, which the caller
  // has just created.
  virtual void watch_from(const std::string& /*resource_version*/) {}
};

}  // namespace slurmlet::kube

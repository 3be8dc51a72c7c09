#include "kube/event_json.h"

#include <nlohmann/json.hpp>

#include "base/rfc3339.h"
#include "kube/json_read.h"
#include "kube/status_error.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

json involved_object(const ObjectRef& about) {
  json object{{"apiVersion", about.api_version}, {"kind", about.kind}, {"name", about.name}};
  if (!about.namespace_name.empty()) {
    object["namespace"] = about.namespace_name;
  }
  if (!about.uid.empty()) {
    object["uid"] = about.uid;
  }
  return object;
}

}  // namespace

std::string event_body(const Event& event) {
  return to_text({{"apiVersion", "v1"},
                  {"kind", "Event"},
                  {"metadata", {{"name", event.name}, {"namespace", event.namespace_name}}},
                  {"involvedObject", involved_object(event.about)},
                  {"type", event.type},
                  {"reason", event.reason},
                  {"message", one_line(event.message, kMaxEventMessageBytes)},
                  {"source", {{"component", event.source_component}, {"host", event.source_host}}},
                  {"reportingComponent", event.source_component},
                  {"reportingInstance", event.source_host},
                  {"firstTimestamp", rfc3339(event.first_seen)},
                  {"lastTimestamp", rfc3339(event.last_seen)},
                  {"count", event.count}});
}

std::string event_patch_body(const Event& event) {
  return to_text({{"count", event.count},
                  {"message", one_line(event.message, kMaxEventMessageBytes)},
                  {"lastTimestamp", rfc3339(event.last_seen)}});
}

}  // namespace slurmlet::kube

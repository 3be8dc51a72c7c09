// DaemonStatus as JSON and back. Each key stands once, in describe(): a Writer or a Reader visits
// it.

#include <nlohmann/json.hpp>

#include "kube/json_read.h"
#include "status/daemon_status.h"

namespace slurmlet::status {
namespace {

using Ordered = nlohmann::ordered_json;

// Puts fields into an object. What is not known ("", 0, nothing) becomes null; counters are
// numbers.
class Writer {
 public:
  void text(const char* key, const std::string& value) {
    out_[key] = value.empty() ? Ordered{} : Ordered(value);
  }
  void flag(const char* key, bool value) { out_[key] = value; }
  void process(const char* key, int pid) { out_[key] = pid == 0 ? Ordered{} : Ordered(pid); }
  void count(const char* key, std::uint64_t value) { out_[key] = value; }
  template <typename T>
  void maybe(const char* key, const std::optional<T>& value) {
    out_[key] = value ? Ordered(*value) : Ordered{};
  }
  template <typename Describe>
  void object(const char* key, Describe describe) {
    Writer inner;
    describe(inner);
    out_[key] = std::move(inner.out_);
  }
  template <typename Item, typename Describe>
  void list(const char* key, const std::vector<Item>& items, Describe describe) {
    out_[key] = Ordered::array();
    for (const Item& item : items) {
      Writer inner;
      describe(inner, item);
      out_[key].push_back(std::move(inner.out_));
    }
  }
  const Ordered& result() const { return out_; }

 private:
  Ordered out_ = Ordered::object();
};

// Takes fields out of an object; what is missing or of another type stays as it was.
class Reader {
 public:
  explicit Reader(const nlohmann::json& from) : from_(from) {}

  void text(const char* key, std::string& value) const { value = kube::string_at(from_, key); }
  void flag(const char* key, bool& value) const { value = kube::bool_at(from_, key); }
  void process(const char* key, int& pid) const {
    pid = static_cast<int>(kube::int_at(from_, key).value_or(0));
  }
  void count(const char* key, std::uint64_t& value) const {
    const auto number = kube::int_at(from_, key).value_or(0);
    value = number > 0 ? static_cast<std::uint64_t>(number) : 0;
  }
  void maybe(const char* key, std::optional<std::string>& value) const {
    if (std::string text = kube::string_at(from_, key); !text.empty()) {
      value = std::move(text);
    }
  }
  void maybe(const char* key, std::optional<std::int64_t>& value) const {
    value = kube::int_at(from_, key);
  }
  void maybe(const char* key, std::optional<bool>& value) const {
    if (const auto* found = kube::find(from_, key); found != nullptr && found->is_boolean()) {
      value = found->get<bool>();
    }
  }
  template <typename Describe>
  void object(const char* key, Describe describe) const {
    if (const auto* found = kube::find(from_, key); found != nullptr && found->is_object()) {
      describe(Reader{*found});
    }
  }
  template <typename Item, typename Describe>
  void list(const char* key, std::vector<Item>& items, Describe describe) const {
    if (const auto* found = kube::find(from_, key); found != nullptr && found->is_array()) {
      for (const auto& entry : *found) {
        describe(Reader{entry}, items.emplace_back());
      }
    }
  }

 private:
  const nlohmann::json& from_;
};

template <typename Visitor, typename Certificate>
void describe_certificate(Visitor&& at, Certificate& state) {
  at.maybe("notAfter", state.not_after);
  at.text("pendingRequest", state.pending_request);
  at.maybe("pendingSince", state.pending_since);
  at.text("problem", state.problem);
}

// `Status`: const DaemonStatus for a Writer, DaemonStatus for a Reader.
template <typename Visitor, typename Status>
void describe(Visitor&& top, Status& status) {
  top.text("version", status.version);
  top.process("pid", status.pid);
  top.text("since", status.since);
  top.text("node", status.node);
  top.text("phase", status.phase);
  top.text("summary", status.summary);
  top.flag("registered", status.registered);
  top.flag("healthy", status.healthy);
  top.list("problems", status.problems, [](auto&& at, auto& problem) {
    at.text("what", problem.what);
    at.text("detail", problem.detail);
  });
  top.text("apiServer", status.api_server);
  top.text("refusal", status.refusal);
  top.object("lease", [&](auto&& at) {
    at.flag("held", status.lease_held);
    at.text("renewedAt", status.lease_renewed_at);
    at.text("error", status.lease_error);
  });
  top.object("ready", [&](auto&& at) {
    at.text("status", status.ready_status);
    at.text("reason", status.ready_reason);
    at.text("message", status.ready_message);
  });
  top.object("slurm", [&](auto&& at) {
    at.text("node", status.slurm_node);
    at.text("cluster", status.slurm_cluster);
    at.text("source", status.slurm_source);
    at.text("state", status.slurm_state);
    at.text("answeredAt", status.slurm_answered_at);
    at.maybe("ageSeconds", status.slurm_age_seconds);
    at.flag("stale", status.slurm_stale);
    at.text("failure", status.slurm_failure);
  });
  top.object("slurmd", [&](auto&& at) {
    at.maybe("running", status.slurmd_running);
    at.process("pid", status.slurmd_pid);
    at.text("version", status.slurmd_version);
  });
  top.object("clientCertificate", [&](auto&& at) { describe_certificate(at, status.client); });
  top.object("servingCertificate", [&](auto&& at) {
    describe_certificate(at, status.serving);
    at.flag("selfSigned", status.serving.self_signed);
  });
  top.object("metal3", [&](auto&& at) {
    at.text("uuid", status.metal3_uuid);
    at.text("providerID", status.provider_id);
  });
  top.object("pods", [&](auto&& at) {
    at.count("rejected", status.pods_rejected);
    at.count("finished", status.pods_finished);
    at.count("waiting", status.pods_waiting);
  });
}

}  // namespace

std::string to_json(const DaemonStatus& status) {
  Writer writer;
  describe(writer, status);
  return writer.result().dump(2, ' ', false, Ordered::error_handler_t::replace) + "\n";
}

Result<DaemonStatus> daemon_status_from_json(const std::string& text) {
  const auto object = kube::parse_json(text);
  DaemonStatus out;
  if (object) {
    describe(Reader{*object}, out);
  }
  if (out.node.empty() || out.phase.empty()) {
    return Error{Code::kInvalid, "the answer is not slurmlet's"};
  }
  return out;
}

}  // namespace slurmlet::status

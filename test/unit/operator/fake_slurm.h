#pragma once

// slurmctld in memory for the operator's commands: scontrol's dump, configuration, update, requeue
// and delete, squeue and scancel. A command takes effect when it is polled.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/command.h"
#include "base/text.h"

namespace slurmlet::op {

struct FakeNode {
  std::string base = "IDLE";
  std::set<std::string> flags;
  std::string reason;
  std::string host = {};  // NodeHostName; "" = its name
  std::string address = "a";
  std::string partitions = "p";
  std::string state() const {
    std::string text = base;
    for (const auto& flag : flags) {
      text += "+" + flag;
    }
    return text;
  }
};

struct FakeJob {
  std::string node;
  bool completing = false;
  bool can_requeue = true;
  bool never_ends = false;  // in spite of requeue and scancel
};

inline bool has(const std::vector<std::string>& argv, std::string_view word) {
  return std::find(argv.begin(), argv.end(), word) != argv.end();
}
// Of the argument `key`, e.g. "state="; "" = there is none.
inline std::string value(const std::vector<std::string>& argv, std::string_view key) {
  const auto found = std::find_if(argv.begin(), argv.end(),
                                  [&](const std::string& one) { return one.starts_with(key); });
  return found == argv.end() ? "" : found->substr(key.size());
}

struct FakeSlurm {
  std::map<std::string, FakeNode> nodes;
  std::map<std::string, FakeJob> jobs;  // on nodes, by id
  std::function<void(const std::string&)> before_end = [](const std::string&) {};
  std::vector<std::string> ended;  // "requeue 7"
  std::string requeued_from;
  int queues = 0;  // squeue
  bool away = false;
  int requeue_fails = 0;       // exit code, or negative signal
  std::string requeue_says{};  // on stderr
  Duration answers_after = std::chrono::milliseconds{10};
  using Update = std::function<void(const std::string& node, const std::string& state)>;
  Update before_update = [](const std::string&, const std::string&) {};
  Update after_update = before_update;
  std::set<std::string> rejects;      // updates of these nodes
  std::string private_data = "none";  // PrivateData
  std::string admin_level = "None";   // ours
  int commands = 0;                   // that change nodes
  std::vector<std::string> updates;
  // Slurmctld by host; the first that is up is in charge. A takeover ends it.
  std::vector<std::pair<std::string, bool>> controllers;
  int takeovers = 0;
  int dumps = 0;

  std::string record(const std::string& name) const {
    const FakeNode& node = nodes.at(name);
    return fmt::format(
        "NodeName={} Arch=x86_64 CPUAlloc=0 CPUTot=4 CPULoad=0.05 NodeAddr={} NodeHostName={} "
        "Version=22.05.8 RealMemory=8000 State={} Partitions={}{}\n",
        name, node.address, node.host.empty() ? name : node.host, state(name), node.partitions,
        node.reason.empty() ? "" : " Reason=" + node.reason + " [root@5]");
  }
  std::string dump() const {
    std::string text;
    for (const auto& [name, node] : nodes) {
      text += record(name);
    }
    return text.empty() ? "No nodes in the system\n" : text;
  }
  bool busy(const std::string& name) const {
    return std::any_of(jobs.begin(), jobs.end(),
                       [&](const auto& job) { return job.second.node == name; });
  }
  // The state, which depends on jobs.
  std::string state(const std::string& name) const {
    FakeNode node = nodes.at(name);
    if (busy(name) && node.base == "IDLE") {
      const bool runs = std::any_of(jobs.begin(), jobs.end(), [&](const auto& job) {
        return job.second.node == name && !job.second.completing;
      });
      node.base = runs ? "MIXED" : "IDLE";
      if (!runs) {
        node.flags.insert("COMPLETING");
      }
    }
    return node.state();
  }
  // Starts the job if the node's state permits.
  void submit(const std::string& id, const std::string& name, bool can_requeue = true) {
    const auto node = nodes.find(name);
    if (node != nodes.end() && node->second.base == "IDLE" &&
        !node->second.flags.contains("DRAIN")) {
      jobs[id] = {name, false, can_requeue};
    }
  }
  std::string squeue() {
    ++queues;
    // squeue shows a requeued job with the nodes of its last run.
    std::string text = "900|900|N/A|PENDING|0|1|1|N/A|" + requeued_from + "|\n";
    if (private_data.find("jobs") != std::string::npos && admin_level == "None") {
      return text;
    }
    for (const auto& [id, job] : jobs) {
      text +=
          fmt::format("{}|{}|N/A|{}|0|1|{}|1795190000|{}|\n", id, id,
                      job.completing ? "COMPLETING" : "RUNNING", job.can_requeue ? 1 : 0, job.node);
    }
    return text;
  }
  void end(const std::string& how, const std::string& id, CommandOutput& output) {
    const auto job = jobs.find(id);
    if (job == jobs.end() || (how == "requeue" && !job->second.can_requeue)) {
      output.exit_code = 1;
      output.err = "Requested operation is presently disabled for job " + id + "\n";
      return;
    }
    before_end(id);
    ended.push_back(how + " " + id);
    job->second.completing = !job->second.never_ends;
  }
  void remove(const std::string& name, CommandOutput& output) {
    if (busy(name) || !nodes.contains(name)) {
      output.exit_code = 1;
      output.err = "delete: Requested nodes are busy\n";
      return;
    }
    nodes.erase(name);
  }
  std::string ping() const {
    std::string text;
    for (const auto& [host, up] : controllers) {
      text += fmt::format("Slurmctld({}) at {} is {}\n", text.empty() ? "primary" : "backup", host,
                          up ? "UP" : "DOWN");
    }
    return text;
  }
  void take_over(std::size_t index) {
    ++takeovers;
    for (std::size_t i = 0; i < index; ++i) {
      controllers[i].second = false;
    }
  }
  std::string config() const {
    return "Configuration data as of 2026-11-28\nPrivateData             = " + private_data +
           "\nSlurmUser               = slurm(64030)\n";
  }
  // As in 24.11: the Reason is set first, outlasts its drain, and cannot be made empty.
  void update(const std::string& name, const std::vector<std::string>& argv,
              CommandOutput& output) {
    if (!nodes.contains(name) || rejects.contains(name)) {
      output.exit_code = 1;
      output.err = "slurm_update error: Invalid node name specified\n";
      return;
    }
    const std::string state = value(argv, "state=");
    before_update(name, state);
    FakeNode& node = nodes.at(name);
    updates.push_back(name + " " + argv.back());
    const std::string reason = value(argv, "reason=");
    node.reason = reason.empty() ? node.reason : reason;
    if (state == "undrain" && node.flags.contains("INVALID_REG")) {
      output.exit_code = 1;
      output.err = "slurm_update error: Invalid node state specified\n";
      return;
    }
    if (state == "drain") {
      node.flags.insert("DRAIN");
      node.flags.erase("FAIL");
    } else if (state == "fail") {
      node.flags.insert("FAIL");
      node.flags.erase("DRAIN");
    } else if (state == "undrain" || state == "resume") {
      node.flags.erase("DRAIN");
      node.base = state == "resume" && node.base == "DOWN" ? "IDLE" : node.base;
    }
    after_update(name, state);
  }
  // Tries all nodes even if some fail.
  void change(const std::vector<std::string>& argv, CommandOutput& output) {
    ++commands;
    const std::string names = value(argv, "nodename=");
    for (const auto name : split(names, ',')) {
      if (has(argv, "delete")) {
        remove(std::string{name}, output);
      } else {
        update(std::string{name}, argv, output);
      }
    }
  }
};

class FakeSlurmRunner final : public CommandRunner {
 public:
  explicit FakeSlurmRunner(FakeSlurm& slurm) : slurm_(slurm) {}
  Status start(const CommandSpec& spec, SteadyTime now) override {
    spec_ = spec;
    if (spec_.argv.front() == "/proc/self/exe") {  // with an alarm
      spec_.argv.erase(spec_.argv.begin(), spec_.argv.begin() + 3);
    }
    running_ = true;
    deadline_ = now + std::min(slurm_.answers_after, spec.timeout);
    in_time_ = slurm_.answers_after <= spec.timeout;
    read_ = spec.argv.back() == "node" ? slurm_.dump() : "";  // as the nodes are at its start
    return {};
  }
  bool running() const override { return running_; }
  SteadyTime deadline() const override { return deadline_; }
  std::vector<int> wake_fds() const override { return {}; }
  bool poll(SteadyTime now, CommandOutput& output) override {
    if (!running_ || now < deadline_) {
      return false;
    }
    running_ = false;
    output = {};
    output.timed_out = !in_time_;
    if (!in_time_) {
      return true;
    }
    if (slurm_.away) {
      output.exit_code = 1;
      output.err = "slurm_load_node error: Unable to contact slurm controller (connect failure)\n";
    } else if (spec_.argv.back() == "ping") {
      output.out = slurm_.ping();
    } else if (has(spec_.argv, "takeover")) {
      slurm_.take_over(parse_int<std::size_t>(spec_.argv.back()).value_or(0));
    } else if (spec_.argv.front() == "squeue") {
      output.out = slurm_.squeue();
    } else if (spec_.argv.front() == "scancel") {
      slurm_.end("cancel", spec_.argv.back(), output);
    } else if (has(spec_.argv, "requeue") && slurm_.requeue_fails != 0) {
      output.signal = std::max(0, -slurm_.requeue_fails);
      output.exit_code = std::max(0, slurm_.requeue_fails);
      output.err = slurm_.requeue_says;
    } else if (has(spec_.argv, "requeue")) {
      slurm_.end("requeue", spec_.argv.back(), output);
    } else if (spec_.argv.front() == "sacctmgr") {
      output.out = slurm_.admin_level + "\n";
    } else if (spec_.argv.back() == "config") {
      output.out = slurm_.config();
    } else if (spec_.argv.back() == "node") {
      ++slurm_.dumps;
      output.out = read_;
      output.took = slurm_.answers_after;
    } else {
      slurm_.change(spec_.argv, output);
    }
    return true;
  }

 private:
  FakeSlurm& slurm_;
  CommandSpec spec_;
  std::string read_;
  bool running_ = false, in_time_ = true;
  SteadyTime deadline_{};
};

}  // namespace slurmlet::op

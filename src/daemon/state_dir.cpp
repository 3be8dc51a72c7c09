#include "daemon/state_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "kube/json_read.h"

namespace slurmlet::daemon {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

constexpr std::size_t kMaxBytes = 16384;  // of a file

std::filesystem::path deletion_file(const DeletionScope& scope) {
  return std::filesystem::path{scope.state_dir} / "node-end.json";
}

// Missing metadata is not a changed identity.
bool is_new(const std::string& now, const std::string& saved) {
  return !now.empty() && now != saved;
}

bool is_of(const Json& document, const DeletionScope& scope) {
  const auto text = [&document](const char* key) { return kube::string_at(document, key); };
  return !scope.boot_id.empty() && text("bootID") == scope.boot_id &&
         text("nodeName") == scope.node_name && !is_new(scope.metal3_uuid, text("metal3UUID")) &&
         !is_new(scope.provider_id, text("providerID")) &&
         !is_new(scope.credential, text("credential"));
}

}  // namespace

Result<UniqueFd> lock_state_directory(const std::filesystem::path& directory) {
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);
  const std::filesystem::path path = directory / "lock";
  UniqueFd file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) {
    return UniqueFd{};
  }
  // A record lock, not flock(2): a child before its exec would inherit that, and hold it after the
  // daemon is killed.
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(file.get(), F_SETLK, &whole) != 0) {
    if (errno != EACCES && errno != EAGAIN) {
      return UniqueFd{};
    }
    return Error{
        Code::kConflict,
        fmt::format("slurmlet is already running with the state directory {} (process {}): stop "
                    "that one, or give this one its own --state-dir and --nodename",
                    directory.string(), read_trimmed(path))};
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  // For people only: the lock holds without it.
  static_cast<void>(::ftruncate(file.get(), 0) == 0 &&
                    ::write(file.get(), pid.data(), pid.size()) > 0);
  return file;
}

Result<std::optional<node::DeletionRecord>> load_deletion_record(const DeletionScope& scope,
                                                                 SteadyTime now) {
  const auto text = read_file(deletion_file(scope), kMaxBytes);
  if (!text) {
    return text.error().code == Code::kNotFound
               ? Result<std::optional<node::DeletionRecord>>{std::optional<node::DeletionRecord>{}}
               : text.error();
  }
  const Json document = Json::parse(*text, nullptr, false);
  if (!document.is_object() || kube::string_at(document, "nodeUID").empty()) {
    return Error{Code::kInvalid, deletion_file(scope).string() +
                                     " is broken; slurmlet continues without it: if the Node was "
                                     "deleted with its Machine, it is registered again"};
  }
  if (!is_of(document, scope)) {
    return std::optional<node::DeletionRecord>{};
  }
  node::DeletionRecord record{kube::string_at(document, "nodeUID"),
                              kube::string_at(document, "machine"),
                              kube::bool_at(document, "detached")};
  if (const auto gone = kube::int_at(document, "goneAtMilliseconds"); gone && *gone >= 0) {
    record.gone_at = std::min(SteadyTime{milliseconds{*gone}}, now);  // never later than now
    record.deleted_at = kube::string_at(document, "deletedAt");
  }
  return std::optional{std::move(record)};
}

Status save_deletion_record(const DeletionScope& scope,
                            const std::optional<node::DeletionRecord>& record) {
  const auto file = deletion_file(scope);
  if (!record || scope.boot_id.empty()) {
    touches_file(file.native());
    std::error_code error;
    std::filesystem::remove(file, error);
    return error ? Status{errno_error(error.value(), "remove " + file.string())} : Status{};
  }
  Json document{{"bootID", scope.boot_id},         {"nodeName", scope.node_name},
                {"metal3UUID", scope.metal3_uuid}, {"providerID", scope.provider_id},
                {"credential", scope.credential},  {"nodeUID", record->uid},
                {"machine", record->machine},      {"detached", record->detached}};
  if (record->gone_at) {
    document["goneAtMilliseconds"] =
        std::chrono::duration_cast<milliseconds>(record->gone_at->time_since_epoch()).count();
    document["deletedAt"] = record->deleted_at;
  }
  return write_file_atomic(
      file, document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", 0600);
}

void StateSaver::save(const std::string& lost, Write write) {
  waiting_[lost] = std::move(write);
  step();
}

void StateSaver::step() {
  if (call_.busy() && !take(Duration::zero())) {
    return;
  }
  while (!waiting_.empty()) {
    const auto next = waiting_.begin();
    if (!call_.begin(next->second, SteadyTime{})) {
      return;  // too many file operations hang
    }
    under_way_ = next->first;
    waiting_.erase(next);
    if (!take(file_patience)) {
      log::warning(under_way_ + " yet: " + call_.file() + " does not answer");
      return;
    }
  }
}

// Whether it has ended.
bool StateSaver::take(Duration patience) {
  const auto saved = call_.take(patience);
  if (saved && !*saved) {
    log::warning(under_way_ + ": " + saved->error().message);
  }
  return saved.has_value();
}

void StateSaver::flush(Duration patience) {
  if (call_.busy()) {
    take(patience);
  }
  step();
}

}  // namespace slurmlet::daemon

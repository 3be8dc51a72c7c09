#include "metal3/saved_state.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.h"

namespace slurmlet::metal3 {
namespace {

using Json = nlohmann::json;

constexpr const char* kFileName = "metal3.json";

// Nothing unless `document` is what save_state() writes.
std::optional<SavedState> from_json(const Json& document) {
  if (!document.is_object()) {
    return std::nullopt;
  }
  SavedState state;
  for (const auto& [key, field] :
       {std::pair{"uuid", &state.uuid}, std::pair{"providerID", &state.provider_id},
        std::pair{"nodeName", &state.node_name}}) {
    const auto found = document.find(key);
    if (found == document.end() || !found->is_string()) {
      return std::nullopt;
    }
    *field = found->get<std::string>();
  }
  return state.uuid.empty() ? std::nullopt : std::optional{state};
}

}  // namespace

Result<std::optional<SavedState>> load_state(const std::filesystem::path& state_dir, StateUse use) {
  const auto file = state_dir / kFileName;
  const auto text = read_file(file);
  if (!text && text.error().code == Code::kNotFound) {
    return std::optional<SavedState>{};
  }
  if (!text) {
    return text.error();
  }
  if (auto state = from_json(Json::parse(*text, nullptr, false))) {
    return state;
  }
  if (use == StateUse::kLook) {
    return Error{Code::kInvalid, file.string() + " is broken; slurmlet continues without it"};
  }
  const std::string aside = file.string() + ".broken";
  std::error_code error;
  std::filesystem::rename(file, aside, error);
  return Error{
      Code::kInvalid,
      fmt::format("{} is broken{}. slurmlet continues without it; if the Node has been deleted in "
                  "the meantime, set node.providerID to the providerID of its Machine",
                  file.string(),
                  error ? std::string{} : fmt::format(" and was set aside as {}", aside))};
}

Status save_state(const std::filesystem::path& state_dir, const SavedState& state) {
  const Json document = {
      {"uuid", state.uuid}, {"providerID", state.provider_id}, {"nodeName", state.node_name}};
  // Not UTF-8 (a broken provider ID) must not throw: it is written with replacement characters.
  const std::string text = document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return write_file_atomic(state_dir / kFileName, text, 0600);
}

Status discard_state(const std::filesystem::path& state_dir) {
  const auto file = state_dir / kFileName;
  std::error_code error;
  std::filesystem::remove(file, error);
  return error ? Status{errno_error(error.value(), "remove " + file.string())} : Status{};
}

}  // namespace slurmlet::metal3

#include "metal3/saved_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace slurmlet::metal3 {
namespace {

using Json = nlohmann::json;

constexpr const char* kFileName = "metal3.json";
constexpr const char* kUuid = "uuid";
constexpr const char* kProviderId = "providerID";
constexpr const char* kMetadata = "metadata";

using Fields = std::initializer_list<std::pair<const char*, std::string*>>;

// False unless `object` has all of them as strings.
bool read_strings(const Json& object, const Fields& fields) {
  return object.is_object() && std::all_of(fields.begin(), fields.end(), [&](const auto& field) {
           const auto found = object.find(field.first);
           if (found == object.end() || !found->is_string()) {
             return false;
           }
           *field.second = found->template get<std::string>();
           return true;
         });
}

// Nothing unless `document` is what save_state() writes.
std::optional<SavedState> from_json(const Json& document) {
  SavedState state;
  if (!read_strings(document, {{kUuid, &state.uuid},
                               {kProviderId, &state.provider_id},
                               {"nodeName", &state.node_name}}) ||
      state.uuid.empty()) {
    return std::nullopt;
  }
  if (const auto found = document.find(kMetadata); found != document.end()) {
    MachineId& metadata = state.metadata.emplace();
    if (!read_strings(*found, {{kUuid, &metadata.uuid}, {kProviderId, &metadata.provider_id}})) {
      return std::nullopt;
    }
  }
  return state;
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
  if (use == StateUse::kReadOnly) {
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
  Json document = {
      {kUuid, state.uuid}, {kProviderId, state.provider_id}, {"nodeName", state.node_name}};
  if (state.metadata) {
    document[kMetadata] = {{kUuid, state.metadata->uuid},
                           {kProviderId, state.metadata->provider_id}};
  }
  // An invalid provider ID may not be UTF-8, which must not throw.
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

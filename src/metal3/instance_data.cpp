#include "metal3/instance_data.h"

#include "base/file.h"
#include "metal3/metadata_json.h"

namespace slurmlet::metal3 {

Result<Reading> parse_instance_data(std::string_view text, const std::string& file) {
  const auto raw = from_instance_data(text, file);
  return raw ? judge(*raw) : Result<Reading>{raw.error()};
}

Result<Reading> read_instance_data(const std::filesystem::path& file) {
  const auto text = read_file(file);
  return text ? parse_instance_data(*text, file.string()) : Result<Reading>{text.error()};
}

}  // namespace slurmlet::metal3

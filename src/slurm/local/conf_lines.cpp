#include "slurm/local/conf_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/text.h"

namespace slurmlet::slurm {
namespace {

// A site may list ten thousand nodes one by one.
constexpr std::size_t kMaxConfBytes = std::size_t{32} << 20;
constexpr int kMaxIncludeDepth = 16;
constexpr int kMaxFiles = 1000;

bool is_key_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view skip_spaces(std::string_view text) {
  return text.substr(static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_space) -
                                              text.begin()));
}

// Takes a value off the front of `text`: up to white space, or between double quotes.
std::string take_value(std::string_view& text) {
  std::size_t end = 0;
  std::string value;
  if (text.starts_with('"')) {
    const auto close = text.find('"', 1);
    end = close == std::string_view::npos ? text.size() : close + 1;
    value = text.substr(1, end - (close == std::string_view::npos ? 1 : 2));
  } else {
    end = static_cast<std::size_t>(std::find_if(text.begin(), text.end(), is_space) - text.begin());
    value = text.substr(0, end);
  }
  text.remove_prefix(end);
  return value;
}

// As src/common/parse_config.c: a "\" takes the meaning from the character after it, so that a "#"
// begins a comment and a "\" at the end continues the line only after an even number of others.
std::string_view without_comment(std::string_view line) {
  bool escaped = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && !escaped) {
      return line.substr(0, i);
    }
    escaped = line[i] == '\\' && !escaped;
  }
  return line;
}

// Cuts the "\" at its end that continues the line.
bool cut_continuation(std::string_view& line) {
  const std::string_view text = line.substr(0, line.find_last_not_of(" \t\r\v\f") + 1);
  const std::size_t last_other = text.find_last_not_of('\\');
  const std::size_t slashes =
      text.size() - (last_other == std::string_view::npos ? 0 : last_other + 1);
  if (slashes % 2 == 0) {
    return false;
  }
  line = text.substr(0, text.size() - 1);
  return true;
}

std::string without_escapes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    i += text[i] == '\\' ? 1 : 0;
    if (i < text.size()) {
      out += text[i];
    }
  }
  return out;
}

std::optional<std::string> included_file(std::string_view line) {
  constexpr std::string_view kInclude = "include";
  line = trim(line);
  if (line.size() <= kInclude.size() || to_lower(line.substr(0, kInclude.size())) != kInclude ||
      !is_space(line[kInclude.size()])) {
    return std::nullopt;
  }
  return std::string{trim(line.substr(kInclude.size()))};
}

struct ConfReader {
  std::filesystem::path directory;  // of the first file
  const TrustedUsers& users;
  const std::function<void(const ConfLine&)>& take;
  std::string cluster_name = {};
  std::vector<std::string> left_out = {};
  int files = 0;

  Status take_line(const std::string& text, int depth) {
    if (const auto file = included_file(text)) {
      return include((directory / with_cluster_name(*file)).string(), depth + 1);
    }
    if (const ConfLine line = parse_conf_line(text); !line.pairs.empty()) {
      cluster_name = to_lower(line.get("clustername").value_or(cluster_name));
      take(line);
    }
    return {};
  }

  // %c is the name that stands before the Include.
  std::string with_cluster_name(std::string file) const {
    for (auto at = file.find("%c"); at != std::string::npos && !cluster_name.empty();
         at = file.find("%c", at + cluster_name.size())) {
      file.replace(at, 2, cluster_name);
    }
    return file;
  }

  Status include(const std::string& path, int depth) {
    if (depth > kMaxIncludeDepth) {
      return Error{Code::kInvalid, fmt::format("{}: files include each other", path)};
    }
    if (++files > kMaxFiles) {
      return Error{Code::kInvalid,
                   fmt::format("{}: more than {} files are included", path, kMaxFiles)};
    }
    const auto content = read_trusted_file(path, users, kMaxConfBytes);
    if (!content && content.error().code == Code::kInvalid) {
      return content.error();  // others may change it, and Slurm's own commands would read it
    }
    if (!content) {
      left_out.push_back("Include " + content.error().message);
      return {};
    }
    return read(*content, depth);
  }

  Status read(std::string_view rest, int depth) {
    std::string logical;
    while (!rest.empty()) {
      const auto physical = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(physical.size() + 1, rest.size()));
      std::string_view line = without_comment(physical);
      const bool goes_on = cut_continuation(line);
      logical += line;
      if (goes_on && !rest.empty()) {
        continue;
      }
      if (auto taken = take_line(without_escapes(logical), depth); !taken) {
        return taken;
      }
      logical.clear();
    }
    return {};
  }
};

}  // namespace

std::optional<std::string> ConfLine::get(std::string_view key) const {
  for (const auto& [name, value] : pairs) {
    if (name == key) {
      return value;
    }
  }
  return std::nullopt;
}

ConfLine parse_conf_line(std::string_view text) {
  ConfLine line;
  while (true) {
    text = skip_spaces(text);
    if (text.empty()) {
      return line;
    }
    const auto key_end = static_cast<std::size_t>(
        std::find_if_not(text.begin(), text.end(), is_key_char) - text.begin());
    const std::string key = to_lower(text.substr(0, key_end));
    std::string_view after = skip_spaces(text.substr(key_end));
    // "Key+=value" and "Key-=value" are pairs as well.
    if (after.size() > 1 && after[1] == '=' &&
        std::string_view{"+-*/"}.find(after[0]) != std::string_view::npos) {
      after.remove_prefix(1);
    }
    if (key.empty() || !after.starts_with('=')) {
      const auto word_end = std::find_if(text.begin(), text.end(), is_space) - text.begin();
      text.remove_prefix(static_cast<std::size_t>(word_end));
      continue;
    }
    text = skip_spaces(after.substr(1));
    line.pairs.emplace_back(key, take_value(text));
  }
}

Result<std::vector<std::string>> for_each_conf_line(
    const std::string& path, const TrustedUsers& users,
    const std::function<void(const ConfLine&)>& take) {
  const auto content = TRY(read_trusted_file(path, users, kMaxConfBytes));
  ConfReader reader{std::filesystem::path{path}.parent_path(), users, take};
  TRY(reader.read(content, 0));
  return std::move(reader.left_out);
}

}  // namespace slurmlet::slurm

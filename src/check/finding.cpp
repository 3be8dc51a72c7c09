#include "check/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/plain_text.h"
#include "base/text.h"

namespace slurmlet::check {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kSubjectWidth = 16;

struct Mark {
  const char *word, *mark;
};

const Mark& mark_of(Severity severity) {
  // In the order of Severity.
  static constexpr std::array<Mark, 4> kMarks = {
      {{"ok", "+"}, {"info", "-"}, {"warning", "!"}, {"error", "x"}}};
  return kMarks[static_cast<std::size_t>(severity)];
}

long count(const Findings& findings, Severity severity) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& one) { return one.severity == severity; });
}

std::string summary(const Findings& findings) {
  const long errors = count(findings, Severity::kError);
  const long warnings = count(findings, Severity::kWarning);
  if (errors == 0 && warnings == 0) {
    return "no errors";
  }
  std::string out = errors > 0 ? counted(errors, "error") : "";
  if (warnings > 0) {
    out += (out.empty() ? "" : ", ") + counted(warnings, "warning");
  }
  return out;
}

// "#check-serving-cert", as GitHub and the site make it of the heading "check: serving cert".
std::string anchor(const std::string& subject) {
  std::string out = "#check-";
  for (const char c : to_lower(subject)) {
    if (c == ' ') {
      out += '-';
    } else if (c != '.') {
      out += c;
    }
  }
  return out;
}

// Where each warning and error is explained; "" without one.
std::string help(const Findings& findings) {
  std::vector<std::string> anchors;
  for (const Finding& one : findings) {
    if (one.severity >= Severity::kWarning &&
        std::find(anchors.begin(), anchors.end(), anchor(one.subject)) == anchors.end()) {
      anchors.push_back(anchor(one.subject));
    }
  }
  return anchors.empty() ? "" : "help: docs/troubleshooting.md" + join(anchors, ", ") + "\n";
}

Json text_or_null(const std::string& text) { return text.empty() ? Json{} : Json(text); }

}  // namespace

Finding ok(std::string found) { return {Severity::kOk, std::move(found)}; }
Finding info(std::string found) { return {Severity::kInfo, std::move(found)}; }
Finding warning(std::string found, std::string fix, std::string cause) {
  return {Severity::kWarning, std::move(found), std::move(fix), std::move(cause)};
}
Finding error(std::string found, std::string fix, std::string cause) {
  return {Severity::kError, std::move(found), std::move(fix), std::move(cause)};
}

Findings run(const std::vector<Check>& checks) {
  Findings out;
  for (const Check& each : checks) {
    for (Finding& finding : each.look()) {
      finding.subject = each.subject;
      if (finding.severity >= Severity::kWarning && finding.fix.empty()) {
        finding.fix = each.fix;
      }
      out.push_back(std::move(finding));
    }
  }
  return out;
}

std::string findings_text(const Findings& findings) {
  std::string out;
  for (const auto& one : findings) {
    out += fmt::format("{} {:<{}} {}", mark_of(one.severity).mark, one.subject, kSubjectWidth,
                       one.found);
    out += (one.cause.empty() ? "" : ": " + one.cause) + "\n";
    if (!one.fix.empty()) {
      out += fmt::format("{:<{}} -> {}\n", "", kSubjectWidth + 2, one.fix);
    }
  }
  return out + help(findings) + summary(findings) + "\n";
}

std::string findings_json(const Findings& findings, const std::string& node) {
  Json list = Json::array();
  for (const auto& one : findings) {
    list.push_back({{"subject", one.subject},
                    {"severity", mark_of(one.severity).word},
                    {"found", one.found},
                    {"cause", text_or_null(one.cause)},
                    {"fix", text_or_null(one.fix)}});
  }
  const Json out{{"version", SLURMLET_VERSION},
                 {"node", text_or_null(node)},
                 {"errors", count(findings, Severity::kError)},
                 {"warnings", count(findings, Severity::kWarning)},
                 {"findings", std::move(list)}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int findings_exit_code(const Findings& findings) {
  int code = 0;
  for (const auto& one : findings) {
    if (one.severity == Severity::kError) {
      code = std::max(code, one.subject == kConfiguration ? 2 : 1);
    }
  }
  return code;
}

int report(const Findings& findings, const std::string& text) {
  const std::string shown = shown_controls(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  return findings_exit_code(findings);
}

std::string milliseconds_text(Duration took) {
  return fmt::format("{} ms", std::chrono::round<std::chrono::milliseconds>(took).count());
}

}  // namespace slurmlet::check

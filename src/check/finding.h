#pragma once

// What `slurmlet check` and `slurmlet-operator check` have in common: a table of checks, what each
// found, and all of it for people, for programs and as an exit code.
//
// The JSON: {version, node, errors, warnings, findings: [{subject, severity, found, cause, fix}]}
// with severity "ok", "info", "warning" or "error"; cause and fix may be null. Keys stay.

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace slurmlet::check {

enum class Severity {
  kOk,
  kInfo,  // not checked, or not there and not needed
  kWarning,
  kError,
};

struct Finding {
  Severity severity = Severity::kOk;
  std::string found;
  std::string fix = {};
  std::string cause = {};    // "" = plain from what was found
  std::string subject = {};  // of its check
  bool operator==(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

Finding ok(std::string found);
Finding info(std::string found);
Finding warning(std::string found, std::string fix = "", std::string cause = "");
Finding error(std::string found, std::string fix = "", std::string cause = "");

// One row of the table: what people look for, how it is looked at, and what to do about a warning
// or an error that says nothing better.
struct Check {
  const char* subject;
  std::function<Findings()> look;
  std::string fix = {};
};

inline constexpr char kConfiguration[] = "configuration";

// Runs the checks in their order; each may use what an earlier one learnt.
Findings run(const std::vector<Check>& checks);

// + good, - not checked, ! warning, x error: any console shows them.
std::string findings_text(const Findings& findings);
std::string findings_json(const Findings& findings, const std::string& node);

// 0 without errors, 2 when the configuration is one, else 1.
int findings_exit_code(const Findings& findings);

// Prints their text or JSON to stdout, fit for a terminal. The exit code.
int report(const Findings& findings, const std::string& text);

// "12 ms"
std::string milliseconds_text(Duration took);

}  // namespace slurmlet::check

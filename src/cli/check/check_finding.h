#pragma once

// One thing that `slurmlet check` found, and all of them for people, for programs and as an exit
// code. Pure.
//
// The JSON: {version, node, errors, warnings, findings: [{subject, severity, found, cause, cure}]}
// with severity "ok", "info", "warning" or "error"; cause and cure may be null. Keys stay.

#include <string>
#include <vector>

#include "base/clock.h"
#include "config/sources.h"

namespace slurmlet::cli {

enum class Severity {
  kOk,
  kInfo,  // not looked at, or not there and not needed
  kWarning,
  kError,
};

struct Finding {
  std::string subject;  // kSubject…: what people look for
  Severity severity = Severity::kOk;
  std::string found;
  std::string cause = {};  // "" = plain from what was found
  std::string cure = {};
  bool operator==(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

inline constexpr char kSubjectConfiguration[] = "configuration";
inline constexpr char kSubjectNodeName[] = "node name";
inline constexpr char kSubjectMetadata[] = "metal3 metadata";
inline constexpr char kSubjectIdentity[] = "saved identity";
inline constexpr char kSubjectCredential[] = "credential";
inline constexpr char kSubjectBootstrap[] = "bootstrap";
inline constexpr char kSubjectServing[] = "serving cert";
inline constexpr char kSubjectServer[] = "API server";
inline constexpr char kSubjectClock[] = "clock";
inline constexpr char kSubjectRights[] = "rights";
inline constexpr char kSubjectNode[] = "node";
inline constexpr char kSubjectLease[] = "lease";
inline constexpr char kSubjectSlurmd[] = "slurmd";
inline constexpr char kSubjectSlurmctld[] = "slurmctld";
inline constexpr char kSubjectMunge[] = "munge";
inline constexpr char kSubjectGpus[] = "GPUs";
inline constexpr char kSubjectPorts[] = "ports";
inline constexpr char kSubjectDaemon[] = "daemon";

// `unicode` says whether the terminal shows ✔ ! ✘ →.
std::string findings_text(const Findings& findings, bool unicode);
std::string findings_json(const Findings& findings, const std::string& node);

// 0 without errors, 2 when the configuration is one, else 1.
int findings_exit_code(const Findings& findings);

// "12 ms"
std::string milliseconds_text(Duration took);

// Whether the locale by LC_ALL, LC_CTYPE and LANG (the first that is set counts) is UTF-8.
bool is_utf8_locale(const config::EnvLookup& environment);

}  // namespace slurmlet::cli

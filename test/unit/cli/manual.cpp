#include "cli/packaged_texts.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "base/text.h"
#include "config/settings_table.h"

namespace slurmlet::cli {
namespace {

constexpr std::string_view kHead =
    R"(.\" Made from the table of settings (test/unit/cli/manual.cpp); a test keeps it current.
.TH SLURMLET.YAML 5 2026-11-22 slurmlet "File Formats"
.SH NAME
slurmlet.yaml \- configuration of slurmlet
.SH SYNOPSIS
.I )";

constexpr std::string_view kDescription = R"(
.SH DESCRIPTION
.BR slurmlet (8)
reads this file when it starts; a change takes
.BR "systemctl restart slurmlet" ,
over which the Node stays Ready.
It is YAML or JSON, with these two keys and those below:
.PP
.in +4n
.EX
)";

constexpr std::string_view kRules = R"(.EE
.in
.PP
Every setting has a default, and the file may be absent. Flags override environment variables,
these override the file, and the file overrides the defaults.
.PP
Beside
.I config.yaml
the files
.I config.d/*.yaml
are read (beside
.IR NAME .yaml:
.IR NAME .d/*.yaml),
in the order of their names. They have the same form; later ones override
earlier ones, and mappings are merged. A setting that is
.B null
reverts to its default, whatever the earlier files set (a mapping becomes empty); an empty text or an
empty group changes nothing, but an empty text is an error where it would mean that more is trusted (CAs,
their hashes, slurmrestd's user). All these files, and those that they name, must be regular files.
.PP
Unknown keys, repeated keys, invalid values and YAML's anchors, aliases and tags are rejected: the
message names the file, the line, the key and a suggested fix, and
.B slurmlet
ends with exit code 2. Try a changed file with
.BR "slurmlet check" .
.PP
Durations are written as in
.BR 90s ,
.B 1m30s
or
.BR 500ms .
The dots in the names below stand for nesting:
.B slurm.pollInterval
is the key
.B pollInterval
under
.BR slurm .
A mapping is one of YAML; as a flag or in the environment it is
.IR KEY = VALUE [, KEY = VALUE ...].
.SH SETTINGS
)";

constexpr std::string_view kTail = R"(.SH EXAMPLE
.EX
apiVersion: slurmlet.io/v1alpha1
kind: SlurmletConfiguration
kubernetes:
  bootstrapKubeconfig: /etc/slurmlet/bootstrap\-kubeconfig
slurm:
  pollInterval: 2m
node:
  labels:
    example.com/rack: r07
.EE
.SH SEE ALSO
.BR slurmlet (8),
.BR slurm.conf (5)
)";

// For running text: what roff would take for its own.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  // A control character at the beginning of a line.
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", escaped(text)); }

std::string type_text(const config::Row& row) {
  if (config::is_bool(row)) {
    return "true or false";
  }
  if (const auto names = config::choices(row); !names.empty()) {
    return join(names, ", ");
  }
  if (config::type_name(row) == "int" && row.maximum != std::numeric_limits<int>::max()) {
    return fmt::format("{} to {}", row.minimum, row.maximum);
  }
  return std::string{config::type_name(row)};
}

std::string entry(const config::Row& row) {
  const std::string fallback = config::default_text(row);
  std::string out = fmt::format(".TP\n{} ({}", bold(row.key), escaped(type_text(row)));
  out += fallback.empty() ? ")\n" : fmt::format("; default {})\n", bold(fallback));
  out += fmt::format("{}.\n", escaped(row.help));
  if (fallback.empty() && !row.when_unset.empty()) {
    out += fmt::format("Default: {}.\n", escaped(row.when_unset));
  }
  out += fmt::format("Flag {}", bold(row.flag));
  if (!row.environment.empty()) {
    out += fmt::format(", environment variable {}", bold(row.environment));
  }
  return out + ".\n";
}

}  // namespace

std::string settings_manual() {
  std::string out =
      fmt::format("{}{}{}apiVersion: {}\nkind: {}\n{}", kHead, escaped(config::kDefaultConfigFile),
                  kDescription, config::kApiVersion, config::kKind, kRules);
  std::string_view section;
  for (const auto& row : config::settings_table()) {
    if (config::section_of(row) != section) {
      section = config::section_of(row);
      out += fmt::format(".SS {}\n", section);
    }
    out += entry(row);
  }
  out += kTail;
  return out;
}

}  // namespace slurmlet::cli

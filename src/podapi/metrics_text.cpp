#include "podapi/metrics_text.h"

#include <fmt/format.h>

#include <cmath>

namespace slurmlet::podapi {
namespace {

// Help texts escape backslash and line feed; label values the double quote too.
void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

std::string number(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "+Inf" : "-Inf";
  }
  // The shortest text that reads back as the same double; below 1e16 without an exponent.
  return fmt::format("{}", value);
}

void append_sample(std::string& out, const std::string& name, const Sample& sample) {
  out += name;
  char separator = '{';
  for (const auto& [label, value] : sample.labels) {
    out += separator;
    out += label;
    out += "=\"";
    append_escaped(out, value, true);
    out += '"';
    separator = ',';
  }
  if (!sample.labels.empty()) {
    out += '}';
  }
  out += ' ';
  out += number(sample.value);
  if (sample.timestamp_ms) {
    out += fmt::format(" {}", *sample.timestamp_ms);
  }
  out += '\n';
}

}  // namespace

std::string metrics_text(const std::vector<MetricFamily>& families) {
  std::string out;
  for (const MetricFamily& family : families) {
    if (!family.help.empty()) {
      out += "# HELP " + family.name + " ";
      append_escaped(out, family.help, false);
      out += '\n';
    }
    out += fmt::format("# TYPE {} {}\n", family.name,
                       family.type == MetricType::kCounter ? "counter" : "gauge");
    for (const Sample& sample : family.samples) {
      append_sample(out, family.name, sample);
    }
  }
  return out;
}

}  // namespace slurmlet::podapi

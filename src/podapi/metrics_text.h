#pragma once

// Prometheus' text exposition format 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format). Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slurmlet::podapi {

enum class MetricType { kCounter, kGauge, kHistogram, kUntyped };

struct Sample {
  std::vector<std::pair<std::string, std::string>> labels;  // name, value
  double value = 0;
  std::string suffix;  // "_bucket", "_sum", "_count" of a histogram, else ""
  // When it was measured, Unix time; without it the reader takes the time of the scrape.
  std::optional<std::int64_t> timestamp_ms{};
};

// All samples of one metric. Names must already be valid ([a-zA-Z_:][a-zA-Z0-9_:]*, labels without
// the colon); help texts and label values may be anything.
struct MetricFamily {
  std::string name;
  std::string help;
  MetricType type = MetricType::kGauge;
  std::vector<Sample> samples;
};

inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

std::string metrics_text(const std::vector<MetricFamily>& families);

}  // namespace slurmlet::podapi

#pragma once

// Prometheus' text exposition format 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format). Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace slurmlet::podapi {

enum class MetricType { kCounter, kGauge };

struct Sample {
  std::vector<std::pair<std::string, std::string>> labels;  // name, value
  double value = 0;
  // Time of the measurement, Unix time; without it Prometheus uses the time of the scrape.
  std::optional<std::int64_t> timestamp_ms{};
};

// All samples of one metric. Names must be valid ([a-zA-Z_:][a-zA-Z0-9_:]*, labels without the
// colon); help texts and label values may be anything.
struct MetricFamily {
  std::string name;
  std::string help;
  MetricType type = MetricType::kGauge;
  std::vector<Sample> samples;
};

template <typename Number>
Sample labelled(std::string label, std::string text, Number value) {
  return {{{std::move(label), std::move(text)}}, static_cast<double>(value)};
}

// Overloads with a number make one sample without labels.
inline MetricFamily gauge(std::string name, std::string help, std::vector<Sample> samples) {
  return {std::move(name), std::move(help), MetricType::kGauge, std::move(samples)};
}
inline MetricFamily counter(std::string name, std::string help, std::vector<Sample> samples) {
  return {std::move(name), std::move(help), MetricType::kCounter, std::move(samples)};
}
template <typename Number>
  requires std::is_arithmetic_v<Number>
MetricFamily gauge(std::string name, std::string help, Number value) {
  return gauge(std::move(name), std::move(help), {Sample{{}, static_cast<double>(value)}});
}
template <typename Number>
  requires std::is_arithmetic_v<Number>
MetricFamily counter(std::string name, std::string help, Number value) {
  return counter(std::move(name), std::move(help), {Sample{{}, static_cast<double>(value)}});
}

inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

std::string metrics_text(const std::vector<MetricFamily>& families);

}  // namespace slurmlet::podapi

#include "podapi/metrics_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace slurmlet::podapi {
namespace {

TEST(MetricsText, WritesHelpTypeAndSamples) {
  const MetricFamily requests{
      "slurmlet_api_requests_total",
      "Requests to the API server.",
      MetricType::kCounter,
      {{{{"verb", "PATCH"}, {"code", "200"}}, 12}, {{{"verb", "GET"}, {"code", "404"}}, 0.5}}};
  const MetricFamily up{"slurmlet_slurmd_up", "", MetricType::kGauge, {{{}, 1}}};
  EXPECT_EQ(metrics_text({requests, up}),
            "# HELP slurmlet_api_requests_total Requests to the API server.\n"
            "# TYPE slurmlet_api_requests_total counter\n"
            "slurmlet_api_requests_total{verb=\"PATCH\",code=\"200\"} 12\n"
            "slurmlet_api_requests_total{verb=\"GET\",code=\"404\"} 0.5\n"
            "# TYPE slurmlet_slurmd_up gauge\n"
            "slurmlet_slurmd_up 1\n");
}

TEST(MetricsText, EscapesHelpAndLabelValues) {
  const MetricFamily odd{"m", "a \\ \"b\"\nc", MetricType::kGauge, {{{{"l", "x \\ \"y\"\nz"}}, 0}}};
  EXPECT_EQ(metrics_text({odd}),
            "# HELP m a \\\\ \"b\"\\nc\n# TYPE m gauge\nm{l=\"x \\\\ \\\"y\\\"\\nz\"} 0\n");
}

TEST(MetricsText, WritesTheTimeOfASample) {
  Sample sample{{{"l", "v"}}, 2.5};
  sample.timestamp_ms = 1795183200250;
  EXPECT_EQ(metrics_text({{"m", "", MetricType::kGauge, {sample}}}),
            "# TYPE m gauge\nm{l=\"v\"} 2.5 1795183200250\n");
}

TEST(MetricsText, WritesNumbersThatReadBackTheSame) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const auto& [value, text] : std::initializer_list<std::pair<double, const char*>>{
           {1700000000, "1700000000"},
           {-3, "-3"},
           {0.1, "0.1"},
           {1e300, "1e+300"},
           {9007199254740992.0, "9007199254740992"},
           {kInfinity, "+Inf"},
           {-kInfinity, "-Inf"},
           {std::numeric_limits<double>::quiet_NaN(), "NaN"}}) {
    EXPECT_EQ(metrics_text({{"m", "", MetricType::kGauge, {{{}, value}}}}),
              "# TYPE m gauge\nm " + std::string{text} + "\n");
  }
}

TEST(MetricsText, NothingIsEmpty) { EXPECT_EQ(metrics_text({}), ""); }

}  // namespace
}  // namespace slurmlet::podapi

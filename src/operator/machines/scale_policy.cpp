#include "operator/machines/scale_policy.h"

#include <array>
#include <utility>

#include "base/text.h"
#include "config/duration.h"
#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

namespace names = node::vocabulary;

constexpr const char* kMin = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
constexpr const char* kMax = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
constexpr const char* kCpu = "capacity.cluster-autoscaler.kubernetes.io/cpu";
constexpr const char* kMemory = "capacity.cluster-autoscaler.kubernetes.io/memory";
constexpr const char* kGpus = "capacity.cluster-autoscaler.kubernetes.io/gpu-count";

// So that sums and products of them are numbers, too.
constexpr std::int64_t kLargest = 1'000'000, kLargestMiB = 1'000'000'000;

using Annotations = std::map<std::string, std::string>;

class Reader {
 public:
  Reader(const Annotations& annotations, std::string& problem)
      : annotations_(annotations), problem_(problem) {}

  const std::string* find(const char* key) const {
    const auto found = annotations_.find(key);
    return found == annotations_.end() ? nullptr : &found->second;
  }

  template <class T, class Parse>
  void take(const char* key, T& into, const Parse& parse, const char* example) {
    const std::string* text = find(key);
    if (text == nullptr) {
      return;
    }
    const auto value = parse(*text);
    if (!value || *value < T{}) {
      problem_ =
          std::string{"annotation "} + key + " is \"" + *text + "\"; it must be like " + example;
      return;
    }
    into = *value;
  }

 private:
  const Annotations& annotations_;
  std::string& problem_;
};

std::set<std::string> words(std::string_view list) {
  std::set<std::string> out;
  for (const std::string_view word : split(list, ',')) {
    if (!trim(word).empty()) {
      out.emplace(trim(word));
    }
  }
  return out;
}

void take_partitions(const std::string& text, ScalePolicy& out) {
  constexpr std::string_view kKey = "partition=";
  for (const auto& word : words(text)) {
    if (!word.starts_with(kKey) || word.size() == kKey.size()) {
      out.problem = std::string{"annotation "} + names::kScaleFor + " is \"" + text +
                    "\"; it must be like partition=gpu,partition=debug";
      return;
    }
    out.partitions.insert(word.substr(kKey.size()));
  }
}

}  // namespace

std::optional<std::int64_t> quantity_mib(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 9> kUnits{{{"Ki", 0x1p10},
                                                                       {"Mi", 0x1p20},
                                                                       {"Gi", 0x1p30},
                                                                       {"Ti", 0x1p40},
                                                                       {"k", 1e3},
                                                                       {"M", 1e6},
                                                                       {"G", 1e9},
                                                                       {"T", 1e12},
                                                                       {"", 1}}};
  const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_int<std::int64_t>(text.substr(0, end));
  for (const auto& [unit, bytes] : kUnits) {
    if (number && text.substr(end) == unit) {
      const double mib = static_cast<double>(*number) * bytes / 0x1p20;
      return mib <= kLargestMiB ? std::optional{static_cast<std::int64_t>(mib)} : std::nullopt;
    }
  }
  return std::nullopt;
}

ScalePolicy read_scale_policy(const Annotations& annotations) {
  ScalePolicy out;
  Reader reader{annotations, out.problem};
  const auto number = [](const std::string& text) {
    const auto value = parse_int<std::int64_t>(text);
    return value.value_or(0) > kLargest ? std::nullopt : value;
  };
  const auto duration = [](const std::string& text) -> std::optional<Duration> {
    return config::parse_duration(text);
  };
  reader.take(names::kIdleAfter, out.idle_after, duration, "10m");
  reader.take(names::kBootTimeout, out.boot_timeout, duration, "30m");
  reader.take(kMin, out.min, number, "0");
  reader.take(kMax, out.max, number, "64");
  reader.take(kCpu, out.size.cpus, number, "128");
  reader.take(kMemory, out.size.memory_mib, quantity_mib, "512Gi");
  reader.take(kGpus, out.size.gpus, number, "8");
  if (const std::string* features = reader.find(names::kScaleFeatures)) {
    out.features = words(*features);
  }
  if (const std::string* wanted = reader.find(names::kScaleFor)) {
    take_partitions(*wanted, out);
    if (reader.find(kMin) == nullptr || reader.find(kMax) == nullptr || out.max < out.min) {
      out.problem = std::string{"the annotations "} + kMin + " and " + kMax +
                    " must both be set, and the first must not be more";
    }
    out.by = ScaledBy::kQueue;
  }
  if (const std::string* mark = reader.find(names::kMarkIdle); mark != nullptr && *mark == "true") {
    out.by = ScaledBy::kOther;
  }
  return out;
}

}  // namespace slurmlet::op

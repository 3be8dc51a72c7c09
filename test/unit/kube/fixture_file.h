#pragma once

// Answers of a real API server (1.36), captured to test/fixtures/kube.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "fixtures.h"

namespace slurmlet::kube {

inline std::string fixture_text(const std::string& name) {
  const auto text = read_file(fixtures() / "kube" / name);
  EXPECT_TRUE(text) << name;
  return text ? *text : "";
}

inline nlohmann::json fixture_json(const std::string& name) {
  return nlohmann::json::parse(fixture_text(name));
}

}  // namespace slurmlet::kube

#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace slurmlet {
namespace {

TEST(ResultTest, HoldsAValue) {
  Result<std::string> result{std::string{"x"}};
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.has_value());
  EXPECT_EQ(*result, "x");
  EXPECT_EQ(result->size(), 1U);
  *result += "y";
  EXPECT_EQ(result.value(), "xy");
}

TEST(ResultTest, HoldsAnError) {
  const Result<int> result{Error{Code::kDenied, "no"}};
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(), (Error{Code::kDenied, "no"}));
}

TEST(ResultTest, GivesAMoveOnlyValueAway) {
  Result<std::unique_ptr<int>> result{std::make_unique<int>(7)};
  const std::unique_ptr<int> value = *std::move(result);
  EXPECT_EQ(*value, 7);
}

TEST(ResultTest, StatusIsFineOrAnError) {
  const Status fine;
  EXPECT_TRUE(fine);
  const Status failed{Error{Code::kTimeout, "late"}};
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kTimeout);
}

TEST(ResultTest, APrefixKeepsTheCode) {
  const Error error = Error{Code::kConflict, "409 Conflict"}.with_prefix("renew lease");
  EXPECT_EQ(error, (Error{Code::kConflict, "renew lease: 409 Conflict"}));
}

}  // namespace
}  // namespace slurmlet

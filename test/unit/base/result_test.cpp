#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace slurmlet {
namespace {

TEST(ResultTest, APrefixKeepsTheCode) {
  const Error error = Error{Code::kConflict, "409 Conflict"}.with_prefix("renew lease");
  EXPECT_EQ(error, (Error{Code::kConflict, "renew lease: 409 Conflict"}));
}

}  // namespace
}  // namespace slurmlet

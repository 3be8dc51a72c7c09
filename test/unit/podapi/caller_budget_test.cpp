#include "podapi/caller_budget.h"

#include <gtest/gtest.h>

namespace slurmlet::podapi {
namespace caller_budget_test {

using std::chrono::seconds;

int granted(CallerBudget& budget, const std::string& host, int count, SteadyTime now) {
  int out = 0;
  for (int i = 0; i < count; ++i) {
    out += budget.take(host, now) <= now ? 1 : 0;
  }
  return out;
}

TEST(CallerBudgetTest, UnauthenticatedClientsShareOneLimitAndKnownAddressesAnother) {
  CallerBudget budget{{2, 10}};
  const SteadyTime now{seconds{100}};
  budget.know("known");
  int newcomers = 0;
  for (int i = 0; i < 20; ++i) {
    newcomers += granted(budget, "newcomer" + std::to_string(i), 1, now);
  }
  EXPECT_EQ(newcomers, 10);
  EXPECT_EQ(granted(budget, "known", 20, now), 10);
  EXPECT_GT(budget.take("another", now), now);
  EXPECT_EQ(granted(budget, "another", 10, now + seconds{2}), 4) << "two a second";
}

TEST(CallerBudgetTest, TheAddressKnownLongestIsForgotten) {
  CallerBudget budget{{1, 1}};
  for (int i = 0; i < 200; ++i) {
    budget.know("h" + std::to_string(i));
    budget.know("h199");
  }
  EXPECT_FALSE(budget.knows("h0"));
  EXPECT_TRUE(budget.knows("h198"));
  EXPECT_FALSE(budget.knows("newcomer"));
}

}  // namespace caller_budget_test
}  // namespace slurmlet::podapi

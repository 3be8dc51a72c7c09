// A fuzzer's inputs in every build: each as it is, cut short, and changed as a fuzzer would, by
// chance that is the same each time. The fuzzers themselves, which find new inputs: ./dev fuzz.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "fixtures.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace slurmlet {
namespace {

using Input = std::vector<std::uint8_t>;

constexpr std::size_t kCuts = 20;        // of each input
constexpr std::size_t kChanges = 5'000;  // of all together

std::filesystem::path corpus() {
  return fixtures().parent_path() / "fuzz/corpus" / SLURMLET_CORPUS;
}

std::vector<std::string> names() {
  auto found = list_directory(corpus());
  std::vector<std::string> all = found ? *found : std::vector<std::string>{};
  std::sort(all.begin(), all.end());
  return all;
}

Input read_input(const std::string& name) {
  const auto text = read_file(corpus() / name);
  EXPECT_TRUE(text) << text.error().message;
  return text ? Input(text->begin(), text->end()) : Input{};
}

// A copy on the heap that is exactly as long: the sanitizer sees a read beyond its end.
void ask(const Input& input) {
  const Input copy(input.begin(), input.end());
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, AsItIs) { ask(read_input(GetParam())); }

TEST_P(Corpus, CutShort) {
  const Input input = read_input(GetParam());
  const std::size_t step = input.size() / kCuts + 1;
  for (std::size_t size = 0; size < input.size(); size += step) {
    ask(Input(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size)));
  }
}

class Change {
 public:
  Change(const std::string& name, Input other) : other_(std::move(other)) {
    std::seed_seq seed(name.begin(), name.end());
    random_.seed(seed);
  }

  // A byte replaced, a piece left out, repeated, or taken from another input.
  void apply(Input& input) {
    const auto [first, last] = piece(input);
    const auto begin = input.begin() + first;
    const auto end = input.begin() + last;
    switch (random_() % 4) {
      case 0:
        if (begin != input.end()) {
          *begin = static_cast<std::uint8_t>(random_());
        }
        break;
      case 1:
        input.erase(begin, end);
        break;
      case 2: {
        const Input repeated(begin, end);
        input.insert(end, repeated.begin(), repeated.end());
        break;
      }
      default: {
        const auto [from, to] = piece(other_);
        input.insert(begin, other_.begin() + from, other_.begin() + to);
      }
    }
  }

 private:
  std::pair<std::ptrdiff_t, std::ptrdiff_t> piece(const Input& input) {
    const std::size_t first = random_() % (input.size() + 1);
    const std::size_t length = std::min<std::size_t>(random_() % 64, input.size() - first);
    return {static_cast<std::ptrdiff_t>(first), static_cast<std::ptrdiff_t>(first + length)};
  }

  std::mt19937 random_;
  Input other_;
};

TEST_P(Corpus, Changed) {
  const auto all = names();
  const auto here = std::find(all.begin(), all.end(), GetParam());
  const auto next = std::next(here) == all.end() ? all.begin() : std::next(here);
  Change change{GetParam(), read_input(*next)};
  const Input original = read_input(GetParam());
  for (std::size_t i = 0; i < kChanges / all.size(); ++i) {
    Input input = original;
    for (std::size_t changes = 0; changes <= i % 4; ++changes) {
      change.apply(input);
    }
    ask(input);
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

// An empty corpus fails: GoogleTest does so for a suite without parameters.
INSTANTIATE_TEST_SUITE_P(Of, Corpus, testing::ValuesIn(names()), test_name);

}  // namespace
}  // namespace slurmlet

// Runs the fuzzer's inputs through it once, in every build.

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "fixtures.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace slurmlet::podapi {
namespace {

TEST(HeadReader, HoldsOnTheFuzzersInputs) {
  const std::filesystem::path corpus = fixtures().parent_path() / "fuzz/corpus/request_head";
  const auto names = list_directory(corpus);
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_GE(names->size(), 20U);
  for (const std::string& name : *names) {
    const auto input = read_file(corpus / name);
    ASSERT_TRUE(input) << input.error().message;
    SCOPED_TRACE(name);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input->data()), input->size());
  }
}

}  // namespace
}  // namespace slurmlet::podapi

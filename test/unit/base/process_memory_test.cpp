#include "base/process_memory.h"

#include <gtest/gtest.h>
#include <link.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/file.h"

namespace slurmlet {
namespace {

struct Touched {
  std::size_t bytes = 0;
  unsigned sum = 0;
};

// Reads a byte of each page of the code and constants of the program itself (the first object),
// AddressSanitizer's zones between constants too.
__attribute__((no_sanitize("address"))) int touch(dl_phdr_info* object, std::size_t /*size*/,
                                                  void* data) {
  auto& touched = *static_cast<Touched*>(data);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) {
      continue;
    }
    const auto* bytes =
        reinterpret_cast<const volatile unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    for (std::size_t at = 0; at < segment.p_memsz; at += 4096) {
      touched.sum += bytes[at];
    }
    touched.bytes += segment.p_memsz;
  }
  return 1;
}

// Of a line like "RssFile:     1234 kB" of /proc/self/status, in bytes.
std::size_t status_field(const std::string& name) {
  const auto text = read_file("/proc/self/status");
  EXPECT_TRUE(text);
  const auto at = text->find("\n" + name + ":");
  EXPECT_NE(at, std::string::npos);
  const auto digit = text->find_first_of("0123456789", at);
  std::size_t kilobytes = 0;
  std::from_chars(text->data() + digit, text->data() + text->size(), kilobytes);
  return kilobytes * 1024;
}

TEST(ProcessMemory, CodeThatOnlyStartingNeededIsGivenBack) {
  Touched touched;
  dl_iterate_phdr(touch, &touched);
  ASSERT_GT(touched.bytes, 512U * 1024U);
  const auto before = status_field("RssFile");
  release_startup_memory();
  EXPECT_LT(status_field("RssFile") + touched.bytes / 2, before);
}

TEST(ProcessMemory, ComesBackAsItWas) {
  Touched before;
  Touched after;
  dl_iterate_phdr(touch, &before);
  release_startup_memory();
  dl_iterate_phdr(touch, &after);
  EXPECT_EQ(after.bytes, before.bytes);
  EXPECT_EQ(after.sum, before.sum);
}

}  // namespace
}  // namespace slurmlet

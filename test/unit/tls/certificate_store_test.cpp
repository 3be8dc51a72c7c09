#include "tls/certificate_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "fakes/temp_tree.h"
#include "tls/certificates.h"
#include "tls/pem.h"
#include "tls/test_certificates.h"

namespace slurmlet::tls {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

const WallTime kNoon{1795262400s};  // 2026-11-21 12:00:00 UTC
const CertificateSubject kSubject{.common_name = "system:node:n1",
                                  .organizations = {"system:nodes"}};

std::string certificate_for(const std::string& key) {
  return *make_self_signed(key, kSubject, kNoon, kNoon + 1h);
}

class CertificateStoreTest : public testing::Test {
 protected:
  std::vector<std::string> files() const {
    auto names = list_directory(directory);
    std::vector<std::string> sorted = names ? *names : std::vector<std::string>{};
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
  mode_t mode_of(const std::string& file) const {
    struct stat info {};
    EXPECT_EQ(::lstat((directory / file).c_str(), &info), 0) << file;
    return info.st_mode & 07777U;
  }
  // A certificate for the pending key, accepted.
  StoredCertificate renew(WallTime now) {
    return *store.accept(certificate_for(*store.pending_key()), now);
  }
  std::string link_target() const {
    return std::filesystem::read_symlink(store.current_path()).string();
  }

  fakes::TempTree tree;
  std::filesystem::path directory = tree.path("state/pki");
  CertificateStore store{directory, "client"};
};

TEST_F(CertificateStoreTest, StartsWithNothingAndMakesNothing) {
  const auto current = store.current();
  ASSERT_TRUE(current);
  EXPECT_FALSE(*current);
  EXPECT_FALSE(store.has_pending_key());
  EXPECT_TRUE(store.discard_pending_key());
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST_F(CertificateStoreTest, PendingKeyIsOnDiskAndStays) {
  const auto key = store.pending_key();
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_THAT(files(), ElementsAre("client.key.tmp"));
  EXPECT_EQ(mode_of("client.key.tmp"), 0600U);
  EXPECT_EQ(mode_of("."), 0700U);
  EXPECT_EQ(
      mode_of(".."), 0755U & ~[] {
        const mode_t mask = ::umask(0);
        ::umask(mask);
        return mask;
      }());
  EXPECT_TRUE(store.has_pending_key());
  CertificateStore after_restart{directory, "client"};
  EXPECT_EQ(*after_restart.pending_key(), *key);
  ASSERT_TRUE(store.discard_pending_key());
  EXPECT_FALSE(store.has_pending_key());
  EXPECT_NE(*store.pending_key(), *key);
}

TEST_F(CertificateStoreTest, LeavesTheModeOfADirectoryThatWasThere) {
  tree.dir("state/pki");
  ASSERT_EQ(::chmod(directory.c_str(), 0750), 0);
  ASSERT_TRUE(store.pending_key());
  EXPECT_EQ(mode_of("."), 0750U);
}

TEST_F(CertificateStoreTest, TakesADirectoryWithATrailingSlash) {
  CertificateStore other{tree.path("a/b/"), "client"};
  ASSERT_TRUE(other.pending_key());
  struct stat info {};
  ASSERT_EQ(::stat(tree.path("a/b").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(CertificateStoreTest, AcceptsTheCertificateOfThePendingKey) {
  const std::string key = *store.pending_key();
  const std::string certificate = certificate_for(key);
  const auto accepted = store.accept("Subject: chatter\n" + certificate, kNoon);
  ASSERT_TRUE(accepted) << accepted.error().message;
  EXPECT_EQ(accepted->certificate_pem, certificate);
  EXPECT_EQ(accepted->key_pem, key);
  EXPECT_EQ(accepted->summary.common_name, "system:node:n1");
  EXPECT_THAT(files(), ElementsAre("client-2026-11-21-12-00-00.pem", "client-current.pem"));
  EXPECT_EQ(link_target(), "client-2026-11-21-12-00-00.pem");
  EXPECT_EQ(mode_of("client-2026-11-21-12-00-00.pem"), 0600U);
  EXPECT_FALSE(store.has_pending_key());
  const auto current = CertificateStore{directory, "client"}.current();
  ASSERT_TRUE(current && *current);
  EXPECT_EQ((*current)->certificate_pem, certificate);
  EXPECT_EQ((*current)->key_pem, key);
  EXPECT_EQ((*current)->summary.not_after, kNoon + 1h);
}

TEST_F(CertificateStoreTest, KeepsTheIntermediates) {
  const std::string key = *store.pending_key();
  const std::string other = make_self_signed(CertificateSpec{.common_name = "ca"}).certificate;
  const std::string chain = certificate_for(key) + other;
  EXPECT_EQ(store.accept(chain, kNoon)->certificate_pem, chain);
  EXPECT_EQ((**store.current()).certificate_pem, chain);
}

TEST_F(CertificateStoreTest, RefusesWhatDoesNotBelongToThePendingKey) {
  const StoredCertificate before = renew(kNoon);
  const auto without_key = store.accept(before.certificate_pem, kNoon + 1s);
  ASSERT_FALSE(without_key);
  EXPECT_EQ(without_key.error().code, Code::kNotFound);
  const std::string key = *store.pending_key();
  const auto names = files();
  for (const std::string& wrong :
       {before.certificate_pem, std::string{"nonsense"}, before.certificate_pem.substr(0, 100)}) {
    const auto accepted = store.accept(wrong, kNoon + 1s);
    ASSERT_FALSE(accepted);
    EXPECT_EQ(accepted.error().code, Code::kInvalid);
    EXPECT_THAT(accepted.error().message, HasSubstr(";"));
    EXPECT_THAT(accepted.error().message, Not(HasSubstr("PRIVATE")));
  }
  EXPECT_EQ(files(), names);
  EXPECT_EQ(*store.pending_key(), key);
  EXPECT_EQ((**store.current()).certificate_pem, before.certificate_pem);
}

TEST_F(CertificateStoreTest, KeepsTwoDatedFiles) {
  for (int i = 0; i < 4; ++i) {
    renew(kNoon + i * 1min);
  }
  EXPECT_THAT(files(), ElementsAre("client-2026-11-21-12-02-00.pem",
                                   "client-2026-11-21-12-03-00.pem", "client-current.pem"));
  EXPECT_EQ(link_target(), "client-2026-11-21-12-03-00.pem");
}

TEST_F(CertificateStoreTest, TwoInOneSecondDoNotCollide) {
  const StoredCertificate one = renew(kNoon);
  const StoredCertificate two = renew(kNoon);
  EXPECT_NE(one.key_pem, two.key_pem);
  EXPECT_THAT(files(), ElementsAre("client-2026-11-21-12-00-00.pem",
                                   "client-2026-11-21-12-00-01.pem", "client-current.pem"));
  EXPECT_EQ((**store.current()).key_pem, two.key_pem);
}

TEST_F(CertificateStoreTest, KeepsTheCurrentFileWhenTheClockWentBack) {
  renew(kNoon);
  renew(kNoon + 1h);
  const StoredCertificate newest = renew(kNoon - 1h);
  EXPECT_THAT(files(), ElementsAre("client-2026-11-21-11-00-00.pem",
                                   "client-2026-11-21-13-00-00.pem", "client-current.pem"));
  EXPECT_EQ((**store.current()).key_pem, newest.key_pem);
}

TEST_F(CertificateStoreTest, LeavesTheFilesOfOthersAlone) {
  tree.file("state/pki/client-serving-2020-01-01-00-00-00.pem", "x")
      .file("state/pki/client-2020-01-01.pem", "x")
      .file("state/pki/client-2020-01-01-00-00-0x.pem", "x")
      .file("state/pki/client.key.tmp2", "x")
      .file("state/pki/other.key.tmp.abcdef", "x");
  const auto before = files();
  for (int i = 0; i < 3; ++i) {
    renew(kNoon + i * 1min);
  }
  const auto after = files();
  EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()));
}

TEST_F(CertificateStoreTest, ReadsAPlainFileThatSomebodyPutThere) {
  const std::string key = *generate_key();
  tree.file("state/pki/client-current.pem", certificate_for(key) + key, 0600);
  EXPECT_EQ((**store.current()).key_pem, key);
  const StoredCertificate next = renew(kNoon);
  EXPECT_EQ((**store.current()).key_pem, next.key_pem);
}

struct BadFile {
  const char* name;
  std::string (*content)(const std::string& key);
  const char* words;
};
class BadCurrentFile : public CertificateStoreTest, public testing::WithParamInterface<BadFile> {};
INSTANTIATE_TEST_SUITE_P(
    Contents, BadCurrentFile,
    testing::Values(
        BadFile{"Empty", [](const std::string&) { return std::string{}; }, "no certificate"},
        BadFile{"Foreign", [](const std::string&) { return std::string{"hello"}; },
                "no certificate"},
        BadFile{"KeyOnly", [](const std::string& key) { return key; }, "no certificate"},
        BadFile{"CertificateOnly", [](const std::string& key) { return certificate_for(key); },
                "no private key"},
        BadFile{"TornInTheKey",
                [](const std::string& key) {
                  return certificate_for(key) + key.substr(0, key.size() / 2);
                },
                "truncated"},
        BadFile{"TornInTheCertificate",
                [](const std::string& key) { return certificate_for(key).substr(0, 200); },
                "no certificate"},
        BadFile{"NoPair",
                [](const std::string& key) { return certificate_for(key) + *generate_key(); },
                "does not belong"},
        BadFile{"Huge", [](const std::string&) { return std::string(2U << 20U, 'x'); },
                "not a regular file of a plausible size"}),
    [](const auto& test) { return test.param.name; });

TEST_P(BadCurrentFile, IsInvalidWithNameAndCure) {
  tree.file("state/pki/client-current.pem", GetParam().content(*generate_key()), 0600);
  const auto current = store.current();
  ASSERT_FALSE(current);
  EXPECT_EQ(current.error().code, Code::kInvalid);
  EXPECT_THAT(current.error().message, StartsWith(store.current_path().string() + ": "));
  EXPECT_THAT(current.error().message, HasSubstr(GetParam().words));
  EXPECT_THAT(current.error().message, HasSubstr("; remove it"));
  EXPECT_THAT(current.error().message, Not(HasSubstr("BEGIN")));
  // It does not stand in the way of a new one.
  const StoredCertificate next = renew(kNoon);
  EXPECT_EQ((**store.current()).key_pem, next.key_pem);
}

TEST_F(CertificateStoreTest, LinkToNowhereIsInvalid) {
  renew(kNoon);
  tree.remove("state/pki/client-2026-11-21-12-00-00.pem");
  const auto current = store.current();
  ASSERT_FALSE(current);
  EXPECT_EQ(current.error().code, Code::kInvalid);
  EXPECT_THAT(current.error().message, HasSubstr("client-current.pem: is a link to a file"));
}

TEST_F(CertificateStoreTest, PendingFileWithoutAKeyIsReplaced) {
  for (const std::string& torn : {std::string{}, generate_key()->substr(0, 100)}) {
    tree.file("state/pki/client.key.tmp", torn, 0600);
    EXPECT_FALSE(store.has_pending_key());
    const auto key = store.pending_key();
    ASSERT_TRUE(key);
    EXPECT_TRUE(parse_private_key(*key, ""));
    EXPECT_EQ(*read_file(directory / "client.key.tmp"), *key);
  }
}

TEST_F(CertificateStoreTest, SaysWhereItCannotWrite) {
  tree.file("state", "a file where the directory should be");
  const auto key = store.pending_key();
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error().message, HasSubstr(tree.path("state").string()));
}

// What is on disk after each step of pending_key() and accept(), made by hand, and how the next
// start goes on. The old pair is current until the link is swapped, the new one from then on.
class CrashTest : public CertificateStoreTest {
 protected:
  void SetUp() override {
    old = renew(kNoon);
    key = *store.pending_key();
    certificate = certificate_for(key);
  }
  void expect_current(const std::string& wanted_key) {
    const auto current = CertificateStore{directory, "client"}.current();
    ASSERT_TRUE(current && *current);
    EXPECT_EQ((*current)->key_pem, wanted_key);
  }
  // The request is the same as before the crash; its certificate is accepted now.
  void expect_goes_on_with_the_same_key() {
    expect_current(old.key_pem);
    CertificateStore restarted{directory, "client"};
    EXPECT_TRUE(restarted.has_pending_key());
    ASSERT_EQ(*restarted.pending_key(), key);
    ASSERT_TRUE(restarted.accept(certificate, kNoon + 1h));
    expect_current(key);
    EXPECT_FALSE(restarted.has_pending_key());
    // And nothing of the crash is left.
    const auto names = files();
    EXPECT_EQ(names.size(), 3U) << testing::PrintToString(names);
    EXPECT_EQ(names.back(), "client-current.pem");
  }
  static constexpr const char* kDated = "state/pki/client-2026-11-21-13-00-00.pem";

  StoredCertificate old;
  std::string key, certificate;
};

TEST_F(CrashTest, WhileThePendingKeyIsWritten) {
  tree.remove("state/pki/client.key.tmp");
  tree.file("state/pki/client.key.tmp.Ab12Cd", key.substr(0, 50), 0600);
  CertificateStore restarted{directory, "client"};
  EXPECT_FALSE(restarted.has_pending_key());
  key = *restarted.pending_key();
  certificate = certificate_for(key);
  expect_goes_on_with_the_same_key();
}

TEST_F(CrashTest, AfterThePendingKeyIsWritten) { expect_goes_on_with_the_same_key(); }

TEST_F(CrashTest, WhileTheDatedFileIsWritten) {
  tree.file(std::string{kDated} + ".Ab12Cd", certificate.substr(0, 300), 0600);
  expect_goes_on_with_the_same_key();
}

TEST_F(CrashTest, AfterTheDatedFileIsWritten) {
  tree.file(kDated, certificate + key, 0600);
  expect_goes_on_with_the_same_key();
}

TEST_F(CrashTest, AfterTheTemporaryLinkIsMade) {
  tree.file(kDated, certificate + key, 0600);
  tree.symlink("client-2026-11-21-13-00-00.pem", "state/pki/client-current.pem.tmp-4711");
  expect_goes_on_with_the_same_key();
}

TEST_F(CrashTest, AfterTheLinkIsSwapped) {
  tree.file(kDated, certificate + key, 0600);
  tree.symlink("client-2026-11-21-13-00-00.pem", "state/pki/client-current.pem.tmp-4711");
  std::filesystem::rename(directory / "client-current.pem.tmp-4711", store.current_path());
  expect_current(key);
  // The pending file holds the current key: there is no request under way any more.
  CertificateStore restarted{directory, "client"};
  EXPECT_FALSE(restarted.has_pending_key());
  EXPECT_NE(*restarted.pending_key(), key);
  EXPECT_TRUE(restarted.has_pending_key());
  expect_current(key);
}

TEST_F(CrashTest, AfterThePendingKeyIsRemoved) {
  renew(kNoon + 1h);
  renew(kNoon + 2h);
  // The oldest was not pruned.
  tree.file("state/pki/client-2026-11-21-12-00-00.pem", "x", 0600);
  renew(kNoon + 3h);
  EXPECT_THAT(files(), ElementsAre("client-2026-11-21-14-00-00.pem",
                                   "client-2026-11-21-15-00-00.pem", "client-current.pem"));
}

}  // namespace
}  // namespace slurmlet::tls

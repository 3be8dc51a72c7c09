// What a child of ours may do. The parts that differ between root and others are run by a forked
// process that is not root.

#include "base/child_limits.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "base/command.h"
#include "base/text.h"
#include "fakes/in_child.h"
#include "fakes/temp_tree.h"

namespace slurmlet {
namespace {

constexpr uid_t kSomebody = 54321;

std::string output_of(const std::string& script) {
  CommandSpec spec;
  spec.argv = {"sh", "-c", script};
  spec.start_patience = std::chrono::minutes{1};  // a busy machine is not one that hangs
  const auto result = run_command(spec);
  return result ? result->out + result->err : result.error().message;
}

int as_somebody(const std::function<bool()>& test) {
  return fakes::in_child(
      [] { return ::geteuid() != 0 || (::setgid(kSomebody) == 0 && ::setuid(kSomebody) == 0); },
      test);
}

// As the unit's drop-in for config drives gives it: children would inherit it.
bool become_somebody_with_ambient_capability() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  constexpr std::uint32_t kCapability = 1U << CAP_SYS_ADMIN;
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> capabilities{};
  capabilities[0] = {kCapability, kCapability, kCapability};
  return ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && ::setgid(kSomebody) == 0 &&
         ::setuid(kSomebody) == 0 && ::syscall(SYS_capset, &header, capabilities.data()) == 0 &&
         ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) == 0;
}

// In a mount namespace of its own: a file system that never answers, as one of a server that died.
bool become_somebody_with_a_dead_mount(const std::string& at) {
  const int fuse = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  const std::string options =
      "fd=" + std::to_string(fuse) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
  return fuse >= 0 && ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("dead", at.c_str(), "fuse", 0, options.c_str()) == 0 && ::setgid(kSomebody) == 0 &&
         ::setuid(kSomebody) == 0;
}

bool has_landlock() { return ::syscall(444, nullptr, 0, 1U) > 0; }

class ChildLimits : public ::testing::Test {
 protected:
  ChildLimits() {
    ::chmod(tree_.root().c_str(), 0755);
    tree_.file("state/pki/key.pem", "secret\n")
        .file("state/open", "free\n")
        .file("etc/kubeconfig", "token\n")
        .file("etc/slurm.conf", "ClusterName=alps\n");
    if (::geteuid() == 0) {
      for (const char* path : {"state", "state/pki", "state/pki/key.pem", "etc"}) {
        EXPECT_EQ(::chown(tree_.path(path).c_str(), kSomebody, kSomebody), 0);
      }
    }
  }
  std::string at(const std::string& relative) const { return tree_.path(relative).string(); }

  fakes::TempTree tree_;
};

TEST_F(ChildLimits, AChildHasNoRightsAndNoneToGain) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root has capabilities to give";
  }
  EXPECT_EQ(fakes::in_child(
                [] { return become_somebody_with_ambient_capability(); },
                [] {
                  return trim(output_of("grep -E '^(NoNewPrivs|CapAmb|CapPrm|CapEff)' "
                                        "/proc/self/status | tr -d '\\t\\n'")) ==
                         "CapPrm:0000000000000000CapEff:0000000000000000CapAmb:0000000000000000"
                         "NoNewPrivs:1";
                }),
            0);
}

TEST_F(ChildLimits, OnlyTheThreadThatStartsAChildGivesUpItsRights) {
  EXPECT_EQ(as_somebody([] {
              (void)output_of("true");
              return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
            }),
            0);
}

TEST_F(ChildLimits, SecretsAreOutOfReachAndAllElseIsNot) {
  if (!has_landlock()) {
    GTEST_SKIP() << "this kernel has no Landlock";
  }
  hide_from_children({at("state/pki"), at("etc/kubeconfig"), at("etc/later")});
  EXPECT_EQ(as_somebody([&] {
              return output_of("cat " + at("state/pki/key.pem")).find("denied") !=
                         std::string::npos &&
                     output_of("cat " + at("etc/kubeconfig")).find("denied") != std::string::npos &&
                     output_of("echo x > " + at("state/pki/key.pem")).find("ermission denied") !=
                         std::string::npos &&
                     output_of("cat " + at("state/open")) == "free\n" &&
                     output_of("cat " + at("etc/slurm.conf")) == "ClusterName=alps\n";
            }),
            0);
}

TEST_F(ChildLimits, NewEntriesAreReachableAndNewSecretsAreNot) {
  if (!has_landlock()) {
    GTEST_SKIP() << "this kernel has no Landlock";
  }
  hide_from_children({at("etc/later")});
  EXPECT_EQ(as_somebody([&] {
              const bool before = output_of("cat " + at("etc/slurm.conf")) == "ClusterName=alps\n";
              tree_.file("etc/gres.conf", "Name=gpu\n").file("etc/later", "secret\n");
              return before && output_of("cat " + at("etc/gres.conf")) == "Name=gpu\n" &&
                     output_of("cat " + at("etc/later")).find("denied") != std::string::npos;
            }),
            0);
}

TEST_F(ChildLimits, AMountThatDoesNotAnswerHoldsNothingUp) {
  constexpr unsigned kPatience = 20;
  tree_.dir("etc/dead");
  hide_from_children({at("etc/kubeconfig")});
  const int status = fakes::in_child(
      [&] { return has_landlock() && become_somebody_with_a_dead_mount(at("etc/dead")); },
      [&] {
        ::alarm(kPatience);  // ends the process where it hangs
        return output_of("cat " + at("etc/slurm.conf")) == "ClusterName=alps\n";
      });
  if (status == fakes::kNotSetUp) {
    GTEST_SKIP() << "this needs Landlock, /dev/fuse and the right to mount";
  }
  EXPECT_EQ(status, 0);
}

TEST_F(ChildLimits, AProgramOnAMountThatDoesNotAnswerCostsItsOwnQueriesOnly) {
  tree_.dir("etc/dead");
  const int status = fakes::in_child(
      [&] { return become_somebody_with_a_dead_mount(at("etc/dead")); },
      [&] {
        ::alarm(20);  // ends the process where it hangs
        CommandSpec spec;
        spec.argv = {at("etc/dead") + "/bin/sinfo"};
        Command command;
        const auto first = command.start(spec, {});
        const auto second = command.start(spec, {});
        return !first && first.error().code == Code::kTimeout && !second &&
               second.error().code == Code::kTimeout && output_of("echo others") == "others\n";
      });
  if (status == fakes::kNotSetUp) {
    GTEST_SKIP() << "this needs /dev/fuse and the right to mount";
  }
  EXPECT_EQ(status, 0);
}

// As with kubelet-client-current.pem.
TEST_F(ChildLimits, ALinkThatIsTurnedHidesWhatItLeadsToNow) {
  if (!has_landlock()) {
    GTEST_SKIP() << "this kernel has no Landlock";
  }
  tree_.file("etc/key1", "one").file("etc/key2", "two").symlink("key1", "etc/current");
  hide_from_children({at("etc/current")});
  EXPECT_EQ(as_somebody([&] {
              const auto denied = [&](const char* file) {
                return output_of("cat " + at(file)).find("denied") != std::string::npos;
              };
              const bool before = denied("etc/key1") && !denied("etc/key2");
              std::filesystem::remove(at("etc/current"));
              std::filesystem::create_symlink("key2", at("etc/current"));
              return before && denied("etc/key2") && denied("etc/current");
            }),
            0);
}

TEST_F(ChildLimits, NothingStartsUnconfined) {
  if (!has_landlock()) {
    GTEST_SKIP() << "this kernel has no Landlock";
  }
  hide_from_children({at("etc/kubeconfig")});
  EXPECT_EQ(as_somebody([] {
              const rlimit none{0, 0};
              return ::setrlimit(RLIMIT_NOFILE, &none) == 0 && confine_thread() == EMFILE;
            }),
            0);
}

TEST_F(ChildLimits, AChildCannotLookIntoItsParent) {
  if (!has_landlock()) {
    GTEST_SKIP() << "this kernel has no Landlock";
  }
  hide_from_children({at("state/pki")});
  EXPECT_EQ(as_somebody([] {
              return output_of("head -c 1 /proc/$PPID/environ").find("denied") !=
                         std::string::npos &&
                     output_of("head -c 1 /proc/self/environ").find("denied") == std::string::npos;
            }),
            0);
}

TEST_F(ChildLimits, WhoHoldsKeysIsNotDumpable) {
  EXPECT_EQ(as_somebody([] {
              protect_own_memory();
              return ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 &&
                     output_of("head -c 1 /proc/$PPID/environ").find("denied") != std::string::npos;
            }),
            0);
}

}  // namespace
}  // namespace slurmlet

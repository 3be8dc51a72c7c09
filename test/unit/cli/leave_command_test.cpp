#include "cli/leave_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "cli/commands.h"
#include "fakes/temp_tree.h"

namespace slurmlet::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

NodeSeen own_node_seen() {
  NodeSeen seen;
  seen.name = "n1";
  seen.holder_identity = "n1/abc";
  seen.node.emplace();
  seen.node->name = "n1";
  seen.node->uid = "uid-1";
  seen.node->labels["metal3.io/uuid"] = "u-1";
  seen.lease.emplace();
  seen.lease->holder_identity = "n1/abc";
  return seen;
}

TEST(LeaveVerdict, OnlyThisMachinesNodeIsDeleted) {
  node::DesiredNode wanted;
  wanted.name = "n1";
  wanted.labels["metal3.io/uuid"] = "u-1";
  const struct {
    std::function<void(NodeSeen&)> change;
    const char* uid;
    const char* says;
    bool is_certain = true;
  } rows[] = {
      {[](NodeSeen&) {}, "uid-1", ""},
      {[](NodeSeen& seen) { seen.lease.reset(); }, "uid-1", ""},
      {[](NodeSeen& seen) { seen.node.reset(); }, "", "there is no Node n1"},
      {[](NodeSeen& seen) { seen.node->deleting = true; }, "", "being deleted"},
      {[](NodeSeen& seen) { seen.node->labels["metal3.io/uuid"] = "u-2"; }, "", "another machine"},
      {[](NodeSeen& seen) {
         seen.node->labels.clear();
         seen.node->node_info.container_runtime_version = "containerd://2.0";
       },
       "", "belongs to a kubelet"},
      // However old: that this machine ever had it is not known.
      {[](NodeSeen& seen) { seen.lease->holder_identity = "n1/other"; }, "", "n1/other"},
      {[](NodeSeen& seen) {
         seen.problem = Error{Code::kDenied, "403"};
       },
       "", "403", false},
  };
  for (const auto& row : rows) {
    NodeSeen seen = own_node_seen();
    row.change(seen);
    const NodeVerdict verdict = node_verdict(seen, wanted);
    EXPECT_EQ(verdict.delete_uid, row.uid) << row.says;
    EXPECT_THAT(verdict.why_not, HasSubstr(row.says));
    EXPECT_EQ(verdict.is_certain, row.is_certain) << row.says;
  }
}

TEST(LeaveFiles, OwnOnesAndNoOthers) {
  fakes::TempTree tree;
  const fs::path& directory = tree.root();
  config::Settings settings;
  settings.state_dir = directory / "state";
  settings.kubernetes.cert_dir = directory / "pki";
  for (const char* name :
       {"pki/slurmlet-client-current.pem", "pki/slurmlet-server.key.tmp", "pki/kubelet.crt",
        "state/metal3.json", "config.d/10-site.yaml", "bootstrap-token", "bootstrap-token.Ab3dE6",
        "bootstrap-token.example"}) {
    tree.file(name, "x");
  }
  const auto command =
      parse_command_line({"slurmlet", "leave", "--config", directory / "config.yaml"});
  ASSERT_TRUE(command) << command.error().message;
  const auto files = [&] { return own_credential_files(settings, *command); };
  const fs::path kubeconfig = directory / "state/kubeconfig";
  const fs::path replaced = directory / "state/kubeconfig.old";
  const fs::path client = directory / "pki/slurmlet-client-current.pem";
  const fs::path serving = directory / "pki/slurmlet-server.key.tmp";
  // A token of the same name that no join has written is the site's.
  const fs::path unfinished = directory / "bootstrap-token.Ab3dE6";
  EXPECT_THAT(files(), ElementsAre(client, serving, kubeconfig, replaced, unfinished));
  tree.file("config.d/20-join.yaml", "x");
  EXPECT_THAT(files(),
              ElementsAre(client, serving, kubeconfig, replaced, unfinished,
                          directory / "bootstrap-token", directory / "config.d/20-join.yaml"));
}

}  // namespace
}  // namespace slurmlet::cli

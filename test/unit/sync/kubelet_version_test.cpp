// node.kubeletVersion: auto.

#include "node_sync_fixture.h"

namespace slurmlet::sync {
namespace {

class KubeletVersionTest : public NodeSyncFixture {
 protected:
  KubeletVersionTest() {
    options_.publish_server_version = true;
    make();
    desired_.labels.erase(kUuidLabel);
    sync_->set_desired(desired_, clock_.now());
  }
  std::string version() const { return held().node_info.kubelet_version; }

  node::DesiredNode desired_ = good_node();
};

TEST_F(KubeletVersionTest, IsTheServers) {
  step();
  EXPECT_EQ(version(), "v1.37.2");
  api_.server = "v1.38.0";
  run(std::chrono::hours{25});
  EXPECT_EQ(version(), "v1.38.0");
}

TEST_F(KubeletVersionTest, IsReadAgainAfterAFailure) {
  api_.fail_calls("server_version", Error{Code::kUnavailable, "reset"});
  step();
  api_.fail_calls("server_version", std::nullopt);
  run(std::chrono::minutes{30});
  EXPECT_EQ(version(), "v1.37.2");
}

TEST_F(KubeletVersionTest, IsNoneForClusterApi) {
  desired_.provider_id = "metal3://metal3/host/machine";
  sync_->set_desired(desired_, clock_.now());
  step();
  EXPECT_EQ(version(), "");
  desired_ = good_node();  // with the label of its BareMetalHost
  sync_->set_desired(desired_, clock_.now());
  step_after(std::chrono::minutes{6});
  EXPECT_EQ(version(), "");
}

TEST_F(KubeletVersionTest, GoesWhenTheNodeIsAMachines) {
  step();
  api_.change("n1", [](auto& node) { node.provider_id = "metal3://metal3/host/machine"; });
  tell(Seen::kModified);
  step_after(std::chrono::minutes{2});
  EXPECT_EQ(version(), "");
}

}  // namespace
}  // namespace slurmlet::sync

#include "kube/certificate_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"
#include "kube/fixture_file.h"

namespace slurmlet::kube {
namespace certificate_api_test {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Type = WatchEvent<CertificateRequest>::Type;

CertificateRequest read_fixture(const std::string& name) {
  const auto request = certificate_request_from_json(fixture_json(name));
  EXPECT_TRUE(request) << name;
  return request ? *request : CertificateRequest{};
}

TEST(CertificateJsonTest, APendingRequest) {
  const CertificateRequest request = read_fixture("csr-pending.json");
  EXPECT_EQ(request.name, "pending");
  EXPECT_EQ(request.uid.size(), 36U);
  EXPECT_EQ(request.signer_name, kServingSigner);
  EXPECT_THAT(request.request_pem, StartsWith("-----BEGIN CERTIFICATE REQUEST-----\n"));
  EXPECT_THAT(request.usages, ElementsAre("digital signature", "server auth"));
  EXPECT_FALSE(request.approved || request.denied || request.failed);
  EXPECT_EQ(request.message, "");
  EXPECT_EQ(request.certificate, "");
}

TEST(CertificateJsonTest, WhatBecameOfIt) {
  const CertificateRequest issued = read_fixture("csr-issued.json");
  EXPECT_TRUE(issued.approved);
  EXPECT_FALSE(issued.denied || issued.failed);
  EXPECT_EQ(issued.message, "");
  EXPECT_THAT(issued.certificate, StartsWith("-----BEGIN CERTIFICATE-----\n"));

  const CertificateRequest denied = read_fixture("csr-denied.json");
  EXPECT_TRUE(denied.denied);
  EXPECT_FALSE(denied.approved || denied.failed);
  EXPECT_EQ(denied.message, "KubectlDeny: This CSR was denied by kubectl certificate deny.");

  const CertificateRequest failed = read_fixture("csr-failed.json");
  EXPECT_TRUE(failed.approved && failed.failed);
  EXPECT_THAT(failed.message, HasSubstr("SignerValidationFailure: usages did not match"));
  EXPECT_EQ(failed.certificate, "");
}

TEST(CertificateJsonTest, ToleratesOddShapes) {
  struct Row {
    const char* status;
    bool denied;
    const char* message;
  };
  const Row kRows[] = {
      {R"({})", false, ""},
      {R"({"conditions": 3, "certificate": null})", false, ""},
      {R"({"conditions": [3, {"type": 4}]})", false, ""},
      {R"({"conditions": [{"type": "Denied", "status": "False", "reason": "R"}]})", false, ""},
      {R"({"conditions": [{"type": "Denied", "status": "True", "reason": "R"}]})", true, "R"},
      {R"({"conditions": [{"type": "Denied", "message": "m\nm"}]})", true, "m m"},
  };
  for (const Row& row : kRows) {
    const auto request = certificate_request_from_json(
        {{"metadata", {{"name", "x"}}}, {"status", json::parse(row.status)}});
    ASSERT_TRUE(request) << row.status;
    EXPECT_EQ(request->denied, row.denied) << row.status;
    EXPECT_EQ(request->message, row.message) << row.status;
  }
}

TEST(CertificateJsonTest, RefusesWhatIsNone) {
  for (const char* text :
       {"[]", "{}", R"({"metadata": {}})", R"({"metadata":{"name":"x"},"spec":{"request":"%"}})",
        R"({"metadata":{"name":"x"},"status":{"certificate":"abc"}})"}) {
    const auto request = certificate_request_from_json(json::parse(text));
    ASSERT_FALSE(request) << text;
    EXPECT_EQ(request.error().code, Code::kInvalid);
  }
}

class CertificateApiTest : public ::testing::Test {
 protected:
  fakes::FakeHttpClient client_;
  RequestCounter counter_;
  RestCertificateApi api_{client_, {&counter_, {}}, [] { return 0.5; }};
};

TEST_F(CertificateApiTest, CreateSendsWhatTheServerHolds) {
  const CertificateRequest wanted = read_fixture("csr-pending.json");
  client_.answer(201, fixture_text("csr-pending.json"));
  const auto created = api_.create(wanted);
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_EQ(created->uid, wanted.uid);
  EXPECT_EQ(client_.last().method, "POST");
  EXPECT_EQ(client_.last().path,
            "/apis/certificates.k8s.io/v1/certificatesigningrequests?fieldManager=slurmlet");
  EXPECT_EQ(client_.last().content_type, "application/json");
  const json body = json::parse(client_.last().body);
  const json held = fixture_json("csr-pending.json");
  EXPECT_EQ(body["apiVersion"], held["apiVersion"]);
  EXPECT_EQ(body["kind"], held["kind"]);
  EXPECT_EQ(body["metadata"], (json{{"name", "pending"}}));
  for (const char* key : {"request", "signerName", "usages"}) {
    EXPECT_EQ(body["spec"][key], held["spec"][key]) << key;
  }
  EXPECT_EQ(body["spec"].size(), 3U);
}

TEST_F(CertificateApiTest, AsksForALifetimeWhereOneIsWanted) {
  CertificateRequest wanted = read_fixture("csr-pending.json");
  wanted.expiration = std::chrono::hours{24};
  client_.answer(201, fixture_text("csr-pending.json"));
  ASSERT_TRUE(api_.create(wanted));
  EXPECT_EQ(json::parse(client_.last().body)["spec"]["expirationSeconds"], 86400);
}

TEST_F(CertificateApiTest, OneOfThatNameIsAConflict) {
  client_.answer(409,
                 R"({"kind":"Status","status":"Failure","reason":"AlreadyExists","code":409})");
  const auto created = api_.create({});
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, Code::kConflict);
}

TEST_F(CertificateApiTest, Get) {
  client_.answer(200, fixture_text("csr-issued.json"));
  const auto request = api_.get("issued/..");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(request->approved);
  EXPECT_EQ(client_.last().method, "GET");
  EXPECT_EQ(client_.last().path,
            "/apis/certificates.k8s.io/v1/certificatesigningrequests/issued%2F..");
  client_.answer(404, R"({"kind":"Status","status":"Failure","reason":"NotFound","code":404})");
  EXPECT_EQ(api_.get("issued").error().code, Code::kNotFound);
  client_.answer(200, "{}");
  EXPECT_EQ(api_.get("issued").error().code, Code::kInternal);
}

TEST_F(CertificateApiTest, WatchesTheOneRequest) {
  fakes::FakeClock clock;
  std::vector<WatchEvent<CertificateRequest>> events;
  const auto watch = api_.watch("issued");
  client_.answer(200, R"({"metadata":{"resourceVersion":"290"},"items":[]})");
  watch->step(clock.now(), events);
  EXPECT_EQ(client_.last().path,
            "/apis/certificates.k8s.io/v1/certificatesigningrequests"
            "?fieldSelector=metadata.name%3Dissued");
  watch->step(clock.now(), events);
  ASSERT_EQ(client_.streams.size(), 1U);
  client_.stream().status = 200;
  client_.stream().feed(
      json{{"type", "MODIFIED"}, {"object", fixture_json("csr-issued.json")}}.dump() + "\n");
  watch->step(clock.now(), events);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].type, Type::kReplaced);
  EXPECT_EQ(events[1].type, Type::kModified);
  ASSERT_EQ(events[1].objects.size(), 1U);
  EXPECT_NE(events[1].objects[0].certificate, "");
}

}  // namespace certificate_api_test
}  // namespace slurmlet::kube

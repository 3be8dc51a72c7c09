#include "kube/certificate_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"
#include "kube/fixture_file.h"

namespace slurmlet::kube {
namespace certificate_api_test {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CertificateRequest read_fixture(const std::string& name) {
  const auto request = certificate_request_from_json(fixture_json(name));
  EXPECT_TRUE(request) << name;
  return request ? *request : CertificateRequest{};
}

TEST(CertificateJsonTest, WhatBecameOfIt) {
  const struct {
    const char* file;
    bool approved, denied, failed, has_certificate;
    const char* message;
  } rows[] = {{"csr-pending.json", false, false, false, false, ""},
              {"csr-issued.json", true, false, false, true, ""},
              {"csr-denied.json", false, true, false, false, "KubectlDeny: "},
              {"csr-failed.json", true, false, true, false, "SignerValidationFailure: usages"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.file);
    const CertificateRequest request = read_fixture(row.file);
    EXPECT_EQ(request.uid.size(), 36U);
    EXPECT_EQ(request.signer_name, kServingSigner);
    EXPECT_THAT(request.request_pem, StartsWith("-----BEGIN CERTIFICATE REQUEST-----\n"));
    EXPECT_THAT(request.usages, Contains("server auth"));
    EXPECT_EQ(request.approved, row.approved);
    EXPECT_EQ(request.denied, row.denied);
    EXPECT_EQ(request.failed, row.failed);
    EXPECT_EQ(request.certificate.starts_with("-----BEGIN CERTIFICATE-----\n"),
              row.has_certificate);
    EXPECT_THAT(request.message, StartsWith(row.message));
    EXPECT_EQ(request.message.empty(), *row.message == 0);
  }
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
  CertificateRequest wanted = read_fixture("csr-pending.json");
  wanted.expiration = std::chrono::hours{24};
  client_.answer(201, fixture_text("csr-pending.json"));
  const auto created = api_.create(wanted);
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_EQ(created->uid, wanted.uid);
  EXPECT_EQ(client_.last().method, "POST");
  EXPECT_THAT(client_.last().path, HasSubstr("/certificatesigningrequests?"));
  const json held = fixture_json("csr-pending.json");
  json spec = {{"expirationSeconds", 86400}};
  for (const char* key : {"request", "signerName", "usages"}) {
    spec[key] = held["spec"][key];
  }
  EXPECT_EQ(json::parse(client_.last().body), (json{{"apiVersion", held["apiVersion"]},
                                                    {"kind", held["kind"]},
                                                    {"metadata", {{"name", "pending"}}},
                                                    {"spec", spec}}));
  client_.answer(409,
                 R"({"kind":"Status","status":"Failure","reason":"AlreadyExists","code":409})");
  EXPECT_EQ(api_.create({}).error().code, Code::kConflict);
}

TEST_F(CertificateApiTest, Get) {
  client_.answer(200, fixture_text("csr-issued.json"));
  const auto request = api_.get("issued/..");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(request->approved);
  EXPECT_THAT(client_.last().path, HasSubstr("/certificatesigningrequests/issued%2F.."));
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
  EXPECT_THAT(client_.last().path, HasSubstr("?fieldSelector=metadata.name%3Dissued"));
  watch->step(clock.now(), events);
  client_.stream().status = 200;
  client_.stream().feed(
      json{{"type", "MODIFIED"}, {"object", fixture_json("csr-issued.json")}}.dump() + "\n");
  watch->step(clock.now(), events);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].type, WatchEvent<CertificateRequest>::Type::kModified);
  EXPECT_NE(events[1].objects.at(0).certificate, "");
}

}  // namespace certificate_api_test
}  // namespace slurmlet::kube

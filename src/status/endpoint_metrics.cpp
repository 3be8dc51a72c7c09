#include <utility>

#include "status/metrics.h"

namespace slurmlet::status {
namespace {

using podapi::MetricFamily;
using podapi::MetricType;
using podapi::Sample;

double epoch_seconds(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

struct Kind {
  const char* name;
  std::optional<WallTime> not_after;
  const std::optional<credentials::CertificateStatus>& requests;
};

}  // namespace

void add_certificate_metrics(std::vector<MetricFamily>& out,
                             const credentials::CertificateReport& certificates) {
  MetricFamily expiry{"slurmlet_certificate_expiration_timestamp_seconds",
                      "When the certificate in use expires.",
                      MetricType::kGauge,
                      {}};
  MetricFamily pending{"slurmlet_certificate_request_pending",
                       "1 while a certificate request is waiting for approval.",
                       MetricType::kGauge,
                       {}};
  MetricFamily asked{"slurmlet_certificate_requests_total",
                     "Certificate requests sent.",
                     MetricType::kCounter,
                     {}};
  MetricFamily renewals{"slurmlet_certificate_renewals_total",
                        "Certificates issued to this daemon.",
                        MetricType::kCounter,
                        {}};
  for (const Kind& kind :
       {Kind{"client", certificates.client_not_after, certificates.client_requests},
        Kind{"serving", certificates.serving_not_after, certificates.serving_requests}}) {
    const auto sample = [&kind](double value) {
      return Sample{{{"certificate", kind.name}}, value, ""};
    };
    if (kind.not_after) {
      expiry.samples.push_back(sample(epoch_seconds(*kind.not_after)));
    }
    if (kind.requests) {
      pending.samples.push_back(sample(kind.requests->pending ? 1 : 0));
      asked.samples.push_back(sample(static_cast<double>(kind.requests->requests)));
      renewals.samples.push_back(sample(static_cast<double>(kind.requests->renewals)));
    }
  }
  for (auto* family : {&expiry, &pending, &asked, &renewals}) {
    if (!family->samples.empty()) {
      out.push_back(std::move(*family));
    }
  }
  if (certificates.serving_not_after) {
    out.push_back(single_metric("slurmlet_serving_certificate_self_signed", MetricType::kGauge,
                                "1 while the kubelet endpoint presents a self-signed certificate.",
                                certificates.serving_self_signed ? 1 : 0));
  }
  out.push_back(single_metric("slurmlet_credential_reload_failures_total", MetricType::kCounter,
                              "Replaced credential files that were rejected.",
                              static_cast<double>(certificates.reload_failures)));
}

void add_endpoint_metrics(std::vector<MetricFamily>& out, const EndpointCounters& endpoint) {
  const auto count = [](std::uint64_t value) { return static_cast<double>(value); };
  MetricFamily listening{
      "slurmlet_endpoint_listening",
      "1 while the endpoint is listening on its port, 0 while another program holds it.",
      MetricType::kGauge,
      {}};
  MetricFamily failures{"slurmlet_endpoint_bind_failures_total",
                        "Attempts to listen on the endpoint's port that failed.",
                        MetricType::kCounter,
                        {}};
  for (const auto& [name, server] :
       {std::pair{"kubelet", &endpoint.server}, std::pair{"healthz", &endpoint.health}}) {
    if (*server) {
      listening.samples.push_back({{{"endpoint", name}}, (*server)->listening ? 1.0 : 0.0, ""});
      failures.samples.push_back({{{"endpoint", name}}, count((*server)->bind_failures), ""});
    }
  }
  for (auto* family : {&listening, &failures}) {
    if (!family->samples.empty()) {
      out.push_back(std::move(*family));
    }
  }
  const podapi::ServerCounters server = endpoint.server.value_or(podapi::ServerCounters{});
  MetricFamily answers{"slurmlet_endpoint_requests_total",
                       "Requests to the kubelet endpoint by HTTP status.",
                       MetricType::kCounter,
                       {}};
  for (const auto& [status, number] : server.answers) {
    answers.samples.push_back({{{"code", std::to_string(status)}}, count(number), ""});
  }
  if (!answers.samples.empty()) {
    out.push_back(std::move(answers));
  }
  out.push_back(single_metric("slurmlet_endpoint_connections", MetricType::kGauge,
                              "Open connections to the kubelet endpoint.",
                              static_cast<double>(server.open)));
  out.push_back({"slurmlet_endpoint_rejected_connections_total",
                 "Connections to the kubelet endpoint that were rejected or closed early.",
                 MetricType::kCounter,
                 {{{{"cause", "limit"}}, count(server.turned_away), ""},
                  {{{"cause", "evicted"}}, count(server.evicted), ""},
                  {{{"cause", "handshake"}}, count(server.handshakes_failed), ""},
                  {{{"cause", "timeout"}}, count(server.timed_out), ""},
                  {{{"cause", "malformed"}}, count(server.refused_heads), ""}}});
  out.push_back(
      single_metric("slurmlet_endpoint_handshakes_delayed_total", MetricType::kCounter,
                    "TLS handshakes with the kubelet endpoint that were delayed by a rate limit: "
                    "per address, per network, or for all unknown addresses together.",
                    count(server.handshakes_delayed)));
  out.push_back({"slurmlet_endpoint_reviews_total",
                 "Reviews of clients of the kubelet endpoint requested from the API server.",
                 MetricType::kCounter,
                 {{{{"kind", "token"}}, count(endpoint.gate.token_reviews), ""},
                  {{{"kind", "access"}}, count(endpoint.gate.access_reviews), ""}}});
}

}  // namespace slurmlet::status

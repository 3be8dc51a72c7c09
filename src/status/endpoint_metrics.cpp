#include <utility>

#include "status/metrics.h"

namespace slurmlet::status {
namespace {

using podapi::counter;
using podapi::gauge;
using podapi::labelled;
using podapi::MetricFamily;

double epoch_seconds(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

void add_those_with_samples(std::initializer_list<MetricFamily*> families,
                            std::vector<MetricFamily>& out) {
  for (auto* family : families) {
    if (!family->samples.empty()) {
      out.push_back(std::move(*family));
    }
  }
}

struct Kind {
  const char* name;
  std::optional<WallTime> not_after;
  const std::optional<credentials::CertificateStatus>& requests;
};

}  // namespace

void add_certificate_metrics(std::vector<MetricFamily>& out,
                             const credentials::CertificateReport& certificates) {
  MetricFamily expiry = gauge("slurmlet_certificate_expiration_timestamp_seconds",
                              "When the certificate in use expires.", {});
  MetricFamily pending = gauge("slurmlet_certificate_request_pending",
                               "1 while a certificate request is waiting for approval.", {});
  MetricFamily asked =
      counter("slurmlet_certificate_requests_total", "Certificate requests sent.", {});
  MetricFamily renewals =
      counter("slurmlet_certificate_renewals_total", "Certificates issued to this daemon.", {});
  for (const Kind& kind :
       {Kind{"client", certificates.client_not_after, certificates.client_requests},
        Kind{"serving", certificates.serving_not_after, certificates.serving_requests}}) {
    const auto sample = [&kind](auto value) { return labelled("certificate", kind.name, value); };
    if (kind.not_after) {
      expiry.samples.push_back(sample(epoch_seconds(*kind.not_after)));
    }
    if (kind.requests) {
      pending.samples.push_back(sample(kind.requests->pending ? 1 : 0));
      asked.samples.push_back(sample(kind.requests->requests));
      renewals.samples.push_back(sample(kind.requests->renewals));
    }
  }
  add_those_with_samples({&expiry, &pending, &asked, &renewals}, out);
  if (certificates.serving_not_after) {
    out.push_back(gauge("slurmlet_serving_certificate_self_signed",
                        "1 while the kubelet endpoint presents a self-signed certificate.",
                        certificates.serving_self_signed ? 1 : 0));
  }
  out.push_back(counter("slurmlet_credential_reload_failures_total",
                        "Replaced credential files that were rejected.",
                        certificates.reload_failures));
}

void add_endpoint_metrics(std::vector<MetricFamily>& out, const EndpointCounters& endpoint) {
  MetricFamily listening =
      gauge("slurmlet_endpoint_listening",
            "1 while the endpoint is listening on its port, 0 while another program holds it.", {});
  MetricFamily failures = counter("slurmlet_endpoint_bind_failures_total",
                                  "Attempts to listen on the endpoint's port that failed.", {});
  for (const auto& [name, server] :
       {std::pair{"kubelet", &endpoint.server}, std::pair{"healthz", &endpoint.health}}) {
    if (*server) {
      listening.samples.push_back(labelled("endpoint", name, (*server)->listening ? 1 : 0));
      failures.samples.push_back(labelled("endpoint", name, (*server)->bind_failures));
    }
  }
  const podapi::ServerCounters server = endpoint.server.value_or(podapi::ServerCounters{});
  MetricFamily answers = counter("slurmlet_endpoint_requests_total",
                                 "Requests to the kubelet endpoint by HTTP status.", {});
  for (const auto& [status, number] : server.answers) {
    answers.samples.push_back(labelled("code", std::to_string(status), number));
  }
  add_those_with_samples({&listening, &failures, &answers}, out);
  out.push_back(gauge("slurmlet_endpoint_connections", "Open connections to the kubelet endpoint.",
                      server.open));
  out.push_back(counter(
      "slurmlet_endpoint_rejected_connections_total",
      "Connections to the kubelet endpoint that were rejected or closed early.",
      {labelled("cause", "limit", server.turned_away), labelled("cause", "evicted", server.evicted),
       labelled("cause", "handshake", server.handshakes_failed),
       labelled("cause", "timeout", server.timed_out),
       labelled("cause", "malformed", server.refused_heads)}));
  out.push_back(
      counter("slurmlet_endpoint_handshakes_delayed_total",
              "TLS handshakes with the kubelet endpoint that were delayed by a rate limit: "
              "per address, per network, or for all unknown addresses together.",
              server.handshakes_delayed));
  out.push_back(counter("slurmlet_endpoint_reviews_total",
                        "TokenReviews and SubjectAccessReviews of clients of the kubelet endpoint.",
                        {labelled("kind", "token", endpoint.gate.token_reviews),
                         labelled("kind", "access", endpoint.gate.access_reviews)}));
}

}  // namespace slurmlet::status

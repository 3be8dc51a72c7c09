#include "operator/machines/approval_rules.h"

#include <algorithm>

#include "base/text.h"
#include "credentials/certificate_rules.h"
#include "node/vocabulary.h"
#include "tls/certificates.h"

namespace slurmlet::op {
namespace {

constexpr std::string_view kNodeUser = node::vocabulary::kNodeUser;
constexpr std::string_view kNodesGroup = node::vocabulary::kNodesGroup;
constexpr const char* kNoMachine =
    "this node has no Machine, more than one, or one that is being deleted";

bool has_word(const std::vector<std::string>& list, std::string_view wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

// Usages that both signers permit.
std::string usage_problem(const kube::CertificateRequest& request, std::string_view purpose) {
  if (!has_word(request.usages, purpose)) {
    return "the request does not have the usage \"" + std::string{purpose} + '"';
  }
  for (const auto& usage : request.usages) {
    if (usage != purpose && usage != "digital signature" && usage != "key encipherment") {
      return "the request also has the usage \"" + usage + '"';
    }
  }
  return "";
}

// Canonical form of an address, lower case of a name, for comparison.
std::string normal(const std::string& text) {
  return to_lower(credentials::canonical_address(text));
}

std::string foreign_name(const tls::CertificateSubject& requested, const MachineNames& machine) {
  std::vector<std::string> own;
  std::transform(machine.addresses.begin(), machine.addresses.end(), std::back_inserter(own),
                 normal);
  for (const auto* names : {&requested.dns_names, &requested.ip_addresses}) {
    for (const auto& name : *names) {
      // Other bytes might end a name for one parser and not for another.
      if (!all_alnum(name, ".:-") || !has_word(own, normal(name))) {
        return name;
      }
    }
  }
  return "";
}

std::string serving_rejection(const kube::CertificateRequest& request,
                              const tls::CertificateSubject& requested,
                              const std::optional<MachineNames>& machine) {
  if (request.username != requested.common_name || !has_word(request.groups, kNodesGroup)) {
    return "the request was not created by the node itself";
  }
  if (requested.dns_names.empty() && requested.ip_addresses.empty()) {
    return "the request contains neither a DNS name nor an IP address";
  }
  if (!machine) {
    return kNoMachine;
  }
  if (!machine->has_node) {
    return "the node's Machine has no nodeRef yet";
  }
  if (const std::string name = foreign_name(requested, *machine); !name.empty()) {
    return name + " is not a name or address of the node's Machine";
  }
  return usage_problem(request, "server auth");
}

std::string client_rejection(const kube::CertificateRequest& request,
                             const tls::CertificateSubject& requested,
                             const std::optional<MachineNames>& machine, bool node_is_up) {
  if (!requested.dns_names.empty() || !requested.ip_addresses.empty()) {
    return "the request contains DNS names or IP addresses, which a client certificate must not "
           "have";
  }
  if (!machine) {
    return kNoMachine;
  }
  if (!machine->hooked) {
    return "the node's Machine does not have slurmlet's hook";
  }
  if (node_is_up) {
    return "a Node of this name is Ready or renews its Lease, so another machine uses the name";
  }
  return usage_problem(request, "client auth");
}

}  // namespace

std::string requested_node(const kube::CertificateRequest& request) {
  const auto requested = tls::read_certificate_request(request.request_pem);
  return requested && requested->common_name.starts_with(kNodeUser)
             ? requested->common_name.substr(kNodeUser.size())
             : "";
}

CertificateRuling rule_certificate(const kube::CertificateRequest& request,
                                   const std::optional<MachineNames>& machine, bool node_is_up,
                                   const std::string& bootstrap_group) {
  const bool serving = request.signer_name == kube::kServingSigner;
  const bool client = request.signer_name == kube::kClientSigner && !bootstrap_group.empty() &&
                      has_word(request.groups, bootstrap_group);
  if ((!serving && !client) || request.approved || request.denied || request.failed) {
    return {};
  }
  const auto requested = tls::read_certificate_request(request.request_pem);
  if (!requested) {
    return {false, requested.error().message};
  }
  if (!requested->common_name.starts_with(kNodeUser) ||
      requested->organizations != std::vector<std::string>{std::string{kNodesGroup}}) {
    return {false, "its subject is not CN=system:node:NAME, O=system:nodes"};
  }
  std::string why = serving ? serving_rejection(request, *requested, machine)
                            : client_rejection(request, *requested, machine, node_is_up);
  return {why.empty(), std::move(why)};
}

}  // namespace slurmlet::op

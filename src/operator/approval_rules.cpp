#include "operator/approval_rules.h"

#include <algorithm>

#include "base/text.h"
#include "credentials/certificate_rules.h"
#include "node/vocabulary.h"
#include "tls/certificates.h"

namespace slurmlet::op {
namespace {

constexpr std::string_view kNodeUser = node::vocabulary::kNodeUser;
constexpr std::string_view kNodesGroup = node::vocabulary::kNodesGroup;

bool contains(const std::vector<std::string>& list, std::string_view wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

// What both signers ask for, and no more.
std::string odd_usages(const kube::CertificateRequest& request, std::string_view purpose) {
  if (!contains(request.usages, purpose)) {
    return "it is not for " + std::string{purpose};
  }
  for (const auto& usage : request.usages) {
    if (usage != purpose && usage != "digital signature" && usage != "key encipherment") {
      return "it is for " + usage + ", too";
    }
  }
  return "";
}

// An address in the one form that it is compared by; a name in lower case.
std::string normal(const std::string& text) {
  return to_lower(credentials::canonical_address(text));
}

std::string foreign_name(const tls::CertificateSubject& asked, const MachineNames& machine) {
  std::vector<std::string> own;
  std::transform(machine.addresses.begin(), machine.addresses.end(), std::back_inserter(own),
                 normal);
  for (const auto* names : {&asked.dns_names, &asked.ip_addresses}) {
    for (const auto& name : *names) {
      // No byte that ends a name or an address for one reader and not for another.
      if (!all_alnum(name, ".:-") || !contains(own, normal(name))) {
        return name;
      }
    }
  }
  return "";
}

std::string kept_from_serving(const kube::CertificateRequest& request,
                              const tls::CertificateSubject& asked,
                              const std::optional<MachineNames>& machine) {
  if (request.username != asked.common_name || !contains(request.groups, kNodesGroup)) {
    return "it was not made by the node itself";
  }
  if (asked.dns_names.empty() && asked.ip_addresses.empty()) {
    return "it has neither a name nor an address";
  }
  if (!machine || !machine->has_node) {
    return "no Machine that lives has this Node";
  }
  if (const std::string name = foreign_name(asked, *machine); !name.empty()) {
    return name + " is no name or address of its Machine";
  }
  return odd_usages(request, "server auth");
}

std::string kept_from_client(const kube::CertificateRequest& request,
                             const tls::CertificateSubject& asked,
                             const std::optional<MachineNames>& machine, bool node_is_live) {
  if (!asked.dns_names.empty() || !asked.ip_addresses.empty()) {
    return "a client certificate has no names or addresses";
  }
  if (!machine || !machine->hooked) {
    return "no Machine with slurmlet's hook has this name";
  }
  if (node_is_live) {
    return "the Node is Ready: another machine has this name";
  }
  return odd_usages(request, "client auth");
}

}  // namespace

std::string requested_node(const kube::CertificateRequest& request) {
  const auto asked = tls::read_certificate_request(request.request_pem);
  return asked && asked->common_name.starts_with(kNodeUser)
             ? asked->common_name.substr(kNodeUser.size())
             : "";
}

CertificateRuling rule_certificate(const kube::CertificateRequest& request,
                                   const std::optional<MachineNames>& machine, bool node_is_live,
                                   const std::string& bootstrap_group) {
  const bool serving = request.signer_name == kube::kServingSigner;
  const bool client = request.signer_name == kube::kClientSigner && !bootstrap_group.empty() &&
                      contains(request.groups, bootstrap_group);
  if ((!serving && !client) || request.approved || request.denied || request.failed) {
    return {};
  }
  const auto asked = tls::read_certificate_request(request.request_pem);
  if (!asked) {
    return {false, asked.error().message};
  }
  if (!asked->common_name.starts_with(kNodeUser) ||
      asked->organizations != std::vector<std::string>{std::string{kNodesGroup}}) {
    return {false, "it is not for a node"};
  }
  std::string why = serving ? kept_from_serving(request, *asked, machine)
                            : kept_from_client(request, *asked, machine, node_is_live);
  return {why.empty(), std::move(why)};
}

}  // namespace slurmlet::op

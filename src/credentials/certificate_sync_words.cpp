// What a CertificateSync reports to people.

#include "base/log.h"
#include "credentials/certificate_sync.h"

namespace slurmlet::credentials {

void CertificateSync::remind(Now now) {
  if (submitted_->reminded || now.steady - submitted_->since < kApprovalGrace) {
    return;
  }
  submitted_->reminded = true;
  say(log::info, submitted_->approved
                     ? "request " + submitted_->name + " is approved and waiting for its signer"
                     : "request " + submitted_->name +
                           " is waiting for approval: kubectl certificate approve " +
                           submitted_->name);
}

CertificateStatus CertificateSync::status() const {
  CertificateStatus status = status_;
  if (store_problem_ && !store_problem_->empty()) {
    status.problem = *store_problem_;
  }
  return status;
}

std::string CertificateSync::title() const {
  return options_.what + " of node " + options_.node_name;
}

void CertificateSync::complain(const std::string& problem, Now now) {
  status_.problem = problem;
  say(is_valid(now) ? log::warning : log::error, problem);
}

void CertificateSync::say(void (*write)(const std::string&), const std::string& what) {
  const std::string line = title() + ": " + what;
  if (line != said_) {
    said_ = line;
    write(line);
  }
}

}  // namespace slurmlet::credentials

#include "node/facts.h"

namespace slurmlet::node {

std::string SlurmState::raw() const {
  std::string text = base;
  for (const auto& flag : flags) {
    text += "+" + flag;
  }
  return text;
}

}  // namespace slurmlet::node

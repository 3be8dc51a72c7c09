#pragma once

// The keys of `scontrol show node` (22.05 … 25.11) and what their values mean. Pure but for the
// time zone.

#include <string_view>

#include "node/facts.h"

namespace slurmlet::slurm {

// "CPUTot", "MCS_label": how Slurm spells keys, known or not.
bool is_key_shaped(std::string_view key);

// Known, used here or not.
bool is_known_key(std::string_view key);

// Keys whose value an administrator writes as he likes: spaces, "=", line breaks.
bool is_free_text_key(std::string_view key);

// What stands before the first of them in a record of one line.
std::string_view before_free_text(std::string_view line);

// Keys that may stand behind free text; no others do.
bool is_tail_key(std::string_view key);

// Puts the value of a known key where it belongs. False when the value cannot be understood; the
// field then stays as it was.
bool take_field(std::string_view key, std::string_view value, node::SlurmNodeRecord& record);

// "[root@2026-11-20T23:43:00]", with which scontrol signs a reason. False when the time is in a
// form that is not known here (SLURM_TIME_FORMAT).
bool take_attribution(std::string_view text, node::SlurmNodeRecord& record);
bool is_attribution(std::string_view text);

}  // namespace slurmlet::slurm

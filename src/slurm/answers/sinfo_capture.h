#pragma once

// What somebody made sinfo print, in other forms than our own query's (sinfo.h): columns between
// "|" (-o "%N|%T", -O "NodeList:|"), with or without headings; its tables (sinfo, -N, -l, -N -l,
// -R); a state word alone (-o %T). The forms do not say what their columns are: known ones are
// recognised by what can stand where, others only as far as the content leaves no doubt. Pure.
//
// sinfo's words do not tell everything: "drained" is IDLE+DRAIN or DOWN+DRAIN, "inval" hides other
// flags, one sign hides the next (state.h).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/facts.h"

namespace slurmlet::slurm {

struct SinfoCapture {
  std::vector<node::SlurmNodeRecord> nodes;  // without a name where none is printed
  std::string cluster;                       // "CLUSTER: name", with -M
  std::vector<std::string> not_understood;
};

// Nothing when this is no output of sinfo.
std::optional<SinfoCapture> parse_sinfo_capture(std::string_view text);

}  // namespace slurmlet::slurm

#pragma once

// Captured text made ready to be recognised: without what terminals, editors and shells add, and
// without the head of an HTTP answer. Only capture.cpp uses this. Pure.

#include <string>
#include <string_view>
#include <vector>

namespace slurmlet::slurm {

// Without a byte order mark, escape sequences of terminals, and with "\n" for "\r\n".
std::string plain_text(std::string_view text);

// Without the lines of a shell before and behind an output: prompts ("$ sinfo -N", "[root@n1 ~]#
// "), comments ("# exit=0"), and the command itself.
std::string_view without_shell_lines(std::string_view text);

// Takes the lines at the front that are messages of Slurm's programs ("sinfo: error: …",
// "slurm_load_node error: …"), which a shell mixes with the output. Gives back the rest.
std::string_view take_messages(std::string_view text, std::vector<std::string_view>& messages);

// Whether the line is such a message.
bool is_message(std::string_view line);

struct HttpHead {
  int status = 0;  // of the last head; 0 when there is none
  std::string_view body;
};

// The heads that `curl -i` prints: those of "100 Continue", of a proxy's tunnel and of redirections
// come before the answer's own. A head that is cut off has no body.
HttpHead split_http(std::string_view text);

}  // namespace slurmlet::slurm

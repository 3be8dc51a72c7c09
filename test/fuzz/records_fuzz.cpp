// Fuzzes what the operator reads of a whole site, slurmrestd's list (slurm/answers/node_list.h) and
// scontrol's dump (slurm/sources/site_dump.h), and what a daemon reads on its Node
// (slurm/sources/published_record.h). The first byte is the size of the pieces in which the rest
// comes, less one.
//
// Beside what the sanitizers find: a list is the same however it is cut, each record belongs to its
// name, a record is read on the Node as it was published, and a node that looks for its own finds
// the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/plain_text.h"
#include "slurm/answers/node_json.h"
#include "slurm/answers/node_list.h"
#include "slurm/answers/record_text.h"
#include "slurm/sources/published_record.h"
#include "slurm/sources/site_dump.h"

namespace {

using namespace slurmlet::slurm;

void require(bool good) {
  if (!good) {
    std::abort();
  }
}

bool feed(NodeListReader& reader, std::string_view text, std::size_t piece) {
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    if (!reader.feed(text.substr(0, piece))) {
      return false;
    }
  }
  return true;
}

void look_at(const DumpRecords& records) {
  for (const auto& [name, text] : records) {
    require(is_record_name(name) && text.ends_with('\n'));
    const auto record = read_record_text(text);
    require(!record || (record->name == name && !record->state.base.empty()));
    PublishedRecord published;
    published.interval = published.refresh = std::chrono::seconds{30};
    published.text = text;
    const std::string annotation = to_annotation(published);
    require(slurmlet::valid_utf8(annotation) == annotation);
    const auto read = parse_published_record(annotation);
    require(read ? slurmlet::valid_utf8(text) != text || *read == published
                 : annotation.size() > kMaxAnnotationBytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view input{reinterpret_cast<const char*>(data) + 1, size - 1};
  NodeListReader whole;
  NodeListReader cut;
  const bool good = feed(whole, input, input.size());
  require(feed(cut, input, std::size_t{data[0]} + 1) == good);
  if (good) {
    const DumpRecords records = whole.take_records();
    require(cut.take_records() == records && cut.frame() == whole.frame());
    require(records.empty() || whole.has_nodes());
    (void)parse_nodes_json(whole.frame(), 200);
    look_at(records);
  }
  if (const auto records = split_dump(input)) {
    look_at(*records);
    if (!records->empty()) {
      const auto& [name, text] = *records->begin();
      const auto own = split_dump(input, "", name);
      require(own && own->size() == 1 && own->begin()->second == text);
    }
  }
  (void)parse_published_record(input);
  (void)read_record_text(input);
  return 0;
}

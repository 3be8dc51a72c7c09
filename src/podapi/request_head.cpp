#include "podapi/request_head.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace slurmlet::podapi {
namespace {

constexpr std::size_t kMaxMethodBytes = 16;
constexpr std::size_t kVersionBytes = 8;  // "HTTP/1.1"

constexpr std::array<std::string_view, 7> kMethods{"GET",   "HEAD",   "POST",   "PUT",
                                                   "PATCH", "DELETE", "OPTIONS"};
// Two parsers may disagree about a repeated header (request smuggling).
constexpr std::array<std::string_view, 4> kOnlyOnce{"host", "content-length", "transfer-encoding",
                                                    "authorization"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alnum(char c) { return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
bool is_hex(char c) { return is_digit(c) || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f'); }

bool is_printable(char c) { return c >= ' ' && c <= '~'; }

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

// RFC 9110 section 5.6.2.
bool is_token_char(char c) { return is_alnum(c) || is_one_of(c, "!#$%&'*+-.^_`|~"); }

// RFC 3986 sections 3.3 and 3.4: pchar, "/" and "?", without the percent sign.
bool is_target_char(char c) { return is_alnum(c) || is_one_of(c, "-._~!$&'()*+,;=:@/?"); }

// RFC 3986 section 3.2: host and port.
bool is_authority_char(char c) { return is_alnum(c) || is_one_of(c, "-._~!$&'()*+,;=:[]%"); }

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_char);
}

bool is_target(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (text.size() - i < 3 || !is_hex(text[i + 1]) || !is_hex(text[i + 2])) {
        return false;
      }
      i += 2;
    } else if (!is_target_char(text[i])) {
      return false;
    }
  }
  return true;
}

// Whether a Connection header lists `option`.
bool lists(const RequestHead& head, std::string_view option) {
  for (const auto& [name, value] : head.headers) {
    if (name != "connection") {
      continue;
    }
    for (const auto part : split(value, ',')) {
      if (to_lower(trim(part)) == option) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::optional<std::string> RequestHead::header(std::string_view name) const {
  std::optional<std::string> found;
  for (const auto& [key, value] : headers) {
    if (key == name) {
      if (found) {
        return std::nullopt;
      }
      found = value;
    }
  }
  return found;
}

std::size_t HeadReader::feed(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && state_ == State::kIncomplete) {
    take(bytes[taken]);
    ++taken;
  }
  return taken;
}

void HeadReader::reject(int status, const char* why) {
  state_ = State::kRejected;
  rejection_status_ = status;
  rejection_ = why;
  line_ = {};
  head_ = {};
}

void HeadReader::take(char byte) {
  ++taken_;
  if (taken_ > limits_.max_bytes) {
    return reject(431, "the head of the request is too long");
  }
  if (after_cr_) {
    after_cr_ = false;
    return byte == '\n' ? end_line() : reject(400, "a CR without LF");
  }
  if (byte == '\r') {
    after_cr_ = true;
    return;
  }
  if (byte == '\n') {
    return reject(400, "a LF without CR");
  }
  const bool is_header = !head_.method.empty();
  if (!is_printable(byte) && !(byte == '\t' && is_header)) {
    return reject(400, "a control character, or a byte that is not ASCII");
  }
  if (is_header || fits(byte)) {
    line_ += byte;
  }
}

// Rejects an endless request line early, with the matching status.
bool HeadReader::fits(char byte) {
  const auto space = line_.find(' ');
  if (space == std::string::npos) {
    if (byte != ' ' && !is_token_char(byte)) {
      reject(400, "this is not HTTP");
    } else if (line_.size() >= kMaxMethodBytes && byte != ' ') {
      reject(501, "unknown method");
    }
  } else if (const auto second = line_.find(' ', space + 1); second == std::string::npos) {
    if (line_.size() - space > limits_.max_target_bytes && byte != ' ') {
      reject(414, "the target is too long");
    }
  } else if (line_.size() - second > kVersionBytes) {
    reject(400, "the request line is not METHOD TARGET VERSION");
  }
  return state_ == State::kIncomplete;
}

void HeadReader::end_line() {
  if (head_.method.empty()) {
    read_request_line();
  } else if (line_.empty()) {
    finish();
  } else {
    read_header_line();
  }
  line_.clear();
}

void HeadReader::read_request_line() {
  const std::string_view line = line_;
  const auto first = line.find(' ');
  const auto second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) {
    return reject(400, "the request line is not METHOD TARGET VERSION");
  }
  const auto method = line.substr(0, first);
  const auto target = line.substr(first + 1, second - first - 1);
  const auto version = line.substr(second + 1);
  if (version.size() != kVersionBytes || version.substr(0, 5) != "HTTP/" || !is_digit(version[5]) ||
      version[6] != '.' || !is_digit(version[7]) || !is_token(method)) {
    return reject(400, "the request line is not METHOD TARGET VERSION");
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return reject(505, "only HTTP/1.1 and HTTP/1.0 are supported");
  }
  if (std::find(kMethods.begin(), kMethods.end(), method) == kMethods.end()) {
    return reject(501, "unknown method");
  }
  is_http_1_0_ = version == "HTTP/1.0";
  head_.method = method;
  read_target(target);
}

void HeadReader::read_target(std::string_view target) {
  if (target.empty() || target.front() != '/' || !is_target(target)) {
    return reject(400, "the target is not an absolute path");
  }
  const auto question_mark = target.find('?');
  head_.path = target.substr(0, question_mark);
  if (question_mark != std::string_view::npos) {
    head_.query = target.substr(question_mark + 1);
  }
}

void HeadReader::read_header_line() {
  if (head_.headers.size() >= limits_.max_headers) {
    return reject(431, "too many headers");
  }
  const std::string_view line = line_;
  const auto colon = line.find(':');
  // Also rejects white space before the colon and folded lines.
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return reject(400, "a header is not NAME: VALUE");
  }
  std::string name = to_lower(line.substr(0, colon));
  if (std::find(kOnlyOnce.begin(), kOnlyOnce.end(), name) != kOnlyOnce.end() &&
      head_.header(name)) {
    return reject(400, "a header that may occur only once is repeated");
  }
  head_.headers.emplace_back(std::move(name), trim(line.substr(colon + 1)));
}

void HeadReader::finish() {
  const auto host = head_.header("host");
  if ((!host && !is_http_1_0_) || (host && !std::ranges::all_of(*host, is_authority_char))) {
    return reject(400, "Host is missing or malformed");
  }
  check_body();
  if (state_ == State::kRejected) {
    return;
  }
  head_.keep_alive = !lists(head_, "close") && (!is_http_1_0_ || lists(head_, "keep-alive"));
  line_ = {};
  state_ = State::kComplete;
}

void HeadReader::check_body() {
  const auto length = head_.header("content-length");
  const auto coding = head_.header("transfer-encoding");
  if (coding) {
    return length || is_http_1_0_
               ? reject(400, "Transfer-Encoding cannot be combined with Content-Length or HTTP/1.0")
               : reject(501, "transfer codings are not supported");
  }
  if (length && (length->empty() || !std::ranges::all_of(*length, is_digit))) {
    return reject(400, "Content-Length is not a number");
  }
  if (length && *length != "0") {
    return reject(413, "request bodies are not supported");
  }
}

}  // namespace slurmlet::podapi

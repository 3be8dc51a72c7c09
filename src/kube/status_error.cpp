#include "kube/status_error.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "kube/json_read.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxForeignBodyBytes = 160;

// RFC 9110 and 6585 phrases of what API servers and proxies answer.
std::string_view phrase(int status) {
  static constexpr std::array<std::pair<int, std::string_view>, 20> kPhrases{{
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {407, "Proxy Authentication Required"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  }};
  for (const auto& [code, words] : kPhrases) {
    if (code == status) {
      return words;
    }
  }
  return {};
}

// Length of the UTF-8 sequence at the start of `text`, 0 if it is not one (RFC 3629).
std::size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80                    ? 1
                             : lead >= 0xC2 && lead <= 0xDF ? 2
                             : lead >= 0xE0 && lead <= 0xEF ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (length == 0 || length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) {
      return 0;
    }
  }
  if (length >= 3) {
    // Overlong forms, surrogates and code points above U+10FFFF.
    const auto second = static_cast<unsigned char>(text[1]);
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
      return 0;
    }
  }
  return length;
}

// The words of an HTML page: what is between the tags.
std::string without_tags(std::string_view html) {
  std::string words;
  bool in_tag = false;
  for (const char c : html) {
    if (c == '<') {
      in_tag = true;
      words += ' ';
    } else if (c == '>' && in_tag) {
      in_tag = false;
    } else if (!in_tag) {
      words += c;
    }
  }
  return words;
}

std::string foreign_message(std::string_view body) {
  const std::string_view text = trim(body);
  if (text.empty()) {
    return "";
  }
  return one_line(text.front() == '<' ? without_tags(text) : std::string(text),
                  kMaxForeignBodyBytes);
}

}  // namespace

std::string one_line(std::string_view text, std::size_t max_bytes) {
  static constexpr std::string_view kCut = "...";
  std::string line;
  bool space_due = false;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = length == 0 ? std::string_view("?") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
    const auto byte = static_cast<unsigned char>(character[0]);
    if (byte <= 0x20 || byte == 0x7F) {
      space_due = !line.empty();
      continue;
    }
    if (line.size() + character.size() + (space_due ? 1 : 0) + kCut.size() > max_bytes) {
      return line.append(kCut);
    }
    if (std::exchange(space_due, false)) {
      line += ' ';
    }
    line += character;
  }
  return line;
}

std::optional<ApiStatus> status_from_json(const json& value) {
  if (string_at(value, "kind") != "Status") {
    return std::nullopt;
  }
  ApiStatus status;
  status.code = static_cast<int>(int_at(value, "code").value_or(0) % 1000);
  status.reason = string_at(value, "reason");
  status.message = string_at(value, "message");
  if (const json* details = find(value, "details")) {
    const auto seconds = int_at(*details, "retryAfterSeconds").value_or(0);
    if (seconds > 0 && seconds < 86400) {
      status.retry_after = std::chrono::seconds{seconds};
    }
  }
  return status;
}

ApiStatus status_from_body(int http_status, std::string_view body) {
  ApiStatus status;
  if (const auto value = parse_json(body); value) {
    status = status_from_json(*value).value_or(ApiStatus{});
  }
  if (status.message.empty() && status.reason.empty()) {
    status.message = foreign_message(body);
  }
  status.code = http_status;
  return status;
}

Code code_of(const ApiStatus& status) {
  if (status.reason == "Expired" || status.reason == "Gone") {
    return Code::kGone;
  }
  switch (status.code) {
    case 401:
    case 403:
    case 407:
      return Code::kDenied;
    case 404:
      return Code::kNotFound;
    case 409:
      return Code::kConflict;
    case 410:
      return Code::kGone;
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
    case 422:
      return Code::kInvalid;
    case 408:
    case 504:
      return Code::kTimeout;
    case 429:
    case 502:
    case 503:
      return Code::kUnavailable;
    case 500:
      if (status.reason == "Timeout" || status.reason == "ServerTimeout") {
        return Code::kTimeout;
      }
      return status.retry_after ? Code::kUnavailable : Code::kInternal;
    default:
      return Code::kInternal;
  }
}

std::string request_name(const http::Request& request) {
  return request.method + " " + request.path.substr(0, request.path.find('?'));
}

Error status_error(const std::string& request_name, const ApiStatus& status) {
  std::string message = request_name + ": " + std::to_string(status.code);
  if (const std::string_view words = phrase(status.code); !words.empty()) {
    message.append(" ").append(words);
  }
  const std::string& detail = status.message.empty() ? status.reason : status.message;
  if (!detail.empty()) {
    message.append(": ").append(detail);
  }
  return {code_of(status), one_line(message)};
}

ApiStatus status_from_response(const http::Response& response) {
  ApiStatus status = status_from_body(response.status, response.body);
  if (!status.retry_after) {
    status.retry_after = response.retry_after;
  }
  return status;
}

}  // namespace slurmlet::kube

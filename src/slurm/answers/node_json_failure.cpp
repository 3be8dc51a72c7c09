// Numbers and texts of errors are those of Slurm's slurm/slurm_errno.h and
// src/common/slurm_errno.c; which of them comes with which HTTP status is seen in captures of 22.05
// … 25.11 (test/fixtures/slurm).

#include "slurm/answers/node_json_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/plain_text.h"
#include "base/text.h"
#include "slurm/answers/json_fields.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;

constexpr std::size_t kMaxWords = 80;
constexpr std::size_t kMaxErrorText = 256;

constexpr std::string_view kNoSuchNode = "slurmctld has no such node";
constexpr std::string_view kRateLimit =
    "slurmctld limits the rate of requests (SlurmctldParameters=rl_enable)";
// Before 23.11 all of these are "Unspecified error", errno -1.
constexpr std::string_view kUnspecified =
    "slurmrestd could not query slurmctld and gave no reason: slurmctld is down, munged on "
    "slurmrestd's host is down, or the token is expired or invalid";
constexpr std::string_view kTokenRejected =
    "slurmrestd rejected the caller (HTTP 401): on its unix socket the caller must be root or "
    "slurmrestd's own user, over the network it needs a valid token and user name";
constexpr std::string_view kCredential =
    "slurmctld rejected the credential (Protocol authentication error): the token is expired or "
    "invalid, munge on slurmrestd's host is down, or that host's clock is wrong";
constexpr std::string_view kNeedsDatabase =
    "slurmrestd needs slurmdbd for this API version and cannot reach it";

struct NumberRule {
  std::int64_t first;
  std::int64_t last;
  SlurmFailure cause;
  std::string_view detail;  // "" = the text of the error
};

// First match wins. System numbers (errno of Linux) come up where a connection failed below
// Slurm's own protocol.
constexpr std::array kNumbers = std::to_array<NumberRule>({
    {-1, -1, SlurmFailure::kControllerUnreachable, kUnspecified},
    {32, 32, SlurmFailure::kControllerUnreachable, ""},            // EPIPE
    {100, 113, SlurmFailure::kControllerUnreachable, ""},          // ENETDOWN … EHOSTUNREACH
    {1007, 1007, SlurmFailure::kTokenRefused, kCredential},        // PROTOCOL_AUTHENTICATION_ERROR
    {1000, 1099, SlurmFailure::kControllerUnreachable, ""},        // communication
    {1804, 1805, SlurmFailure::kRateLimited, kRateLimit},          // BACKOFF, HARD_DROP
    {1800, 1803, SlurmFailure::kControllerUnreachable, ""},        // … with slurmctld
    {2002, 2002, SlurmFailure::kPermissionDenied, ""},             // ACCESS_DENIED
    {2010, 2010, SlurmFailure::kPermissionDenied, ""},             // USER_ID_MISSING
    {2018, 2018, SlurmFailure::kNotInSlurm, kNoSuchNode},          // INVALID_NODE_NAME
    {2027, 2027, SlurmFailure::kControllerUnreachable, ""},        // IN_STANDBY_MODE
    {2131, 2131, SlurmFailure::kControllerUnreachable, ""},        // IN_STANDBY_USE_BACKUP
    {5003, 5005, SlurmFailure::kControllerUnreachable, ""},        // socket: timeout, no bytes
    {6000, 6999, SlurmFailure::kTokenRefused, ""},                 // slurm_auth
    {7000, 7000, SlurmFailure::kRestUnavailable, kNeedsDatabase},  // DB_CONNECTION
    {9003, 9003, SlurmFailure::kNotInSlurm, kNoSuchNode},          // REST_EMPTY_RESULT
    {9008, 9008, SlurmFailure::kTokenRefused, kTokenRejected},     // REST_AUTH_FAIL
});

struct TextRule {
  std::string_view needle;  // in lower case
  SlurmFailure cause;
  std::string_view detail;
};

// For errors without a number, or with one that is not known here.
constexpr std::array kTexts = std::to_array<TextRule>({
    {"rate limit", SlurmFailure::kRateLimited, kRateLimit},
    {"protocol authentication error", SlurmFailure::kTokenRefused, kCredential},
    {"authentication failure", SlurmFailure::kTokenRefused, kTokenRejected},
    {"permission denied", SlurmFailure::kPermissionDenied, ""},
    {"invalid user id", SlurmFailure::kPermissionDenied, ""},
    {"invalid node name", SlurmFailure::kNotInSlurm, kNoSuchNode},
    {"unable to contact slurm controller", SlurmFailure::kControllerUnreachable, ""},
    {"timed out", SlurmFailure::kControllerUnreachable, ""},
    {"zero bytes were transmitted", SlurmFailure::kControllerUnreachable, ""},
    {"connection refused", SlurmFailure::kControllerUnreachable, ""},
    {"connection reset by peer", SlurmFailure::kControllerUnreachable, ""},
    {"no route to host", SlurmFailure::kControllerUnreachable, ""},
});

QueryFailure make(SlurmFailure cause, std::string_view rule, const std::string& text) {
  return {cause, rule.empty() ? text : std::string{rule}};
}

// Slurm's own words for it, without the step of slurmrestd that failed.
std::string own_words(const SlurmError& error) {
  return plain_text(error.text.empty() ? error.description : error.text, kMaxErrorText);
}

std::optional<QueryFailure> classify_error(const SlurmError& error) {
  // Since 23.11 slurmctld has no error of its own for an unknown node: "No error", 0.
  if (error.number == 0 && error.description.starts_with("Failure to query node ")) {
    return QueryFailure{SlurmFailure::kNotInSlurm, std::string{kNoSuchNode}};
  }
  const auto text = own_words(error);
  for (const auto& rule : kNumbers) {
    if (error.number && *error.number >= rule.first && *error.number <= rule.last) {
      return make(rule.cause, rule.detail,
                  text.empty() ? fmt::format("Slurm's error {}", *error.number) : text);
    }
  }
  const auto words = to_lower(error.text + " " + error.description);
  for (const auto& rule : kTexts) {
    if (words.find(rule.needle) != std::string::npos) {
      return make(rule.cause, rule.detail, text);
    }
  }
  return std::nullopt;
}

// What stands between the end of the tag that begins with `open` and `close`.
std::string_view between(std::string_view text, std::string_view lower, std::string_view open,
                         std::string_view close) {
  const auto tag = lower.find(open);
  const auto start = tag == std::string_view::npos ? tag : lower.find('>', tag);
  const auto end = start == std::string_view::npos ? start : lower.find(close, start);
  return end == std::string_view::npos ? std::string_view{}
                                       : text.substr(start + 1, end - start - 1);
}

// The text of a page: the title of HTML, or else all of it; nothing of JSON.
std::string page_text(std::string_view body) {
  const auto lower = to_lower(body);
  if (lower.find("<html") != std::string::npos || lower.find("<!doctype") != std::string::npos) {
    auto title = without_tags(between(body, lower, "<title", "</title"));
    return trim(title).empty() ? without_tags(body) : title;
  }
  const auto text = trim(body);
  return text.starts_with('{') || text.starts_with('[') ? "" : std::string{text};
}

// What a person would call this page. Without long words and long numbers: a token must not show,
// and what changes with each request (an id) must not either.
std::string page_words(std::string_view body) {
  constexpr std::size_t kEnough = 4096;
  constexpr std::size_t kLongWord = 30;
  constexpr int kManyDigits = 5;
  std::vector<std::string> words;
  const auto text = plain_text(page_text(body.substr(0, kEnough)), kEnough);
  for (const auto word : split(text, ' ')) {
    const auto digits =
        std::count_if(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!word.empty() && word.size() <= kLongWord && digits < kManyDigits) {
      words.emplace_back(word);
    }
  }
  return plain_text(join(words, " "), kMaxWords);
}

// Why a body that should be JSON of Slurm is not.
std::string body_fault(std::string_view body) {
  const auto text = trim(body);
  if (text.empty()) {
    return "the answer is empty";
  }
  if (text.starts_with('{') || text.starts_with('[')) {
    return nlohmann::json::accept(text) ? "the answer is JSON, but not Slurm's JSON of nodes"
                                        : "the answer is truncated or not valid JSON";
  }
  const auto words = page_words(body);
  return words.empty() ? "the answer is not JSON" : "the answer is not JSON: " + words;
}

struct StatusRule {
  int first;
  int last;
  SlurmFailure cause;
  std::string_view detail;
  bool with_page = true;  // what the page says stands behind it
};

constexpr std::array kStatuses = std::to_array<StatusRule>({
    {304, 304, SlurmFailure::kInvalidResponse, "an answer without a record"},
    {300, 399, SlurmFailure::kRestUnavailable, "redirected to another address"},
    {401, 401, SlurmFailure::kTokenRefused, kTokenRejected, false},
    {403, 403, SlurmFailure::kPermissionDenied, "access denied"},
    {404, 404, SlurmFailure::kRestUnavailable, "nothing is served at this address"},
    {407, 407, SlurmFailure::kRestUnavailable, "a proxy requires credentials"},
    {429, 429, SlurmFailure::kRateLimited, "slurmrestd or a proxy limits the rate of requests"},
    {511, 511, SlurmFailure::kTokenRefused, kCredential, false},
    {1, 999, SlurmFailure::kRestUnavailable, "no usable answer"},
});

}  // namespace

std::vector<SlurmError> slurm_errors(const nlohmann::json& document) {
  std::vector<SlurmError> errors;
  const auto* list = json_member(document, "errors");
  if (list == nullptr || !list->is_array()) {
    return errors;
  }
  Notes ignored;
  for (const auto& element : *list) {
    const Fields fields{element, "errors", ignored};
    SlurmError error;
    const auto* number = fields.get({"error_number", "errno"});
    if (number != nullptr && number->is_number_integer()) {
      error.number = number->get<std::int64_t>();
    }
    error.text = element.is_string() ? element.get<std::string>() : fields.text({"error"});
    error.description = fields.text({"description"});
    errors.push_back(std::move(error));
  }
  return errors;
}

QueryFailure classify_errors(const std::vector<SlurmError>& errors) {
  for (const auto& error : errors) {
    if (auto known = classify_error(error)) {
      return *std::move(known);
    }
  }
  const auto& error = errors.front();
  const auto text =
      error.number == 0 && !error.description.empty() ? error.description : own_words(error);
  return {
      SlurmFailure::kInvalidResponse,
      plain_text(error.number ? fmt::format("slurmrestd returned error {}: {}", *error.number, text)
                              : fmt::format("slurmrestd returned an error: {}", text),
                 kMaxErrorText)};
}

QueryFailure classify_body(int status, std::string_view body) {
  const bool success = status >= 200 && status <= 299;
  if (status == 0 || success) {
    return {SlurmFailure::kInvalidResponse, body_fault(body)};
  }
  const auto* rule = std::find_if(kStatuses.begin(), kStatuses.end() - 1, [&](const auto& row) {
    return status >= row.first && status <= row.last;
  });
  if (!rule->with_page) {
    return {rule->cause, std::string{rule->detail}};
  }
  if (status == 404 && body.find("requested URL") != std::string_view::npos) {
    return {rule->cause, "slurmrestd does not serve this API version (HTTP 404)"};
  }
  const auto words = page_words(body);
  return {rule->cause,
          fmt::format("{} (HTTP {}{}{})", rule->detail, status, words.empty() ? "" : ": ", words)};
}

}  // namespace slurmlet::slurm

#pragma once

// Result<T>: a value or an Error. Errors are returned across components, never thrown, and whoever
// returns one does not log it. Member names follow std::expected (C++23) so that it can be swapped
// in later. `Status` is Result<void>.

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/clock.h"

namespace slurmlet {

// What a caller can do about an error; retry decisions are made from this alone.
enum class Code {
  kUnavailable,  // the other side cannot be reached or requests a later retry
  kTimeout,      // our own deadline passed: retry
  kNotFound,     // the object does not exist
  kConflict,     // somebody else changed it: read again
  kDenied,       // not authenticated or not authorized: a person must act
  kInvalid,      // the request or the input is wrong: retrying cannot help
  kGone,         // the resourceVersion is too old (HTTP 410): list again
  kCancelled,    // we are being stopped
  kInternal,     // anything else
};

// How far a request came that failed, for those who say what to fix.
struct RequestFailure {
  // Four ways in which the server's certificate is not believed stand apart from kTls: each has its
  // own fix.
  enum class Stage {
    kName,
    kConnection,
    kTls,
    kServerExpired,
    kServerNotYetValid,
    kServerName,
    kServerIssuer,
    kCredential,
    kAnswer
  };
  Stage stage = Stage::kAnswer;
  int http_status = 0;  // 0 = no answer
  std::string reason;   // without the request: "403 Forbidden", "connection refused"
  bool operator==(const RequestFailure&) const = default;
};

struct Error {
  Code code = Code::kInternal;
  std::string message;
  std::optional<Duration> retry_after = {};    // the pause that a server requests (Retry-After)
  std::optional<RequestFailure> request = {};  // nothing where it is not about a request
  // The same error with context in front: "renew lease: PUT …: 409 Conflict".
  Error with_prefix(const std::string& prefix) const {
    return {code, prefix + ": " + message, retry_after, request};
  }
  // No answer, or not in time: the outcome of the request is unknown.
  bool unanswered() const { return code == Code::kUnavailable || code == Code::kTimeout; }
  // What went wrong, without the request and its URL.
  const std::string& reason() const { return request ? request->reason : message; }
  bool operator==(const Error&) const = default;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : storage_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : storage_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool has_value() const { return storage_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & { return std::get<0>(storage_); }
  const T& value() const& { return std::get<0>(storage_); }
  T&& value() && { return std::get<0>(std::move(storage_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T value_or(T other) && { return has_value() ? std::move(*this).value() : std::move(other); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(storage_); }

 private:
  std::variant<T, Error> storage_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT
  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

template <typename T>
T take_value(Result<T>&& result) {
  return *std::move(result);
}
inline void take_value(Status&& /*done*/) {}

}  // namespace slurmlet

// TRY(expression): the value of a Result; where it is an Error, the function returns that. Only as
// a whole statement, or all that a variable is set to, never inside a larger expression:
//
//   const std::string text = TRY(read_file(path));
//   TRY(read_cluster(*cluster));
//
// A statement expression, which GCC and clang have in place of the operator that C++ lacks.
#define TRY(...)                                   \
  __extension__({                                  \
    auto try_result = (__VA_ARGS__);               \
    if (!try_result) {                             \
      return try_result.error();                   \
    }                                              \
    ::slurmlet::take_value(std::move(try_result)); \
  })

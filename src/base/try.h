#pragma once

// TRY(expression): the value of a Result; where it is an Error, the function returns that. Only as
// a whole statement, or all that a variable is set to, never inside a larger expression:
//
//   const std::string text = TRY(read_file(path));
//   TRY(read_cluster(*cluster));

#include <utility>

#include "base/result.h"

namespace slurmlet {

template <typename T>
T take_value(Result<T>&& result) {
  return *std::move(result);
}
inline void take_value(Status&& /*done*/) {}

}  // namespace slurmlet

// A statement expression, which GCC and clang have in place of the operator that C++ lacks.
#define TRY(...)                                   \
  __extension__({                                  \
    auto try_result = (__VA_ARGS__);               \
    if (!try_result) {                             \
      return try_result.error();                   \
    }                                              \
    ::slurmlet::take_value(std::move(try_result)); \
  })

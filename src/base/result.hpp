#pragma once
// How a function says that it failed: a value or an error, never both, never unread.
//
// Shaped like std::expected, to become an alias of it with C++23.

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/assert.hpp"

namespace shoal {

/// What kind of thing went wrong. Each has a name, an exit code of the program and a verdict on
/// whether trying again can help; see the table in result.cpp.
enum class errc : unsigned char {
  usage,                ///< a command line that cannot be understood
  config,               ///< a job file that is wrong
  data,                 ///< training data missing, short, or not what the job says
  no_memory,            ///< the model does not fit
  no_permission,        ///< a file or folder may not be read or written
  no_space,             ///< the disk is full
  io,                   ///< any other failure of a disk
  damaged,              ///< bytes that fail their check
  foreign,              ///< sound bytes that belong to another job, model or version
  port_in_use,          ///< a listening port is taken
  unreachable,          ///< nobody answers at an address
  refused,              ///< a peer answered no
  protocol,             ///< a peer sent what our protocol forbids
  timeout,              ///< a deadline passed
  halted,               ///< the view ended; not a failure of anyone
  too_few_nodes,        ///< fewer nodes than the model needs
  no_progress,          ///< the same step failed again and again
  not_finite,           ///< a loss or gradient is NaN or infinite
  checkpoint_unusable,  ///< no checkpoint can be loaded
  interrupted,          ///< the user or the cloud asked us to go
  internal,             ///< a bug of ours
};

/// "no_space", and so on.
std::string_view to_string(errc code);
/// Whether the same call may succeed later without anyone changing anything.
bool retryable(errc code);
/// What the program exits with when this ends it; documented in the README.
int exit_code(errc code);

/// An error: its kind, and a sentence that says what, where, and what to do.
struct error {
  errc code = errc::internal;
  std::string text;
};

/// The same error with "`where`: " put before its text.
error in(std::string_view where, error e);

/// A `T`, or the reason why there is none.
template <class T>
class [[nodiscard]] result {
public:
  using value_type = T;

  result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
  result(shoal::error e) : content_(std::in_place_index<1>, std::move(e)) {}
  result(errc code, std::string text)
    : content_(std::in_place_index<1>, shoal::error{code, std::move(text)}) {}

  bool has_value() const { return content_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return SHOAL_ASSERT(has_value()), std::get<0>(content_); }
  const T& value() const& { return SHOAL_ASSERT(has_value()), std::get<0>(content_); }
  T&& value() && { return SHOAL_ASSERT(has_value()), std::get<0>(std::move(content_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const shoal::error& error() const& { return SHOAL_ASSERT(!has_value()), std::get<1>(content_); }
  shoal::error&& error() && { return SHOAL_ASSERT(!has_value()), std::get<1>(std::move(content_)); }

private:
  std::variant<T, shoal::error> content_;
};

/// Done, or the reason why not.
template <>
class [[nodiscard]] result<void> {
public:
  using value_type = void;

  result() = default;
  result(shoal::error e) : error_(std::move(e)), failed_(true) {}
  result(errc code, std::string text) : error_{code, std::move(text)}, failed_(true) {}

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  const shoal::error& error() const& { return SHOAL_ASSERT(failed_), error_; }
  shoal::error&& error() && { return SHOAL_ASSERT(failed_), std::move(error_); }

private:
  shoal::error error_;
  bool failed_ = false;
};

}  // namespace shoal

#define SHOAL_CONCAT_(a, b) a##b
#define SHOAL_CONCAT(a, b) SHOAL_CONCAT_(a, b)

/// TRY(auto x, f()); gives the value of f() to x, or returns its error from this function.
#define TRY(declaration, expression)                                                         \
  auto SHOAL_CONCAT(try_, __LINE__) = (expression);                                          \
  if (!SHOAL_CONCAT(try_, __LINE__)) return std::move(SHOAL_CONCAT(try_, __LINE__)).error(); \
  declaration = *std::move(SHOAL_CONCAT(try_, __LINE__))

/// TRY_VOID(f()); returns the error of f() from this function, if there is one.
#define TRY_VOID(expression)                                             \
  do {                                                                   \
    if (auto try_ = (expression); !try_) return std::move(try_).error(); \
  } while (false)

#pragma once
// The kinds of keys that a job file has. A key is a row of the table in keys.cpp: from it come
// parsing, ranges, messages, the canonical text and --print-config, so that they cannot disagree.

#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "app/config/value.hpp"
#include "base/result.hpp"
#include "core/job.hpp"

namespace shoal::app {

using core::job_options;
using std::chrono::nanoseconds;

/// Whether a key decides the bits of the trained weights.
enum class role : std::uint8_t { bits, other };

/// One key. `set` answers with `errc::config` and a text that starts with "expected".
struct key {
  std::string_view name;  ///< "training.steps"
  role kind = role::other;
  std::string_view help;
  bool is_text = false;  ///< takes a bare word from a command line as it is
  std::function<result<void>(job_options&, const value&)> set;
  std::function<std::string(const job_options&)> get;  ///< the value in TOML
};

/// "expected WHAT, got VALUE".
error mismatch(const std::string& expected, const value& got);

/// Integers of [low, high], whatever unsigned type the field has.
result<std::uint64_t> read_integer(const value& what, std::uint64_t low, std::uint64_t high);
/// Numbers of [low, high]; integers are accepted. `below`: high itself is not allowed.
result<double> read_number(const value& what, double low, double high, bool below);
/// One of `words`.
result<std::size_t> read_choice(const value& what, const std::vector<std::string_view>& words);
/// 0 for false, 1 for true, 2 and up for one of `words`; true and false also in quotes, as a
/// command line may give them.
result<std::size_t> read_boolean_or(const value& what, const std::vector<std::string_view>& words);
result<std::string> read_text(const value& what);
result<nanoseconds> read_duration(const value& what, nanoseconds low, nanoseconds high);
result<byte_count> read_bytes(const value& what);
result<byte_rate> read_rate(const value& what);

/// In TOML, exact: reading it back gives the same value.
std::string toml_of(nanoseconds duration);
std::string toml_of(byte_count bytes);
std::string toml_of(byte_rate rate);

// `field` below is a generic lambda that returns a reference to the key's field in the job.

template <class Field>
key integer(std::string_view name, role kind, std::uint64_t low, std::uint64_t high, Field field,
            std::string_view help) {
  return {name,
          kind,
          help,
          false,
          [=](job_options& job, const value& what) -> result<void> {
            TRY(auto number, read_integer(what, low, high));
            using type = std::remove_reference_t<decltype(field(job))>;
            SHOAL_ASSERT(high <= std::numeric_limits<type>::max());
            field(job) = static_cast<type>(number);
            return {};
          },
          [=](const job_options& job) { return std::to_string(field(job)); }};
}

template <class Field>
key number(std::string_view name, role kind, double low, double high, Field field,
           std::string_view help, bool below = false) {
  return {name,
          kind,
          help,
          false,
          [=](job_options& job, const value& what) -> result<void> {
            TRY(field(job), read_number(what, low, high, below));
            return {};
          },
          [=](const job_options& job) { return text_of_double(field(job)); }};
}

template <class Field>
key text(std::string_view name, role kind, Field field, std::string_view help) {
  return {name,
          kind,
          help,
          true,
          [=](job_options& job, const value& what) -> result<void> {
            TRY(field(job), read_text(what));
            return {};
          },
          [=](const job_options& job) { return quoted(field(job)); }};
}

/// A string, or an enum whose values count from zero, out of `words`.
template <class Field>
key choice(std::string_view name, role kind, std::vector<std::string_view> words, Field field,
           std::string_view help) {
  return {name,
          kind,
          help,
          true,
          [=](job_options& job, const value& what) -> result<void> {
            TRY(auto index, read_choice(what, words));
            using type = std::remove_reference_t<decltype(field(job))>;
            if constexpr (std::is_enum_v<type>)
              field(job) = static_cast<type>(index);
            else
              field(job) = words[index];
            return {};
          },
          [=](const job_options& job) {
            using type = std::remove_cvref_t<decltype(field(job))>;
            if constexpr (std::is_enum_v<type>)
              return quoted(std::string(words[static_cast<std::size_t>(field(job))]));
            else
              return quoted(field(job));
          }};
}

template <class Field>
key boolean(std::string_view name, role kind, Field field, std::string_view help) {
  return {name,
          kind,
          help,
          false,
          [=](job_options& job, const value& what) -> result<void> {
            auto* found = std::get_if<bool>(&what);
            if (found == nullptr) return mismatch("true or false", what);
            field(job) = *found;
            return {};
          },
          [=](const job_options& job) { return std::string(field(job) ? "true" : "false"); }};
}

/// True, false or one of `words`: an enum whose values are false, true, then the words.
template <class Field>
key boolean_or(std::string_view name, role kind, std::vector<std::string_view> words, Field field,
               std::string_view help) {
  return {name,
          kind,
          help,
          true,
          [=](job_options& job, const value& what) -> result<void> {
            using type = std::remove_reference_t<decltype(field(job))>;
            TRY(auto index, read_boolean_or(what, words));
            field(job) = static_cast<type>(index);
            return {};
          },
          [=](const job_options& job) {
            auto index = static_cast<std::size_t>(field(job));
            if (index < 2) return std::string(index == 1 ? "true" : "false");
            return quoted(std::string(words[index - 2]));
          }};
}

template <class Field>
key duration(std::string_view name, nanoseconds low, nanoseconds high, Field field,
             std::string_view help) {
  return {name,
          role::other,
          help,
          true,
          [=](job_options& job, const value& what) -> result<void> {
            TRY(field(job), read_duration(what, low, high));
            return {};
          },
          [=](const job_options& job) { return toml_of(field(job)); }};
}

template <class Field>
key bytes(std::string_view name, Field field, std::string_view help) {
  return {name,
          role::other,
          help,
          true,
          [=](job_options& job, const value& what) -> result<void> {
            TRY(field(job), read_bytes(what));
            return {};
          },
          [=](const job_options& job) { return toml_of(field(job)); }};
}

template <class Field>
key rate(std::string_view name, Field field, std::string_view help) {
  return {name,
          role::other,
          help,
          true,
          [=](job_options& job, const value& what) -> result<void> {
            TRY(field(job), read_rate(what));
            return {};
          },
          [=](const job_options& job) { return toml_of(field(job)); }};
}

}  // namespace shoal::app

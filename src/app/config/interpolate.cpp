#include "app/config/interpolate.hpp"

#include <cstdlib>

namespace shoal::app {

environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* found = std::getenv(name.c_str());
    if (found == nullptr) return std::nullopt;
    return std::string(found);
  };
}

result<std::string> interpolate(const std::string& text, const environment& variables) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 3, "$${") == 0) {
      out += "${";
      i += 3;
    } else if (text.compare(i, 2, "${") == 0) {
      auto close = text.find('}', i);
      if (close == std::string::npos)
        return {errc::config,
                "\"${\" without \"}\" in " + text + "; write \"$${\" for the letters"};
      auto name = text.substr(i + 2, close - i - 2);
      auto found = variables(name);
      if (!found || found->empty())
        return {errc::config, "the environment variable '" + name + "' is " +
                                (found ? "empty" : "not set") +
                                "; set it, or write the value here"};
      out += *found;
      i = close + 1;
    } else {
      out += text[i++];
    }
  }
  return out;
}

}  // namespace shoal::app

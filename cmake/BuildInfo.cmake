# Fills in cmake/build_info.cpp.in, at configure time, and adds the result to a target.

# The first line of `file` that matches `pattern`, replaced by its first group; "none" without a file.
function(shoal_header_version out file pattern)
  set(${out} "none" PARENT_SCOPE)
  if(EXISTS "${file}")
    file(STRINGS "${file}" line REGEX "${pattern}" LIMIT_COUNT 1)
    string(REGEX REPLACE "${pattern}" "\\1" version "${line}")
    set(${out} "${version}" PARENT_SCOPE)
  endif()
endfunction()

function(shoal_build_info target)
  execute_process(
    COMMAND git describe --always --dirty --match "v*"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    OUTPUT_VARIABLE SHOAL_COMMIT
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT SHOAL_COMMIT)
    set(SHOAL_COMMIT "unknown")
  endif()
  shoal_header_version(SHOAL_TORCH_VERSION "${TorchCpu_INCLUDE_DIR}/torch/headeronly/version.h"
                       "^ *\"([0-9.]+)\"$")
  shoal_header_version(SHOAL_CAF_VERSION "${CAF_INCLUDE_DIR}/caf/config.hpp" "^#define CAF_VERSION ([0-9]+).*")
  if(SHOAL_CAF_VERSION MATCHES "^[0-9]+$")  # 1706 is 0.17.6
    math(EXPR major "${SHOAL_CAF_VERSION} / 10000")
    math(EXPR minor "${SHOAL_CAF_VERSION} / 100 % 100")
    math(EXPR patch "${SHOAL_CAF_VERSION} % 100")
    set(SHOAL_CAF_VERSION "${major}.${minor}.${patch}")
  endif()
  set(SHOAL_ROCKSDB_VERSION "${RocksDB_VERSION}")
  set(SHOAL_BUILD_KIND "${CMAKE_BUILD_TYPE}")
  if(SHOAL_SANITIZE)
    string(APPEND SHOAL_BUILD_KIND ", -fsanitize=${SHOAL_SANITIZE}")
  endif()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/build_info.cpp.in" "${PROJECT_BINARY_DIR}/build_info.cpp" @ONLY)
  target_sources(${target} PRIVATE "${PROJECT_BINARY_DIR}/build_info.cpp")
endfunction()

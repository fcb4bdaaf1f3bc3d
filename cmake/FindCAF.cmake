# Debian's libcaf-dev has no CMake package: the imported targets CAF::core and CAF::io.

find_path(CAF_INCLUDE_DIR caf/all.hpp)
find_library(CAF_CORE_LIBRARY caf_core)
find_library(CAF_IO_LIBRARY caf_io)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  CAF
  REQUIRED_VARS CAF_CORE_LIBRARY CAF_IO_LIBRARY CAF_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "apt-get install libcaf-dev")

if(CAF_FOUND AND NOT TARGET CAF::core)
  find_package(Threads REQUIRED)
  add_library(CAF::core UNKNOWN IMPORTED)
  set_target_properties(
    CAF::core
    PROPERTIES IMPORTED_LOCATION "${CAF_CORE_LIBRARY}"
               INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
               INTERFACE_LINK_LIBRARIES Threads::Threads
               # An unregistered message type becomes a compile error, not an empty message.
               INTERFACE_COMPILE_DEFINITIONS CAF_ENABLE_TYPE_ID_CHECKS)
  add_library(CAF::io UNKNOWN IMPORTED)
  set_target_properties(CAF::io PROPERTIES IMPORTED_LOCATION "${CAF_IO_LIBRARY}"
                                           INTERFACE_LINK_LIBRARIES CAF::core)
endif()

# `cmake --install`, and what find_package(shoal) finds then: the targets shoal::core, shoal::app, ...
#
#   PREFIX/bin/shoal
#   PREFIX/include/shoal/*.hpp                  what the author of a trainer includes
#   PREFIX/include/shoal/detail/{base,core}/    what those include in turn
#   PREFIX/lib/libshoal_*.a
#   PREFIX/lib/cmake/shoal/

include(CMakePackageConfigHelpers)

set(shoal_targets)
foreach(name base core sim transport storage config telemetry actors torch app)
  if(TARGET shoal_${name})
    list(APPEND shoal_targets shoal_${name})
  endif()
endforeach()
if(TARGET shoal)
  install(TARGETS shoal RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(TARGETS ${shoal_targets} EXPORT shoalTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")

install(DIRECTORY include/shoal/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/shoal" FILES_MATCHING PATTERN "*.hpp")
foreach(folder base core)
  install(DIRECTORY src/${folder} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/shoal/detail"
          FILES_MATCHING PATTERN "*.hpp")
endforeach()

set(shoal_package "${CMAKE_INSTALL_LIBDIR}/cmake/shoal")
install(EXPORT shoalTargets NAMESPACE shoal:: DESTINATION "${shoal_package}")
configure_package_config_file(cmake/shoalConfig.cmake.in "${PROJECT_BINARY_DIR}/shoalConfig.cmake"
                              INSTALL_DESTINATION "${shoal_package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/shoalConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(
  FILES "${PROJECT_BINARY_DIR}/shoalConfig.cmake" "${PROJECT_BINARY_DIR}/shoalConfigVersion.cmake"
        cmake/FindCAF.cmake cmake/FindTorchCpu.cmake
  DESTINATION "${shoal_package}")

# Installs the build in BUILD into a folder of its own, builds the projects that use the package
# against it, and runs them: cmake -D BUILD=... -D SOURCE=... [-D TRAINER=ON] -P run.cmake

set(work "${BUILD}/consumer")
set(prefix "${work}/prefix")
file(REMOVE_RECURSE "${work}")

function(must)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(failed)
    message(FATAL_ERROR "${ARGN}\nended with ${failed}:\n${out}")
  endif()
  string(STRIP "${out}" out)
  message("${out}")
endfunction()

function(build_against_package name source)
  must("${CMAKE_COMMAND}" -S "${source}" -B "${work}/${name}" -G Ninja
       "-DCMAKE_PREFIX_PATH=${prefix}" -DCMAKE_BUILD_TYPE=Debug)
  must("${CMAKE_COMMAND}" --build "${work}/${name}")
endfunction()

must("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
build_against_package(consumer "${SOURCE}/tests/consumer")
must("${work}/consumer/consumer")

if(TRAINER)
  must("${prefix}/bin/shoal" --version)
  build_against_package(custom_trainer "${SOURCE}/examples/custom_trainer")
  set(job "${SOURCE}/examples/custom_trainer/job.toml")
  foreach(command run reference)
    must("${work}/custom_trainer/custom_trainer" ${command} "${job}" --set "job.folder=${work}/${command}")
  endforeach()
  # The last line of both files of metrics is that of the last step; its digest must be the same.
  foreach(command run reference)
    file(STRINGS "${work}/${command}/metrics.jsonl" lines REGEX "^{\"step\":40,")
    string(REGEX MATCH "\"digest\":\"[0-9a-f]+\"" ${command} "${lines}")
  endforeach()
  if(NOT run OR NOT run STREQUAL reference)
    message(FATAL_ERROR "not the same bits: run '${run}', reference '${reference}'")
  endif()
endif()
file(REMOVE_RECURSE "${work}")

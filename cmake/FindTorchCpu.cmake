# LibTorch from PyPI's wheel, its CPU part alone: the imported target Torch::cpu.
#
# Torch's own CMake package asks for the whole CUDA toolkit as soon as the wheel was built with it.
# We link libtorch_cpu and libc10; the CUDA parts are loaded at run time, when there is a GPU.
# SHOAL_TORCH_ROOT is the folder that holds `torch/` (and `nvidia/`, where libtorch_cpu looks for
# the CUDA runtime that it was linked with); `./dev` fills it.

find_path(TorchCpu_INCLUDE_DIR ATen/ATen.h PATHS "${SHOAL_TORCH_ROOT}/torch/include" NO_DEFAULT_PATH)
find_library(TorchCpu_LIBRARY torch_cpu PATHS "${SHOAL_TORCH_ROOT}/torch/lib" NO_DEFAULT_PATH)
find_library(TorchCpu_C10_LIBRARY c10 PATHS "${SHOAL_TORCH_ROOT}/torch/lib" NO_DEFAULT_PATH)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  TorchCpu
  REQUIRED_VARS TorchCpu_LIBRARY TorchCpu_C10_LIBRARY TorchCpu_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "SHOAL_TORCH_ROOT is '${SHOAL_TORCH_ROOT}': ./dev build fetches the wheel")

if(TorchCpu_FOUND AND NOT TARGET Torch::cpu)
  add_library(Torch::c10 UNKNOWN IMPORTED)
  set_target_properties(Torch::c10 PROPERTIES IMPORTED_LOCATION "${TorchCpu_C10_LIBRARY}")
  add_library(Torch::cpu UNKNOWN IMPORTED)
  set_target_properties(
    Torch::cpu
    PROPERTIES IMPORTED_LOCATION "${TorchCpu_LIBRARY}"
               INTERFACE_INCLUDE_DIRECTORIES
               "${TorchCpu_INCLUDE_DIR};${TorchCpu_INCLUDE_DIR}/torch/csrc/api/include"
               INTERFACE_LINK_LIBRARIES Torch::c10
               # The CUDA runtime behind libtorch_cpu is found by its own RPATH or by the loader.
               INTERFACE_LINK_OPTIONS "-Wl,--allow-shlib-undefined")
endif()

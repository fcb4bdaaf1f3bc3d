#pragma once
// Torch before Catch2: both define CHECK, and tests mean Catch2's. Precompiled for this folder.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#undef CHECK
#include <catch2/catch.hpp>

// The program `shoal`: the models and data that are built in, and nothing else.
#include "shoal/trainer.hpp"

int main(int argc, char** argv) { return shoal::main(argc, argv, {}); }

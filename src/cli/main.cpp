#include "cli/commands.h"

int main(int argc, char** argv) { return slurmlet::cli::run({argv, argv + argc}); }

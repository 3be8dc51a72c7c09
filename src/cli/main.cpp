#include "cli/commands.h"

int main(int argc, char** argv) { return slurmlet::app::run({argv, argv + argc}); }

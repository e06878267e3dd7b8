#include "cli/command.h"

int main(int argc, char** argv) {
  return urnic::cli::run_cli(argc, argv);
}

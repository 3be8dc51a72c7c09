set(COMPONENT_TESTS
  check_finding_test.cpp
  check_rules_test.cpp
  command_line_test.cpp
  help_test.cpp
  manual_test.cpp)

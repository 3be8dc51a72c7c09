set(COMPONENT_TESTS
  check_rules_test.cpp
  command_line_test.cpp
  example_config_test.cpp
  help_test.cpp
  join_command_test.cpp
  leave_command_test.cpp
  manual_test.cpp)

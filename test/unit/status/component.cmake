set(COMPONENT_TESTS
  daemon_status_test.cpp
  manager_environment_test.cpp
  metrics_test.cpp
  notifier_test.cpp
  service_report_test.cpp
  state_line_test.cpp
  watchdog_test.cpp)

set(COMPONENT_SOURCES
  daemon_client.cpp
  daemon_status.cpp
  manager_environment.cpp
  metrics.cpp
  notifier.cpp
  service_report.cpp
  state_line.cpp)

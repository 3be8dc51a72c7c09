set(COMPONENT_SOURCES
  daemon_client.cpp
  daemon_status.cpp
  metrics.cpp
  service_manager.cpp
  service_report.cpp
  state_line.cpp)

set(COMPONENT_SOURCES
  api_server.cpp
  finding.cpp
  service_unit.cpp)

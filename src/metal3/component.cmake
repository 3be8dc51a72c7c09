set(COMPONENT_SOURCES
  config_drive.cpp
  identity.cpp
  metadata.cpp
  saved_state.cpp)

set(COMPONENT_SOURCES
  config_drive.cpp
  identity.cpp
  instance_data.cpp
  metadata.cpp
  metadata_json.cpp
  saved_state.cpp)

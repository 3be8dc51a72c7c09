set(COMPONENT_SOURCES
  event_sink.cpp
  facts_sync.cpp
  lease_sync.cpp
  node_registration.cpp
  node_sync.cpp
  pod_sync.cpp)

set(COMPONENT_SOURCES
  document.cpp
  emit.cpp
  scalar.cpp
  tree_builder.cpp)

set(COMPONENT_SOURCES
  document.cpp
  scalar.cpp
  tree_builder.cpp)

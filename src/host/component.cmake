set(COMPONENT_SOURCES
  addresses.cpp
  gpus.cpp
  listening.cpp
  machine.cpp
  pressure.cpp
  shutdown.cpp
  usage.cpp)

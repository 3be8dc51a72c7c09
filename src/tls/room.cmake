set(ROOM_SOURCES
  base64.cpp
  certificate_summary.cpp
  client_identity.cpp
  pem.cpp)

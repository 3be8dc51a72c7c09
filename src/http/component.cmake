set(COMPONENT_SOURCES
  curl_client.cpp
  proxy_choice.cpp
  response_head.cpp
  target.cpp
  transfer.cpp
  transfer_loop.cpp
  transport_error.cpp)

set(ROOM_SOURCES connection.cpp health_server.cpp http_answerer.cpp metrics_text.cpp routes.cpp)

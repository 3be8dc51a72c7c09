set(ROOM_TESTS health_server_test.cpp http_answerer_test.cpp metrics_text_test.cpp routes_test.cpp)

set(ROOM_SOURCES
  command_line.cpp config_file.cpp credentials.cpp draft.cpp duration.cpp effective.cpp environment.cpp finalize.cpp
  help.cpp load.cpp manual.cpp provider_config.cpp rules.cpp settings_table.cpp settings_text.cpp virtual_kubelet.cpp)

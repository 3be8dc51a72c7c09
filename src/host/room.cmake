set(ROOM_SOURCES addresses.cpp cpu_affinity.cpp file_system.cpp gpus.cpp machine.cpp pci.cpp
                 pressure.cpp shutdown.cpp source_address.cpp system_uuid.cpp usage.cpp)

sinfo -h -a -N -n n1 -O 'NodeList:|,Partition:|,StateComplete:|,CPUsState:|,Memory:|,AllocMem:|,FreeMem:|,CPUsLoad:|,Gres:|,GresUsed:|,Version:|,Features:|,Cluster:|,Timestamp:|,User:|,Reason:|'
# exit=1 wall_ms=2022

setpriv --reuid=65534 --regid=65534 --clear-groups sinfo -h -a -N -n n1 -O 'NodeList:|,Partition:|,StateComplete:|,CPUsState:|,Memory:|,AllocMem:|,FreeMem:|,CPUsLoad:|,Gres:|,GresUsed:|,Version:|,Features:|,Cluster:|,Timestamp:|,User:|,Reason:|'
# exit=0 wall_ms=20

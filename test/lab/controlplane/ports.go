package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"

	"slurmlet.io/test/lab/controlplane/internal/cluster"
	"slurmlet.io/test/lab/controlplane/internal/pki"
)

// ensurePorts loads the ports of the cluster and fills in those it lacks. A
// port that something else took meanwhile is replaced, except that of the API
// server, which is written into kubeconfig files.
func ensurePorts(l cluster.Dir) (cluster.Ports, error) {
	p, err := cluster.LoadPorts(l)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return p, err
	}
	if p.APIServer != 0 && !isFree(p.APIServer) {
		return p, fmt.Errorf("port %d, which this cluster's API server had, is in use", p.APIServer)
	}
	for _, port := range []*int{&p.APIServer, &p.Etcd, &p.EtcdPeer, &p.ControllerManager, &p.Scheduler} {
		if *port == 0 || !isFree(*port) {
			if *port, err = freePort(); err != nil {
				return p, err
			}
		} else if !claim(*port) {
			return p, fmt.Errorf("port %d of this cluster is claimed by another one that starts", *port)
		}
	}
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return p, err
	}
	return p, pki.WriteFile(l.Ports(), append(data, '\n'), 0o644)
}

// claims are held until this process ends.
var claims []net.Listener

// claim reports whether the port is this process's from now on. Between the
// choice of a port and its component's bind() lie seconds, in which clusters
// that start beside this one choose too (as test/lab/slurmcluster/config.py
// does, which claims in the same way). An abstract socket belongs to the
// network namespace, as ports do, and ends with its process.
func claim(port int) bool {
	held, err := net.Listen("unix", "@slurmlet-lab-port-"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	claims = append(claims, held)
	return true
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", cluster.HostPort(port))
	if err != nil {
		return false
	}
	listener.Close()
	return true
}

// freePort claims a port nobody listens on, below the range from which Linux
// gives ports to outgoing connections and to listeners on port 0: from that
// range another program may get it while a component is stopped.
func freePort() (int, error) {
	const lowest, highest = 20000, 32000
	for range 200 {
		port := lowest + rand.IntN(highest-lowest)
		if isFree(port) && claim(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port from %d to %d", lowest, highest)
}

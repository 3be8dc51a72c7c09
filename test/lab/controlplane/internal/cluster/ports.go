package cluster

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
)

const Loopback = "127.0.0.1"

// Ports are the listening ports of a cluster, all on loopback. They are kept
// in its folder so that restarts, and later runs, use the same ones.
type Ports struct {
	APIServer         int `json:"kube-apiserver"`
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcd-peer"`
	ControllerManager int `json:"kube-controller-manager"`
	Scheduler         int `json:"kube-scheduler"`
}

func (p Ports) Server() string { return "https://" + HostPort(p.APIServer) }

func HostPort(port int) string { return net.JoinHostPort(Loopback, strconv.Itoa(port)) }

func LoadPorts(d Dir) (Ports, error) {
	var p Ports
	data, err := os.ReadFile(d.Ports())
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("%s: %w", d.Ports(), err)
	}
	return p, nil
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"slurmlet.io/test/lab/controlplane/internal/cluster"
)

const socketName = "control.sock"

// order is what "ctl" asks the supervisor to do, one line of JSON.
type order struct {
	Action    string        `json:"action"`
	Component string        `json:"component,omitempty"`
	Grace     time.Duration `json:"grace"`
}

// outcome is the supervisor's answer, one line of JSON.
type outcome struct {
	Error string   `json:"error,omitempty"`
	Lines []string `json:"lines,omitempty"`
}

func ctlCommand() *cobra.Command {
	var dir string
	var grace time.Duration
	c := &cobra.Command{
		Use:   "ctl --dir DIR stop|start|restart|pause|resume COMPONENT | status",
		Short: "Stop, start, restart, pause or resume one component of a running cluster",
		Long: `Asks the "up" that runs in DIR to act on one component: etcd, kube-apiserver,
kube-controller-manager or kube-scheduler.

  stop      ends it; returns when its process is gone
  start     starts it; returns when it is healthy
  restart   both
  pause     stops its process with SIGSTOP: connections stay, nothing answers
  resume    continues it
  status    prints name, process id and state of each component`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := cluster.NewDir(dir)
			if err != nil {
				return err
			}
			o := order{Action: args[0], Grace: grace}
			if len(args) > 1 {
				o.Component = args[1]
			}
			return send(l, o)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "folder of the cluster (required)")
	c.Flags().DurationVar(&grace, "grace", 3*time.Second, "how long a component may take to end before it is killed; 0 kills at once")
	_ = c.MarkFlagRequired("dir")
	return c
}

// socketPath gives a short path for the control socket, whose length is
// limited, and a file to be kept open while it is used.
func socketPath(l cluster.Dir) (string, *os.File, error) {
	f, err := os.Open(l.Root)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), socketName), f, nil
}

func send(l cluster.Dir, o order) error {
	path, folder, err := socketPath(l)
	if err != nil {
		return err
	}
	defer folder.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		return fmt.Errorf("no control plane runs in %s: %w", l.Root, err)
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(o); err != nil {
		return err
	}
	var answer outcome
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	for _, line := range answer.Lines {
		fmt.Println(line)
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

// listen makes the control socket and serves it in the background.
func (s *supervisor) listen() error {
	// The lock is held, so a socket that is there is a leftover.
	if err := os.Remove(s.layout.Path(socketName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	path, folder, err := socketPath(s.layout)
	if err != nil {
		return err
	}
	defer folder.Close()
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	// The path is gone with the folder's descriptor; shutdown removes the file.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(s.layout.Path(socketName), 0o600); err != nil {
		listener.Close()
		return err
	}
	s.control = listener
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return nil
}

func (s *supervisor) serve(conn net.Conn) {
	defer conn.Close()
	var o order
	if err := json.NewDecoder(bufio.NewReader(conn)).Decode(&o); err != nil {
		return
	}
	var answer outcome
	if err := s.obey(o, &answer); err != nil {
		answer.Error = err.Error()
	}
	_ = json.NewEncoder(conn).Encode(answer)
}

func (s *supervisor) obey(o order, answer *outcome) error {
	if o.Action == "status" {
		for _, p := range s.processes {
			pid, state := p.state()
			answer.Lines = append(answer.Lines, fmt.Sprintf("%s %d %s", p.name, pid, state))
		}
		return nil
	}
	p := s.find(o.Component)
	if p == nil {
		return fmt.Errorf("this cluster runs no %q", o.Component)
	}
	switch o.Action {
	case "stop":
		p.stop(o.Grace)
		return nil
	case "start":
		return p.startHealthy()
	case "restart":
		p.stop(o.Grace)
		return p.startHealthy()
	case "pause":
		return p.setPaused(true)
	case "resume":
		return p.setPaused(false)
	}
	return fmt.Errorf("%q is not stop, start, restart, pause, resume or status", o.Action)
}

// startHealthy starts the component and waits until it works.
func (p *process) startHealthy() error {
	ctx, cancel := context.WithTimeout(context.Background(), startupTimeout)
	defer cancel()
	p.forgiveDeaths()
	if err := p.start(); err != nil {
		return err
	}
	return p.waitHealthy(ctx)
}

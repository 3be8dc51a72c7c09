package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"slurmlet.io/test/lab/controlplane/internal/cluster"
	"slurmlet.io/test/lab/controlplane/internal/pki"
)

const (
	restartDelay   = time.Second
	probeInterval  = 100 * time.Millisecond
	probeTimeout   = 2 * time.Second
	startupTimeout = 2 * time.Minute
	// deathsAllowed is how often a component may end by itself during startup.
	deathsAllowed = 3
)

// process is one component: the program it runs, and whether it should run.
type process struct {
	name    string
	command []string
	logFile string
	health  string // URL that answers 200 when the component works
	client  *http.Client

	mu      sync.Mutex
	wanted  bool
	paused  bool
	running *exec.Cmd     // nil when there is no process
	gone    chan struct{} // closed when the running process has ended
	deaths  int
}

// starts carries out process starts on one thread that lives as long as the
// supervisor: the kernel sends the parent death signal when the thread that
// started the child ends, not the process.
var starts = make(chan func())

func init() {
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
}

func startOnThread(cmd *exec.Cmd) error {
	result := make(chan error)
	starts <- func() { result <- cmd.Start() }
	return <-result
}

// launch starts the component's process. The caller holds the lock.
func (p *process) launch() error {
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = componentEnvironment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := startOnThread(cmd); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	gone := make(chan struct{})
	p.running, p.gone, p.paused = cmd, gone, false
	go p.watch(cmd, gone)
	return nil
}

// watch waits for the end of a process, and starts the component again when
// nobody had asked for it to end.
func (p *process) watch(cmd *exec.Cmd, gone chan struct{}) {
	err := cmd.Wait()
	p.mu.Lock()
	p.running, p.paused = nil, false
	unexpected := p.wanted
	if unexpected {
		p.deaths++
	}
	close(gone)
	p.mu.Unlock()
	if !unexpected {
		return
	}
	if err == nil {
		err = errors.New("exit status 0")
	}
	say("%s (pid %d) ended by itself: %v; starting it again in %v", p.name, cmd.Process.Pid, err, restartDelay)
	time.Sleep(restartDelay)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.wanted || p.running != nil {
		return
	}
	if err := p.launch(); err != nil {
		say("%v", err)
	}
}

// start starts the component unless it runs.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = true
	if p.running != nil {
		return nil
	}
	return p.launch()
}

// stop ends the component and returns when its process is gone. It is killed
// when it does not end within grace.
func (p *process) stop(grace time.Duration) {
	p.mu.Lock()
	p.wanted = false
	cmd, gone := p.running, p.gone
	if cmd == nil {
		p.mu.Unlock()
		return
	}
	if grace > 0 {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Process.Signal(syscall.SIGCONT)
	}
	p.paused = false
	p.mu.Unlock()
	if grace > 0 {
		select {
		case <-gone:
			return
		case <-time.After(grace):
		}
	}
	_ = cmd.Process.Kill()
	<-gone
}

// pause and resume stop and continue the component's process.
func (p *process) setPaused(paused bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		return fmt.Errorf("%s does not run", p.name)
	}
	signal := syscall.SIGCONT
	if paused {
		signal = syscall.SIGSTOP
	}
	if err := p.running.Process.Signal(signal); err != nil {
		return err
	}
	p.paused = paused
	return nil
}

// state gives the component's process id (0 for none) and a word for its state.
func (p *process) state() (int, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.running == nil && p.wanted:
		return 0, "restarting"
	case p.running == nil:
		return 0, "stopped"
	case p.paused:
		return p.running.Process.Pid, "paused"
	}
	return p.running.Process.Pid, "running"
}

// waitHealthy returns when the component answers its health check.
func (p *process) waitHealthy(ctx context.Context) error {
	var last error
	for {
		if last = p.probe(ctx); last == nil {
			return nil
		}
		p.mu.Lock()
		deaths, wanted := p.deaths, p.wanted
		p.mu.Unlock()
		if !wanted {
			return fmt.Errorf("%s was stopped", p.name)
		}
		if deaths >= deathsAllowed {
			return fmt.Errorf("%s ended %d times; the end of %s:\n%s", p.name, deaths, p.logFile, tail(p.logFile))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not become healthy: %w", p.name, last)
		case <-time.After(probeInterval):
		}
	}
}

func (p *process) probe(ctx context.Context) error {
	p.mu.Lock()
	running := p.running != nil
	p.mu.Unlock()
	if !running {
		return errors.New("no process")
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.health, nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// forgiveDeaths begins a new count of unexpected ends.
func (p *process) forgiveDeaths() {
	p.mu.Lock()
	p.deaths = 0
	p.mu.Unlock()
}

// probeClient makes a client for health checks that shows the certificate
// NAME and trusts the given authority. It keeps no connection, so that it
// notices a restart.
func probeClient(l cluster.Dir, authority, name string) (*http.Client, error) {
	ca, err := os.ReadFile(l.PKI(authority + ".crt"))
	if err != nil {
		return nil, err
	}
	pair, err := pki.LoadPair(l.PKI(), name)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}},
	}}, nil
}

// componentEnvironment is the supervisor's environment without what would
// change a component's settings.
func componentEnvironment() []string {
	var kept []string
	for _, entry := range os.Environ() {
		if strings.HasPrefix(entry, "ETCD_") || strings.HasPrefix(entry, "KUBECONFIG=") || strings.HasPrefix(entry, "KUBERNETES_") {
			continue
		}
		kept = append(kept, entry)
	}
	return kept
}

// tail gives the last lines of a file.
func tail(path string) string {
	const most = 3000
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(data) > most {
		data = data[len(data)-most:]
	}
	return string(data)
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "controlplane: "+format+"\n", args...)
}

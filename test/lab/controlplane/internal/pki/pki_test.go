package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func parse(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatal("no PEM block")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestMutualTLS(t *testing.T) {
	ca, err := NewAuthority("test-ca")
	if err != nil {
		t.Fatal(err)
	}
	server, err := ca.Issue(Request{CommonName: "server", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Issue(Request{CommonName: "system:node:n1", Organizations: []string{"system:nodes"}, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.Cert)
	serverPair, err := tls.X509KeyPair(server.Cert, server.Key)
	if err != nil {
		t.Fatal(err)
	}
	clientPair, err := tls.X509KeyPair(client.Cert, client.Key)
	if err != nil {
		t.Fatal(err)
	}

	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		w.Write([]byte(subject.CommonName + " " + strings.Join(subject.Organization, ",")))
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{serverPair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	s.StartTLS()
	defer s.Close()

	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{clientPair}}}}
	res, err := c.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body := make([]byte, 64)
	n, _ := res.Body.Read(body)
	if got, want := string(body[:n]), "system:node:n1 system:nodes"; got != want {
		t.Errorf("subject = %q, want %q", got, want)
	}
}

func TestLifetime(t *testing.T) {
	ca, err := NewAuthority("test-ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(Request{CommonName: "x", Lifetime: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	left := time.Until(parse(t, pair.Cert).NotAfter)
	if left < 5*time.Second || left > 10*time.Second {
		t.Errorf("valid for %v more, want just under 10s", left)
	}
}

func TestEnsureKeepsWhatIsValid(t *testing.T) {
	dir := t.TempDir()
	first, err := EnsureAuthority(dir, "ca", "test-ca")
	if err != nil {
		t.Fatal(err)
	}
	second, err := EnsureAuthority(dir, "ca", "test-ca")
	if err != nil {
		t.Fatal(err)
	}
	if string(first.Cert) != string(second.Cert) {
		t.Error("the authority was made again")
	}

	load := func() string {
		pair, err := LoadPair(dir, "leaf")
		if err != nil {
			t.Fatal(err)
		}
		return string(pair.Cert)
	}
	ensure := func(a *Authority, lifetime time.Duration) string {
		if err := a.EnsurePair(dir, "leaf", Request{CommonName: "leaf", Lifetime: lifetime}); err != nil {
			t.Fatal(err)
		}
		return load()
	}
	short := ensure(first, time.Hour)
	long := ensure(second, 0)
	if short == long {
		t.Error("a certificate about to expire was kept")
	}
	if ensure(first, 0) != long {
		t.Error("a valid certificate was made again")
	}
	other, err := NewAuthority("other-ca")
	if err != nil {
		t.Fatal(err)
	}
	if ensure(other, 0) == long {
		t.Error("a certificate of another authority was kept")
	}
}

func TestKubeconfigSave(t *testing.T) {
	dir := t.TempDir()
	ca, err := EnsureAuthority(dir, "ca", "test-ca")
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Issue(Request{CommonName: "u"})
	if err != nil {
		t.Fatal(err)
	}
	k := Kubeconfig{Server: "https://127.0.0.1:6443", User: "u", CA: ca.Cert, Client: client}

	path := filepath.Join(dir, "kubeconfig")
	if err := k.SaveSplit(path, filepath.Join(dir, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + ".key"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", filepath.Base(name), info.Mode())
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`server: "https://127.0.0.1:6443"`,
		`current-context: "u@kubernetes"`,
		`client-certificate: "` + path + `.crt"`,
		`certificate-authority: "` + filepath.Join(dir, "ca.crt") + `"`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s in\n%s", want, data)
		}
	}
	if strings.Contains(string(data), "-data:") {
		t.Error("a split kubeconfig has embedded data")
	}
	embedded := string(k.Encode())
	if !strings.Contains(embedded, "client-key-data: ") || strings.Contains(embedded, "client-key: ") {
		t.Error("an embedded kubeconfig refers to files")
	}
	if got := string((&Kubeconfig{Server: "s", CA: ca.Cert}).Encode()); !strings.Contains(got, "users: []") {
		t.Errorf("a kubeconfig without a user has one:\n%s", got)
	}
}

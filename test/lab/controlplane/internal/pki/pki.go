// Package pki makes the certificate authorities, certificates and kubeconfig
// files of a test control plane. It uses nothing outside the standard library.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	// DefaultLifetime is how long a certificate is valid unless told otherwise.
	DefaultLifetime = 365 * 24 * time.Hour
	// backdate keeps a certificate valid on a machine whose clock is a little behind.
	backdate = time.Minute
)

// Pair is a certificate and its private key, both PEM encoded.
type Pair struct {
	Cert []byte
	Key  []byte
}

// Authority issues certificates.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Request describes a certificate to issue. A request with hosts or addresses
// is for a server; all certificates may be used by clients.
type Request struct {
	CommonName    string
	Organizations []string
	Hosts         []string
	IPs           []net.IP
	Lifetime      time.Duration
	Age           time.Duration // since it was issued; 0: a little, for clocks that differ
}

// NewAuthority makes a self-signed certificate authority.
func NewAuthority(commonName string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              []string{commonName},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return assemble(der, key)
}

func assemble(der []byte, key *ecdsa.PrivateKey) (*Authority, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: Pair{Cert: encodeCert(der), Key: keyPEM}, cert: cert, key: key}, nil
}

// Issue makes a new key and a certificate for it.
func (a *Authority) Issue(r Request) (*Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	lifetime := r.Lifetime
	if lifetime == 0 {
		lifetime = DefaultLifetime
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: r.CommonName, Organization: r.Organizations},
		NotBefore:             now.Add(-max(r.Age, backdate)),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		DNSNames:              r.Hosts,
		IPAddresses:           r.IPs,
	}
	if len(r.Hosts)+len(r.IPs) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return &Pair{Cert: encodeCert(der), Key: keyPEM}, nil
}

// LoadAuthority reads NAME.crt and NAME.key in dir.
func LoadAuthority(dir, name string) (*Authority, error) {
	pair, err := LoadPair(dir, name)
	if err != nil {
		return nil, err
	}
	both, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
	}
	key, ok := both.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: the key is not an ECDSA key", filepath.Join(dir, name))
	}
	return assemble(both.Certificate[0], key)
}

// EnsureAuthority loads the authority NAME from dir, and makes it first if it
// is not there.
func EnsureAuthority(dir, name, commonName string) (*Authority, error) {
	a, err := LoadAuthority(dir, name)
	if !errors.Is(err, os.ErrNotExist) {
		return a, err
	}
	if a, err = NewAuthority(commonName); err != nil {
		return nil, err
	}
	return a, a.Save(dir, name)
}

// EnsurePair makes NAME.crt and NAME.key in dir unless a pair is there that is
// valid for at least a day more.
func (a *Authority) EnsurePair(dir, name string, r Request) error {
	if pair, err := LoadPair(dir, name); err == nil {
		block, _ := pem.Decode(pair.Cert)
		if block != nil {
			cert, err := x509.ParseCertificate(block.Bytes)
			if err == nil && cert.CheckSignatureFrom(a.cert) == nil && time.Until(cert.NotAfter) > 24*time.Hour {
				return nil
			}
		}
	}
	pair, err := a.Issue(r)
	if err != nil {
		return err
	}
	return pair.Save(dir, name)
}

// LoadPair reads NAME.crt and NAME.key in dir.
func LoadPair(dir, name string) (*Pair, error) {
	cert, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, err
	}
	return &Pair{Cert: cert, Key: key}, nil
}

// Save writes NAME.crt and NAME.key in dir, the key first.
func (p *Pair) Save(dir, name string) error {
	if err := WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600); err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, name+".crt"), p.Cert, 0o644)
}

// EnsureSigningKey makes the service account signing key NAME.key and its
// public half NAME.pub in dir unless they are there.
func EnsureSigningKey(dir, name string) error {
	keyFile := filepath.Join(dir, name+".key")
	pubFile := filepath.Join(dir, name+".pub")
	_, keyErr := os.Stat(keyFile)
	_, pubErr := os.Stat(pubFile)
	if keyErr == nil && pubErr == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := WriteFile(keyFile, keyPEM, 0o600); err != nil {
		return err
	}
	return WriteFile(pubFile, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}

// WriteFile replaces path in one step: readers see the old content or the new.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(mode); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return n.Add(n, big.NewInt(1)), nil
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority issues certificates for a test.
type authority struct {
	File string // its own certificate

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// keyPair is a certificate and its key, as files.
type keyPair struct{ Cert, Key string }

// newAuthority makes an authority that only this test trusts.
func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.File = a.sign(t, "ca", a.cert).Cert
	return a
}

// issue makes a certificate, valid until a time, for a server's names and addresses or, without
// any, for a client.
func (a *authority) issue(t testing.TB, until time.Time, hosts ...string) keyPair {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	noError(t, err)
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, host)
		}
	}
	return a.sign(t, serial.String(), c)
}

// sign writes a certificate and its new key; the first one signs itself.
func (a *authority) sign(t testing.TB, name string, c *x509.Certificate) keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	noError(t, err)
	if a.key == nil {
		a.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	noError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	noError(t, err)
	return keyPair{
		Cert: a.write(t, name+".pem", "CERTIFICATE", der),
		Key:  a.write(t, name+".key", "PRIVATE KEY", secret),
	}
}

func (a *authority) write(t testing.TB, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(a.dir, name)
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	noError(t, os.WriteFile(path, text, 0o600))
	return path
}

// options are the options of a server with a certificate. With clients it asks for theirs.
func (a *authority) options(own keyPair, clients bool) []string {
	ask := "no"
	if clients {
		ask = "yes"
	}
	return []string{
		"--tls-cert-file", own.Cert, "--tls-key-file", own.Key, "--tls-ca-cert-file", a.File,
		"--tls-auth-clients", ask, "--tls-replication", "yes", "--tls-cluster", "yes",
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package redistest

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

// Authority issues certificates for a test.
type Authority struct {
	File string // its own certificate

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate and its key, as files.
type Pair struct{ Cert, Key string }

// NewAuthority makes an authority that nobody else knows.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{dir: t.TempDir()}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.File = a.sign(t, "ca", a.cert).Cert
	return a
}

// Issue makes a certificate for a server's names and addresses, or for a client without any, that
// is valid until then.
func (a *Authority) Issue(t testing.TB, until time.Time, hosts ...string) Pair {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	check(t, err)
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
func (a *Authority) sign(t testing.TB, name string, c *x509.Certificate) Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	if a.key == nil {
		a.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	check(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	return Pair{
		Cert: a.write(t, name+".pem", "CERTIFICATE", der),
		Key:  a.write(t, name+".key", "PRIVATE KEY", secret),
	}
}

func (a *Authority) write(t testing.TB, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(a.dir, name)
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	check(t, os.WriteFile(path, text, 0o600))
	return path
}

// TLS are the options of a server with a certificate. With clients it asks for theirs.
func (a *Authority) TLS(own Pair, clients bool) []string {
	ask := "no"
	if clients {
		ask = "yes"
	}
	return []string{
		"--tls-cert-file", own.Cert, "--tls-key-file", own.Key, "--tls-ca-cert-file", a.File,
		"--tls-auth-clients", ask, "--tls-replication", "yes", "--tls-cluster", "yes",
	}
}

package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority issues certificates for a test, which alone trusts it.
type authority struct {
	File string // its own certificate

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// keyPair is a certificate and its key, as files.
type keyPair struct{ Cert, Key string }

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.File = a.sign(t, &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true,
		Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}).Cert
	return a
}

// issue makes a certificate, valid until a time, for a server's names and addresses or, without
// any, for a client.
func (a *authority) issue(t testing.TB, until time.Time, hosts ...string) keyPair {
	t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(mrand.Int64()), NotAfter: until,
		Subject: pkix.Name{CommonName: "test"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, host)
		}
	}
	return a.sign(t, c)
}

// sign writes a certificate and its new key; the first one signs itself.
func (a *authority) sign(t testing.TB, c *x509.Certificate) keyPair {
	t.Helper()
	c.NotBefore = time.Now().Add(-24 * time.Hour)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	noError(t, err)
	if a.key == nil {
		a.key, a.cert = key, c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	noError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	noError(t, err)
	name := filepath.Join(a.dir, c.SerialNumber.String())
	for file, block := range map[string]pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der},
		name + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		noError(t, os.WriteFile(file, pem.EncodeToMemory(&block), 0o600))
	}
	return keyPair{name + ".pem", name + ".key"}
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

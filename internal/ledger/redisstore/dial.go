package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// tlsFiles is the TLS part of a URL.
type tlsFiles struct {
	ca, cert, key string // files
	name          string // required in every server's certificate; "" for the host name
	urlHost       string // the first host of the URL

	roots *x509.CertPool // nil for the system's roots
}

// load reads the files, to report an invalid one at the start.
func (t *tlsFiles) load() error {
	if t.ca != "" {
		text, err := os.ReadFile(t.ca)
		if err != nil {
			return fmt.Errorf("option ca: %w", err)
		}
		t.roots = x509.NewCertPool()
		if !t.roots.AppendCertsFromPEM(text) {
			return fmt.Errorf("option ca: %s holds no certificate in PEM", t.ca)
		}
	}
	if (t.cert == "") != (t.key == "") {
		return errors.New("options cert and key: a client certificate needs both")
	}
	if t.cert != "" {
		_, err := t.own(nil)
		return err
	}
	return nil
}

// own reads the client's certificate. It runs for each connection, so that a renewed certificate
// takes effect.
func (t *tlsFiles) own(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.cert, t.key)
	if err != nil {
		return nil, fmt.Errorf("options cert and key: %s and %s: %w", t.cert, t.key, err)
	}
	return &pair, nil
}

// config returns the TLS configuration for a connection to addr.
func (t *tlsFiles) config(addr string) *tls.Config {
	c := &tls.Config{RootCAs: t.roots, ServerName: t.nameOf(addr), MinVersion: tls.VersionTLS12}
	if t.cert != "" {
		c.GetClientCertificate = t.own
	}
	return c
}

// nameOf returns the name required in the certificate of the server at addr. Clusters and Sentinels
// name servers by address; their certificates often have only the name in the URL.
func (t *tlsFiles) nameOf(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	switch {
	case t.name != "":
		return t.name
	case host == "", net.ParseIP(host) != nil && net.ParseIP(t.urlHost) == nil:
		return t.urlHost
	}
	return host
}

// guess returns a likely reason why a server closes the connection.
func (t *tlsFiles) guess() string {
	switch {
	case t == nil:
		return "if this is its TLS port, write rediss"
	case t.cert == "":
		return "it may require a client certificate: name one with ?cert=FILE&key=FILE"
	}
	return "it may not trust the certificate of ?cert=FILE&key=FILE"
}

// dialError reports that no connection was made, so nothing was sent.
type dialError struct {
	error
	final bool // retrying does not help: the server speaks no TLS, or its certificate is refused
}

// dialer returns a dial function, with TLS if t is not nil. Unlike the client's own, it ends a TLS
// handshake with the context.
func dialer(t *tlsFiles) func(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, &dialError{error: err}
		}
		if t == nil {
			return conn, nil
		}
		secure := tls.Client(conn, t.config(addr))
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, &dialError{fmt.Errorf("%s: %w", addr, tlsAdvice(err)), isFinal(err)}
		}
		return secure, nil
	}
}

func isFinal(err error) bool {
	var network net.Error
	return !errors.As(err, &network) && !errors.Is(err, io.EOF)
}

// tlsAdvice adds a remedy to the error of a handshake.
func tlsAdvice(err error) error {
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	advice := ""
	switch {
	case errors.As(err, &record):
		advice = "it does not speak TLS: " + plainPort
	case errors.Is(err, context.DeadlineExceeded):
		advice = "it does not answer in TLS: " + plainPort
	case errors.As(err, &authority):
		advice = "its certificate is from an unknown authority: name the CA file with ?ca=FILE"
	case errors.As(err, &host):
		advice = "its certificate is for another name: correct the URL, or add ?server_name=NAME"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		advice = "renew the certificate, or set this machine's clock"
	default:
		return err
	}
	return fmt.Errorf("%s (%w)", advice, err)
}

const plainPort = "write redis instead of rediss, or its TLS port"

package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Secure returns the TLS configuration of a server whose certificate and key are in files, nil
// where no files are named. It reads the files for each connection, so that a new certificate needs
// no restart; while they cannot be read, the last certificate stays in force.
func Secure(cert, key string, log *slog.Logger) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	first, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	var inForce atomic.Pointer[tls.Certificate]
	inForce.Store(&first)
	sometimes := rate.Sometimes{Interval: time.Minute}
	get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if next, err := tls.LoadX509KeyPair(cert, key); err != nil {
			sometimes.Do(func() {
				log.Error("cannot read the certificate; keeping the last one", "error", err)
			})
		} else {
			inForce.Store(&next)
		}
		return inForce.Load(), nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get}, nil
}

package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Secure returns the TLS configuration of a server whose certificate and key are in files, nil
// where no files are named. It reads the files again after they change; while they cannot be read,
// the last certificate stays in force.
func Secure(cert, key string, log *slog.Logger) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	files := &certificate{cert: cert, key: key, log: log}
	if err := files.load(files.modified()); err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.get}, nil
}

// certificate is the certificate in force.
type certificate struct {
	cert, key string // paths
	log       *slog.Logger

	mu    sync.Mutex
	pair  *tls.Certificate
	stamp [2]time.Time // modification times of the files when they were read last
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.modified(); now != c.stamp {
		if err := c.load(now); err != nil {
			c.log.Error("cannot read the certificate; the last one stays in force", "error", err)
		} else {
			c.log.Info("the certificate is read again", "file", c.cert)
		}
	}
	return c.pair, nil
}

// load reads the files. A failure is not repeated until they change again.
func (c *certificate) load(stamp [2]time.Time) error {
	c.stamp = stamp
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		c.pair = &pair
	}
	return err
}

func (c *certificate) modified() (stamp [2]time.Time) {
	for i, path := range []string{c.cert, c.key} {
		if info, err := os.Stat(path); err == nil {
			stamp[i] = info.ModTime()
		}
	}
	return stamp
}

package serve

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate writes a certificate of its own with a serial number, and its key. at is the
// files' time.
func writeCertificate(t *testing.T, cert, key string, serial int64, at time.Time) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial),
		Subject:  pkix.Name{CommonName: "quota.lan"},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		must(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
		must(t, os.Chtimes(path, at, at))
	}
}

// TestSecure serves the certificate of the files, also after they change. Files that cannot be read
// keep the last one in force, and are logged once a minute.
func TestSecure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, nil))
	if _, err := Secure(cert, key, log); err == nil {
		t.Error("files that are missing are no error")
	}
	if config, err := Secure("", "", log); config != nil || err != nil {
		t.Errorf("without files: %v, %v", config, err)
	}
	at := time.Now().Add(-time.Hour)
	writeCertificate(t, cert, key, 1, at)
	config, err := Secure(cert, key, log)
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan error, 1)
	ctx := t.Context()
	go func() { ended <- Serve(ctx, listener, http.NotFoundHandler(), config, time.Second) }()
	serial := func() int64 {
		t.Helper()
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		must(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("certificate %d, want 1", got)
	}
	writeCertificate(t, cert, key, 2, at.Add(time.Minute))
	if got := serial(); got != 2 {
		t.Errorf("certificate %d after a change, want 2", got)
	}
	must(t, os.WriteFile(cert, []byte("torn"), 0o600))
	for range 3 {
		if got := serial(); got != 2 {
			t.Errorf("certificate %d after a torn write, want 2", got)
		}
	}
	if n := strings.Count(lines.String(), "keeping the last one"); n != 1 {
		t.Errorf("logged %d times: %s", n, lines.String())
	}
	writeCertificate(t, cert, key, 3, at.Add(2*time.Minute))
	if got := serial(); got != 3 {
		t.Errorf("certificate %d once it is whole again, want 3", got)
	}
	select {
	case err := <-ended:
		t.Errorf("the server ended: %v", err)
	default:
	}
}

// deadlineRecorder is a response that records the read deadline of the connection.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	read time.Time
}

func (r *deadlineRecorder) SetReadDeadline(at time.Time) error {
	r.read = at
	return nil
}

// TestReadDeadline: a request that waits for the ledger has as much time as its response, not only
// that of its body, because net/http cancels a request at the read deadline of its connection.
func TestReadDeadline(t *testing.T) {
	t.Parallel()
	s := newEnv(t, limitedTo(t, hourly))
	handler, err := s.server.Handler()
	must(t, err)
	ctx := context.WithValue(t.Context(), http.LocalAddrContextKey,
		&net.TCPAddr{IP: net.IPv6loopback})
	for _, request := range []string{"POST /v1/charges", "DELETE /v1/holds/default.06fmjq2kx4a9bc"} {
		method, path, _ := strings.Cut(request, " ")
		w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
		begin := time.Now()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, "http://localhost"+path,
			strings.NewReader(`{"units":1}`)))
		if got := w.read.Sub(begin); got < answerWithin {
			t.Errorf("%s: %d, and cancelled after %v", request, w.Code, got)
		}
	}
}

// TestPublicWithoutTokens requires that a public server without tokens refuses charges: behind a
// reverse proxy, every request comes from this machine.
func TestPublicWithoutTokens(t *testing.T) {
	t.Parallel()
	serve := limitedTo(t, hourly)
	s := newEnv(t, func(srv *Server) {
		serve(srv)
		srv.Public = true
	})
	s.wants(s.send(http.MethodPost, "/v1/charges", `{"units":1}`), 403, "set token_file:")
	s.wants(s.get("/openapi.json"), 200)
}

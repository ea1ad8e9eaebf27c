package meter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

const (
	canary     = metertest.Key
	chart      = metertest.Chart
	categories = metertest.Categories
	search     = metertest.Search
	rate       = metertest.Rate
)

var (
	noon  = metertest.Noon
	units = metertest.Units
	must  = metertest.Must
)

// env is a gate between a client and the stand-in.
type env struct{ *metertest.Env }

func open(t testing.TB, standin *standin.YouTube, limits []quota.Limit) *env {
	t.Helper()
	return &env{metertest.Open(t, standin, limits)}
}

func onRedis(t testing.TB, standin *standin.YouTube, limits []quota.Limit) *env {
	t.Helper()
	return &env{metertest.OpenOnRedis(t, standin, limits)}
}

// opener opens an env for a test.
type opener func(testing.TB, *standin.YouTube, []quota.Limit) *env

// onLedgers runs a test on each kind of ledger.
func onLedgers(t *testing.T, test func(*testing.T, opener)) {
	t.Run("sqlite", func(t *testing.T) { test(t, open) })
	t.Run("redis", func(t *testing.T) { test(t, onRedis) })
}

// get sends a GET through the gate and returns the status and the body.
func (s *env) get(t testing.TB, path string) (int, string, error) {
	t.Helper()
	return s.ask(t.Context(), path)
}

// ask is get with a context.
func (s *env) ask(ctx context.Context, path string) (int, string, error) {
	return s.send(s.request(ctx, http.MethodGet, path, nil))
}

func (s *env) send(r *http.Request) (int, string, error) {
	return read((&http.Client{Transport: s}).Do(r))
}

// request returns a request for a path of the upstream, or for an absolute URL.
func (s *env) request(ctx context.Context, verb, to string, body io.Reader) *http.Request {
	if strings.HasPrefix(to, "/") || to == "" {
		to = s.Server.URL + to
	}
	return request(ctx, verb, to, body)
}

func request(ctx context.Context, verb, url string, body io.Reader) *http.Request {
	r, err := http.NewRequestWithContext(ctx, verb, url, body)
	if err != nil {
		panic(err)
	}
	return r
}

func read(resp *http.Response, err error) (int, string, error) {
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// entries returns the ledger's entries of the default bucket.
func (s *env) entries(t testing.TB) []quota.Entry {
	t.Helper()
	entries, err := s.Ledger.Entries(t.Context(),
		quota.Query{Credential: "key1", Bucket: "default"})
	must(t, err)
	return entries
}

// used returns the units of a bucket in the ledger.
func (s *env) used(t testing.TB, bucket string) int64 {
	t.Helper()
	return s.usage(t, bucket).Limits[0].Used
}

func (s *env) usage(t testing.TB, bucket string) quota.BucketUsage {
	t.Helper()
	all, err := s.Budget.Usage(t.Context())
	must(t, err)
	for _, b := range all.Buckets {
		if b.Bucket == bucket {
			return b
		}
	}
	t.Fatalf("no bucket %s", bucket)
	return quota.BucketUsage{}
}

// refused checks that an error of the gate has a reason and does not contain the key.
func refused(t testing.TB, err, reason error) {
	t.Helper()
	if !errors.Is(err, quota.ErrNotSent) || !errors.Is(err, reason) {
		t.Errorf("got %v, want %v", err, reason)
	}
	if strings.Contains(fmt.Sprintf("%+v", err), canary) {
		t.Errorf("the key is in %v", err)
	}
}

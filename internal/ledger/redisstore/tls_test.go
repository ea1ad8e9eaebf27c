package redisstore_test

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/ledger/redisstore"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// TestTLS: of a server with a private authority, and one whose clients need a certificate as well,
// each error says what is wrong and what to do. Whether a server says that it refuses a
// client, or hangs up at once, is a matter of luck.
func TestTLS(t *testing.T) {
	t.Parallel()
	hour := time.Now().Add(time.Hour)
	a := newAuthority(t)
	serve := func(clients bool, until time.Time, hosts ...string) string {
		options := a.options(a.issue(t, until, hosts...), clients)
		return redistest.Start(t, redistest.Options{TLS: options}).Addr
	}
	good, strict := serve(false, hour, "127.0.0.1"), serve(true, hour, "127.0.0.1")
	named := serve(false, hour, "redis.example.org")
	old := serve(false, time.Now().Add(-time.Minute), "127.0.0.1")
	plain := redistest.Start(t, redistest.Options{}).Addr
	ca := "?ca=" + url.QueryEscape(a.File)
	client, stranger := a.issue(t, hour), newAuthority(t)
	foreign, strange := stranger.issue(t, hour), "?ca="+url.QueryEscape(stranger.File)
	own := func(p keyPair) string {
		return "&cert=" + url.QueryEscape(p.Cert) + "&key=" + url.QueryEscape(p.Key)
	}
	certificate, soon := "?cert=FILE&key=FILE", "&dial_timeout=300ms"
	for _, test := range []struct{ name, url, says string }{ // one that says nothing opens
		{"own authority", "rediss://" + good + ca, ""},
		{"the system's authorities", "rediss://" + good, "?ca=FILE"},
		{"another authority", "rediss://" + good + strange, "?ca=FILE"},
		{"client certificate", "rediss://" + strict + ca + own(client), ""},
		{"no client certificate", "rediss://" + strict + ca, certificate},
		{"a stranger's certificate", "rediss://" + strict + ca + own(foreign), certificate},
		{"other name", "rediss://" + named + ca, "?server_name=NAME"},
		{"other name, given", "rediss://" + named + ca + "&server_name=redis.example.org", ""},
		{"expired", "rediss://" + old + ca, "renew the certificate"},
		{"TLS on a plain port", "rediss://" + plain + ca + soon, "write redis instead"},
		{"plain on a TLS port", "redis://" + good, "write rediss"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := redisstore.Open(t.Context(), test.url)
			if err == nil {
				defer s.Close()
				if n := allowedOf(t, newEnv(t, s), 1); n != 1 {
					t.Error("the charge was denied")
				}
			}
			if (err == nil) != (test.says == "") || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("got %v\nwant %q", err, test.says)
			}
			if err != nil && !errors.Is(err, quota.ErrLedgerUnusable) &&
				!errors.Is(err, quota.ErrUnreachable) {
				t.Errorf("got %v, which no policy knows", err)
			}
		})
	}
}

// With Sentinel and in a cluster, the servers are named by their addresses; their certificates bear
// the name in the URL.
func TestTLSOfManyServers(t *testing.T) {
	t.Parallel()
	hour := time.Now().Add(time.Hour)
	a := newAuthority(t)
	options := a.options(a.issue(t, hour, "localhost"), true)
	client := a.issue(t, hour)
	files := "?" + url.Values{"ca": {a.File}, "cert": {client.Cert}, "key": {client.Key}}.Encode()
	local := func(addr string) string { return strings.Replace(addr, "127.0.0.1", "localhost", 1) }

	t.Run("sentinel", func(t *testing.T) {
		host, port, _ := net.SplitHostPort(redistest.Start(t, redistest.Options{TLS: options}).Addr)
		s := redistest.Start(t, redistest.Options{
			TLS: options, Sentinel: fmt.Sprintf("sentinel monitor main %s %s 1\n", host, port),
		})
		if n := allowedOf(t, openEnv(t, "rediss+sentinel://"+local(s.Addr)+"/main"+files), 5); n != 5 {
			t.Errorf("allowed %d", n)
		}
	})
	t.Run("cluster", func(t *testing.T) {
		s := redistest.Start(t, redistest.Options{TLS: options, Node: true})
		admin, err := redisstore.ConnectTo("rediss://" + local(s.Addr) + "/0" + files)
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close()
		serveAll(t, admin)
		if n := allowedOf(t, openEnv(t, "rediss+cluster://"+local(s.Addr)+files), 5); n != 5 {
			t.Errorf("allowed %d", n)
		}
	})
}

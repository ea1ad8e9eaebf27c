package redisstore_test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/ledger/redisstore"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// opening is an attempt to open a ledger and to charge it.
type opening struct {
	url  string
	kind error  // kind of the error; nil for ErrUnreachable or ErrLedgerUnusable
	says string // text in the error; "" if the charge must be allowed
}

func testOpen(t *testing.T, openings map[string]opening) {
	for name, test := range openings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := redisstore.Open(t.Context(), test.url)
			if err == nil {
				defer s.Close()
				if n := allowedOf(t, newEnv(t, s), 1); n != 1 {
					t.Errorf("%d charges were allowed, want 1", n)
				}
			}
			kind := test.kind
			if kind == nil && errors.Is(err, quota.ErrUnreachable) {
				kind = quota.ErrUnreachable
			}
			if test.says != "" {
				isError(t, err, cmp.Or(kind, quota.ErrLedgerUnusable), test.says)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOpenRefuses: Open refuses a server on which a ledger would not be exact, and never repeats a
// password. For the URL of another kind of server, or of a missing database, the error has advice.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	serve := func(args ...string) string {
		return redistest.Start(t, redistest.Options{Args: args}).URL()
	}
	primary := redistest.Start(t, redistest.Options{})
	host, port, _ := net.SplitHostPort(primary.Addr)
	password := serve("--requirepass", "canary-password")
	with := func(password, url string) string {
		return strings.Replace(url, "redis://", "redis://:"+password+"@", 1)
	}
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	unusable := quota.ErrLedgerUnusable
	testOpen(t, map[string]opening{
		"right password": {with("canary-password", password), nil, ""},
		"no password":    {password, unusable, "asks for a password"},
		"wrong password": {with("wrong-canary", password), unusable, "refused the user or the password"},
		"replica":        {serve("--replicaof", host, port), unusable, "is a replica"},
		"evicts": {serve("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), unusable,
			"would forget charges"},
		"too old":          {"redis://" + oldServer(t), unusable, "4.0.14 is too old"},
		"no master":        {"redis+sentinel://host:26379", quota.ErrMalformed, "master"},
		"another database": {"redis://" + primary.Addr + "/99", unusable, "end the ledger's URL with /0"},
		"a web server": {"redis://" + web.Listener.Addr().String(), unusable,
			"this is not a Redis server"},
	})
}

// oldServer answers INFO as Redis 4 does, which can no longer be installed, and refuses the
// commands that begin a connection.
func oldServer(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	t.Cleanup(func() { ln.Close() })
	info := "# Server\r\nredis_version:4.0.14\r\nrole:master\r\n"
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					switch {
					case strings.EqualFold(lines.Text(), "info"):
						fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(info), info)
					case lines.Text() == "hello" || lines.Text() == "client":
						fmt.Fprint(conn, "-ERR unknown command\r\n")
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// TestSentinelsInTrouble: an error about a Sentinel, or about a URL of Sentinels, differs from the
// error about an unreachable master.
func TestSentinelsInTrouble(t *testing.T) {
	t.Parallel()
	args := []string{"--requirepass", "canary-server"}
	server := redistest.Start(t, redistest.Options{Args: args}).Addr
	host, port, _ := net.SplitHostPort(server)
	at := redistest.Start(t, redistest.Options{Sentinel: fmt.Sprintf("requirepass canary-own\n"+
		"user watcher on >canary-watcher +sentinel +subscribe +ping &*\n"+
		"sentinel monitor main %s %s 1\nsentinel auth-pass main canary-server\n", host, port)}).Addr
	const (
		own     = "?sentinel_password=canary-own"
		watcher = "?sentinel_user=watcher&sentinel_password=canary-watcher"
		ask     = "?sentinel_password=PASSWORD"
	)
	user := "redis+sentinel://:canary-server@"
	sentinel := user + at
	testOpen(t, map[string]opening{
		"all passwords":           {sentinel + "/main" + own, nil, ""},
		"a server among them":     {sentinel + "," + server + "/main" + own, nil, ""},
		"a user of the Sentinels": {sentinel + "/main" + watcher, nil, ""},
		"no Sentinel password":    {sentinel + "/main", nil, ask},
		"a wrong password":        {sentinel + "/main?sentinel_password=canary-x", nil, ask},
		"another master":          {sentinel + "/other" + own, nil, "no Sentinel has the master"},
		"no server there": {user + "127.0.0.1:1,127.0.0.1:2/main", nil,
			"no Sentinel answers: dial"},
		"a server": {user + server + "/main?sentinel_password=canary-server", nil,
			"it is a server and no Sentinel"},
		"no password for the server": {"redis+sentinel://" + at + "/main" + own, nil,
			"asks for a password"},
		"a wrong password for the server": {"redis+sentinel://:canary-x@" + at + "/main" + own, nil,
			"refused the user or the password"},
		"named as a server": {"redis://:canary-own@" + at, nil, "it is a Sentinel: write"},
		"no cluster":        {"redis+cluster://:canary-server@" + server, nil, "it is no cluster"},
	})
}

// TestTLS opens servers with a private authority, some of which require client certificates. Each
// error says what is wrong and what to do. A server that refuses a client either reports it or
// closes the connection at once.
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
	testOpen(t, map[string]opening{
		"own authority":            {"rediss://" + good + ca, nil, ""},
		"the system's authorities": {"rediss://" + good, nil, "?ca=FILE"},
		"another authority":        {"rediss://" + good + strange, nil, "?ca=FILE"},
		"client certificate":       {"rediss://" + strict + ca + own(client), nil, ""},
		"no client certificate":    {"rediss://" + strict + ca, nil, certificate},
		"a stranger's certificate": {"rediss://" + strict + ca + own(foreign), nil, certificate},
		"other name":               {"rediss://" + named + ca, nil, "?server_name=NAME"},
		"other name, given": {"rediss://" + named + ca + "&server_name=redis.example.org", nil,
			""},
		"expired":             {"rediss://" + old + ca, nil, "renew the certificate"},
		"TLS on a plain port": {"rediss://" + plain + ca + soon, nil, "write redis instead"},
		"plain on a TLS port": {"redis://" + good, nil, "write rediss"},
	})
}

// TestTLSOfManyServers: Sentinels and clusters name their servers by address, but the certificates
// have the host name of the URL.
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
			t.Errorf("%d charges were allowed, want 5", n)
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
			t.Errorf("%d charges were allowed, want 5", n)
		}
	})
}

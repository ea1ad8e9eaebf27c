package redisledger

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// What a server says in the middle of its work is told with what to do about it.
func TestServersInTrouble(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		trouble func(*testing.T) *Ledger
		is      error
		says    string
	}{
		"became a replica": {func(t *testing.T) *Ledger {
			l := open(t, redistest.Start(t, redistest.Options{}).URL())
			do(t, l.client, "replicaof", "127.0.0.1", "1")
			return l
		}, quota.ErrLedgerUnusable, "name the primary"},
		"a replica that serves nothing": {func(t *testing.T) *Ledger {
			s := redistest.Start(t, redistest.Options{Args: []string{"--replica-serve-stale-data", "no"}})
			l := open(t, s.URL())
			do(t, l.client, "replicaof", "127.0.0.1", "1")
			return l
		}, quota.ErrUnreachable, "a replica that has lost its primary"},
		"loads its data": {func(t *testing.T) *Ledger {
			s := redistest.Start(t, redistest.Options{AOF: true, Args: []string{"--key-load-delay", "300"}})
			l := open(t, s.URL())
			do(t, l.client, "eval", "for i = 1, 10000 do redis.call('SET', i, i) end return 1", "0")
			s.Kill()
			s.Begin(t)
			return l
		}, quota.ErrUnreachable, "loading its data"},
		"node without its slot": {func(t *testing.T) *Ledger {
			return open(t, redistest.Start(t, redistest.Options{Node: true}).URL())
		}, quota.ErrLedgerUnusable, "write redis+cluster://"},
		"node that names another": {func(t *testing.T) *Ledger {
			nodes := halves(t)
			for _, n := range nodes {
				if l := open(t, n.URL()); strings.Contains(fmt.Sprint(chargeErr(t, l)), "MOVED") {
					return l
				}
			}
			t.Fatal("no node names another")
			return nil
		}, quota.ErrLedgerUnusable, "write redis+cluster://"},
		"cluster that is down": {func(t *testing.T) *Ledger {
			nodes := halves(t)
			l := open(t, "redis+cluster://"+nodes[0].Addr)
			for _, n := range nodes {
				c := redis.NewClient(&redis.Options{Addr: n.Addr})
				defer c.Close()
				do(t, c, "cluster", "flushslots")
			}
			return l
		}, quota.ErrUnreachable, "the cluster is down"},
		"a password set later": {func(t *testing.T) *Ledger {
			s := redistest.Start(t, redistest.Options{})
			l := open(t, s.URL())
			do(t, l.client, "config", "set", "requirepass", "canary-password")
			do(t, l.client, "client", "kill", "type", "normal", "skipme", "no")
			return l
		}, quota.ErrLedgerUnusable, "asks for a password"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := test.trouble(t)
			var err error
			eventually(t, test.says, func() bool {
				err = chargeErr(t, l)
				return strings.Contains(fmt.Sprint(err), test.says)
			})
			if !errors.Is(err, test.is) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v\nwant %v", err, test.is)
			}
		})
	}
}

// What is wrong with Sentinels, or with the URL that names them, is told apart from a master that
// is away.
func TestSentinelsInTrouble(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Args: []string{"--requirepass", "canary-server"}})
	host, port, _ := net.SplitHostPort(server.Addr)
	sentinel := redistest.Start(t, redistest.Options{Sentinel: fmt.Sprintf("requirepass canary-own\n"+
		"user watcher on >canary-watcher +sentinel +subscribe +ping &*\n"+
		"sentinel monitor main %s %s 1\nsentinel auth-pass main canary-server\n", host, port)}).Addr
	const (
		user = "redis+sentinel://:canary-server@"
		own  = "?sentinel_password=canary-own"
	)
	for url, says := range map[string]string{
		user + sentinel + "/main" + own:                                                  "",
		user + sentinel + "," + server.Addr + "/main" + own:                              "",
		user + sentinel + "/main":                                                        "?sentinel_password=PASSWORD",
		user + sentinel + "/main?sentinel_password=canary-x":                             "?sentinel_password=PASSWORD",
		user + sentinel + "/main?sentinel_user=watcher&sentinel_password=canary-watcher": "",
		user + sentinel + "/other" + own:                                                 "no Sentinel knows the master",
		user + "127.0.0.1:1,127.0.0.1:2/main":                                            "no Sentinel answers: dial",
		user + server.Addr + "/main?sentinel_password=canary-server":                     "it is a server and no Sentinel",
		"redis+sentinel://" + sentinel + "/main" + own:                                   "asks for a password",
		"redis+sentinel://:canary-x@" + sentinel + "/main" + own:                         "refused the user or the password",
		"redis://:canary-own@" + sentinel:                                                "it is a Sentinel: write",
		"redis+cluster://:canary-server@" + server.Addr:                                  "it is no cluster",
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			l, err := Open(t.Context(), url)
			if err == nil {
				l.Close()
			}
			said := fmt.Sprint(err)
			if (err == nil) != (says == "") || !strings.Contains(said, says) ||
				strings.Contains(said, "canary") {
				t.Errorf("got %v\nwant %q", err, says)
			}
		})
	}
}

func chargeErr(t *testing.T, l *Ledger) error {
	t.Helper()
	_, err := l.Charge(t.Context(), one("k", 1))
	return err
}

// do sends a command; an error is one that a broken connection may leave.
func do(t *testing.T, c redis.UniversalClient, args ...any) {
	t.Helper()
	if err := c.Do(t.Context(), args...).Err(); err != nil && isReply(err) {
		t.Fatal(args, err)
	}
}

// halves are two nodes of a cluster, with half of the slots each.
func halves(t *testing.T) (nodes []*redistest.Server) {
	t.Helper()
	for i := range 2 {
		n := redistest.Start(t, redistest.Options{Node: true})
		nodes = append(nodes, n)
		c := redis.NewClient(&redis.Options{Addr: n.Addr})
		defer c.Close()
		if err := c.ClusterAddSlotsRange(t.Context(), i*8192, i*8192+8191).Err(); err != nil {
			t.Fatal(err)
		}
		host, port, _ := net.SplitHostPort(nodes[0].Addr)
		do(t, c, "cluster", "meet", host, port)
		if i == 1 {
			eventually(t, "the cluster is ready", func() bool {
				return strings.Contains(c.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
			})
		}
	}
	return nodes
}

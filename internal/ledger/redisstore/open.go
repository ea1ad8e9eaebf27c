package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"quotabudget/internal/quota"
)

// quiet stops the client from writing errors to standard error, because its methods return them.
var quiet = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Open connects to the server or servers of a URL and checks that they can keep a ledger: Redis 5
// or newer, a primary, and no eviction of keys.
func Open(ctx context.Context, ledgerURL string) (*Store, error) {
	a, err := parseURL(ledgerURL)
	if err != nil {
		return nil, err
	}
	client := connect(a)
	if err := inspect(ctx, client, a); err != nil {
		client.Close()
		return nil, err
	}
	s := newStore(client)
	s.replicas = a.replicas
	return s, nil
}

// Connect opens a client for other data on the servers of a ledger, with the checks of Open.
func Connect(ctx context.Context, ledgerURL string) (redis.UniversalClient, error) {
	s, err := Open(ctx, ledgerURL)
	if err != nil {
		return nil, err
	}
	return s.client, nil
}

// connect returns a client that sends no command twice (see once).
func connect(a *address) redis.UniversalClient {
	quiet()
	o := a.UniversalOptions
	o.Dialer, o.DialerRetries, o.MaxRetries = dialer(a.tls), 1, -1
	o.DialTimeout = cmp.Or(o.DialTimeout, 2*time.Second)
	o.ContextTimeoutEnabled, o.Protocol = true, 2
	o.DisableIdentity = true // it needs one more right
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch a.kind {
	case "cluster":
		options := o.Cluster()
		options.ClusterStateReloadInterval = reloadEvery
		options.DisableRoutingPolicies = true // they send COMMAND; here keys come first
		client := redis.NewClusterClient(options)
		client.AddHook(&resend{patience: failoverPatience, reload: client.ReloadState, many: true})
		return client
	case "sentinel":
		client := redis.NewFailoverClient(o.Failover())
		client.AddHook(&resend{patience: failoverPatience, many: true})
		return client
	}
	client := redis.NewClient(o.Simple())
	client.AddHook(&resend{patience: restartPatience})
	return client
}

const connectTimeout = 10 * time.Second

// inspect refuses servers on which the ledger would not be exact, but accepts a server whose ACL
// hides INFO.
func inspect(ctx context.Context, client redis.UniversalClient, a *address) error {
	ctx, done := context.WithTimeout(ctx, connectTimeout)
	defer done()
	text, err := client.Info(ctx).Result()
	if err != nil {
		if strings.HasPrefix(err.Error(), "NOPERM") {
			return nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) ||
			errors.Is(err, syscall.EPIPE) {
			return fmt.Errorf("%w: redis: it closed the connection without an answer: %s (%w)",
				quota.ErrUnreachable, a.tls.guess(), err)
		}
		return explain(err)
	}
	info := parseInfo(text)
	major, _, _ := strings.Cut(info["redis_version"], ".")
	number, notNumber := strconv.Atoi(major)
	policy, flaw := info["maxmemory_policy"], ""
	switch {
	case notNumber == nil && number < 5:
		flaw = " " + info["redis_version"] + " is too old: 5 or newer is needed"
	case cmp.Or(info["redis_mode"], info["server_mode"]) == "sentinel": // Valkey has server_mode
		flaw = ": it is a Sentinel: write redis+sentinel://host:26379/master"
	case info["role"] == "slave" && a.kind != "cluster":
		flaw = ": " + unusable["READONLY"]
	case policy != "" && policy != "noeviction" && info["maxmemory"] != "0":
		flaw = " evicts keys when memory is short (maxmemory-policy " + policy + "), and would " +
			"forget charges: set maxmemory-policy noeviction, or use another server"
	default:
		return nil
	}
	return fmt.Errorf("%w: redis%s", quota.ErrLedgerUnusable, flaw)
}

func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

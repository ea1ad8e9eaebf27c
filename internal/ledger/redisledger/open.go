package redisledger

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"quotabudget/internal/quota"
)

// Schemes are the URL schemes that Open takes, each also with rediss for TLS.
//
//	redis://[user:password@]host[:6379][/db]
//	redis+sentinel://[user:password@]host[:26379][,host…]/master[/db]
//	redis+cluster://[user:password@]host[:6379][,host…]
var Schemes = []string{"redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"}

// quiet keeps the client from writing to standard error by itself: what matters comes back as an error.
var quiet = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Open connects to the server or servers of a URL and makes sure that they can keep a ledger: Redis 5 or newer, a primary,
// and nothing that evicts keys.
func Open(ctx context.Context, ledgerURL string) (*Ledger, error) {
	quiet()
	client, cluster, err := connect(ledgerURL)
	if err != nil {
		return nil, err
	}
	if err := inspect(ctx, client, cluster); err != nil {
		client.Close()
		return nil, err
	}
	return newLedger(client, cluster), nil
}

// CheckURL reports what is wrong with a URL, without connecting.
func CheckURL(ledgerURL string) error {
	client, _, err := connect(ledgerURL)
	if err != nil {
		return err
	}
	return client.Close()
}

// connect makes the client that a URL means. Nothing is sent twice by it, since a charge whose answer was lost may have been
// recorded; only a cluster's client does, where charges carry a key for that.
func connect(ledgerURL string) (client redis.UniversalClient, cluster bool, err error) {
	scheme, rest, _ := strings.Cut(ledgerURL, "://")
	tls, kind, _ := strings.Cut(scheme, "+")
	main, query := spread(kind, rest)
	target := tls + "://" + main + query
	off := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch kind {
	case "cluster":
		o, err := redis.ParseClusterURL(target)
		if err != nil {
			return nil, false, badURL("")
		}
		o.MaintNotificationsConfig, o.ContextTimeoutEnabled, o.Protocol = off, true, 2
		return redis.NewClusterClient(o), true, nil
	case "sentinel":
		o, err := redis.ParseFailoverURL(target)
		switch {
		case err != nil:
			return nil, false, badURL("")
		case o.MasterName == "":
			return nil, false, badURL(" names no master")
		}
		o.MaxRetries, o.ContextTimeoutEnabled, o.Protocol = -1, true, 2
		return redis.NewFailoverClient(o), false, nil
	}
	o, err := redis.ParseURL(target)
	if err != nil {
		return nil, false, badURL("")
	}
	o.MaxRetries, o.MaintNotificationsConfig, o.ContextTimeoutEnabled, o.Protocol = -1, off, true, 2
	return redis.NewClient(o), false, nil
}

// badURL repeats neither the URL nor what the client says of it, because either may hold a password.
func badURL(missing string) error {
	return fmt.Errorf("%w: the ledger's URL%s: write redis://host:6379/0, redis+sentinel://host:26379/master or "+
		"redis+cluster://host:6379,host:6379", quota.ErrMalformed, missing)
}

// spread rewrites "user@a,b/master/0" into the client's own form: the first host, and the others as parameters.
func spread(kind, rest string) (main, query string) {
	if kind == "" {
		return rest, ""
	}
	rest, given, _ := strings.Cut(rest, "?")
	hosts, path, _ := strings.Cut(rest, "/")
	user := ""
	if at := strings.LastIndex(hosts, "@"); at >= 0 {
		user, hosts = hosts[:at+1], hosts[at+1:]
	}
	list := strings.Split(hosts, ",")
	params, _ := url.ParseQuery(given)
	for _, host := range list[1:] {
		params.Add("addr", host)
	}
	main = user + list[0]
	if kind == "sentinel" {
		master, db, _ := strings.Cut(path, "/")
		if master != "" {
			params.Set("master_name", master)
		}
		main += "/" + db
	}
	return main, "?" + params.Encode()
}

const connectTimeout = 10 * time.Second

// inspect refuses servers on which the ledger would not be exact. What an ACL hides from us is taken to be in order.
func inspect(ctx context.Context, client redis.UniversalClient, cluster bool) error {
	ctx, done := context.WithTimeout(ctx, connectTimeout)
	defer done()
	text, err := client.Info(ctx).Result()
	if err != nil {
		if strings.HasPrefix(err.Error(), "NOPERM") {
			return nil
		}
		return explain(err)
	}
	info := parseInfo(text)
	major, _, _ := strings.Cut(info["redis_version"], ".")
	if n, err := strconv.Atoi(major); err == nil && n < 5 {
		return fmt.Errorf("%w: redis %s is too old: 5 or newer is needed, where scripts may ask for the time and then write",
			quota.ErrLedgerUnusable, info["redis_version"])
	}
	if info["role"] == "slave" && !cluster {
		return fmt.Errorf("%w: redis: %s", quota.ErrLedgerUnusable, unusable["READONLY"])
	}
	if p := info["maxmemory_policy"]; p != "" && p != "noeviction" && info["maxmemory"] != "0" {
		return fmt.Errorf("%w: redis evicts keys when memory is short (maxmemory-policy %s), and would forget charges: "+
			"set maxmemory-policy noeviction, or keep the ledger on a server of its own", quota.ErrLedgerUnusable, p)
	}
	return nil
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

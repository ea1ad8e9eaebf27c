package redisstore

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// Schemes are the URL schemes that Open accepts, each also with rediss for TLS.
//
//	redis://[user:password@]host[:6379][/db]
//	redis+sentinel://[user:password@]host[:26379][,host…]/master[/db]
//	redis+cluster://[user:password@]host[:6379][,host…]
//
// User and password belong to the servers that keep the ledger. Options follow as
// ?name=value&name=value (see knownOptions).
var Schemes = []string{
	"redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster",
}

// CheckURL checks a URL and the files that it names, without connecting.
func CheckURL(ledgerURL string) error {
	_, err := parseURL(ledgerURL)
	return err
}

// address is a parsed URL.
type address struct {
	kind string // "cluster", "sentinel", or "" for one server
	redis.UniversalOptions
	tls      *tlsFiles // nil without TLS
	replicas int       // number of replicas that must confirm each change
}

// option is an option in the query of a URL.
type option struct {
	into    any    // a *string, *int or *time.Duration; nil for an option that is refused
	problem string // why the option does not apply, or what to write instead
}

const (
	verified = "certificates are always verified; for an authority of your own, write ca=FILE"
	userinfo = "write user:password@ before the host"
)

// knownOptions returns the options by name.
func (a *address) knownOptions() map[string]option {
	tls, forTLS := a.tls, ""
	if tls == nil {
		tls, forTLS = new(tlsFiles), "is for TLS: write rediss instead of redis"
	}
	forSentinel, forFew := "", ""
	if a.kind != "sentinel" {
		forSentinel = "is for redis+sentinel alone"
	}
	if a.kind == "cluster" {
		forFew = "is not for a cluster"
	}
	return map[string]option{
		"ca": {&tls.ca, forTLS}, "cert": {&tls.cert, forTLS}, "key": {&tls.key, forTLS},
		"server_name":       {&tls.name, forTLS},
		"sentinel_user":     {&a.SentinelUsername, forSentinel},
		"sentinel_password": {&a.SentinelPassword, forSentinel},
		"dial_timeout":      {&a.DialTimeout, ""},
		"read_timeout":      {&a.ReadTimeout, ""},
		"pool_size":         {&a.PoolSize, ""},
		"wait_replicas":     {&a.replicas, forFew},

		"skip_verify": {nil, verified}, "insecure": {nil, verified},
		"insecure_skip_verify": {nil, verified},
		"username":             {nil, userinfo}, "password": {nil, userinfo}, "user": {nil, userinfo},
	}
}

// parseURL reads a URL. No error repeats a part that may belong to a password: after an unescaped #
// or /, the rest of a password is parsed as host, path or options.
func parseURL(ledgerURL string) (*address, error) {
	scheme, rest, found := strings.Cut(ledgerURL, "://")
	if !found || !slices.Contains(Schemes, scheme) {
		return nil, malformed(forms)
	}
	if strings.ContainsFunc(rest, func(r rune) bool { return r == '#' || r <= ' ' || r == 0x7f }) {
		return nil, malformed("it has a space or a #: in a password, write %20 and %23")
	}
	protocol, kind, _ := strings.Cut(scheme, "+")
	a := &address{kind: kind}
	if protocol == "rediss" {
		a.tls = new(tlsFiles)
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if strings.Contains(path+query, "@") {
		return nil, malformed("it has an @ after a / or ?: in a password, write %2F, %3F and %40")
	}
	at := strings.LastIndex(authority, "@")
	err := errors.Join(a.login(authority[:max(0, at)]), a.hosts(authority[at+1:]), a.path(path),
		a.options(query))
	if err == nil && a.tls != nil {
		a.tls.urlHost, _, _ = net.SplitHostPort(a.Addrs[0])
		err = a.tls.load()
	}
	if err != nil {
		return nil, malformed(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return a, nil
}

func malformed(what string) error {
	return fmt.Errorf("%w: the ledger's URL: %s", quota.ErrMalformed, what)
}

// forms lists the forms of a URL.
const forms = "write redis://host:6379/0, redis+sentinel://host:26379/master or " +
	"redis+cluster://host:6379,host:6379, with rediss for TLS"

func (a *address) login(user string) error {
	name, password, _ := strings.Cut(user, ":")
	var err, err2 error
	a.Username, err = url.PathUnescape(name)
	a.Password, err2 = url.PathUnescape(password)
	if err != nil || err2 != nil {
		return errors.New("user or password: a % is written %25")
	}
	if a.Username != "" && a.Password == "" {
		return errors.New("a user has no password; write a password alone as :password@host")
	}
	return nil
}

func (a *address) hosts(list string) error {
	all := strings.Split(list, ",")
	if a.kind == "" && len(all) > 1 {
		return errors.New("it names several hosts: " + forms)
	}
	port := "6379"
	if a.kind == "sentinel" {
		port = "26379"
	}
	for _, host := range all {
		u, err := url.Parse("redis://" + host)
		if err != nil || u.Host != host || host == "" && len(all) > 1 {
			return errors.New("a host is written host:port: " + forms)
		}
		if n, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || n < 1 || n > 65535) {
			return errors.New("a port is a number from 1 to 65535")
		}
		name, port := cmp.Or(u.Hostname(), "localhost"), cmp.Or(u.Port(), port)
		a.Addrs = append(a.Addrs, net.JoinHostPort(name, port))
	}
	return nil
}

// path reads what follows the hosts: the database, preceded by the master's name for Sentinel.
func (a *address) path(path string) error {
	db := path
	if a.kind == "sentinel" {
		master, after, _ := strings.Cut(path, "/")
		name, err := url.PathUnescape(master)
		if err != nil || name == "" {
			return errors.New("it names no master: " + forms)
		}
		a.MasterName, db = name, after
	}
	if db == "" {
		return nil
	}
	n, err := strconv.Atoi(db)
	if err != nil || n < 0 || n > 0 && a.kind == "cluster" {
		return errors.New("the database is a number, and 0 in a cluster")
	}
	a.DB = n
	return nil
}

func (a *address) options(query string) error {
	params, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("its options are written name=value&name=value")
	}
	options := a.knownOptions()
	for name, values := range params {
		o, ok := options[name]
		if !ok { // do not repeat it: it may be part of a password
			maps.DeleteFunc(options, func(_ string, o option) bool { return o.into == nil })
			return fmt.Errorf("it has an unknown option; there are %s",
				strings.Join(slices.Sorted(maps.Keys(options)), ", "))
		}
		switch {
		case o.problem != "":
			err = errors.New(o.problem)
		case len(values) > 1 || values[0] == "":
			err = errors.New("write one value")
		default:
			err = set(o.into, values[0])
		}
		if err != nil {
			return fmt.Errorf("option %s: %w", name, err)
		}
	}
	return nil
}

// set reads an option's value.
func set(into any, value string) (err error) {
	switch into := into.(type) {
	case *string:
		*into = value
	case *time.Duration:
		if *into, err = time.ParseDuration(value); err != nil || *into <= 0 {
			return errors.New("write a duration, such as 2s")
		}
	case *int:
		if *into, err = strconv.Atoi(value); err != nil || *into < 1 {
			return errors.New("write a number of 1 or more")
		}
	}
	return nil
}

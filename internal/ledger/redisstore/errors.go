package redisstore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"quotabudget/internal/quota"
)

// unusable maps the codes of replies that a person must act on to what to do.
var unusable = map[string]string{
	"NOAUTH": "it asks for a password: put one into the ledger's URL (redis://:password@host), " +
		"through the environment",
	"WRONGPASS": "it refused the user or the password in the ledger's URL",
	"READONLY":  "it is a replica: name the primary, or Sentinel with redis+sentinel://",
	"OOM":       "it is out of memory: raise maxmemory, or shorten what else it keeps",
	"MISCONF":   "it cannot write to its disk, and therefore takes no writes",
	"EXECABORT": "it refuses a transaction, as it does when it is out of memory: raise maxmemory, " +
		"or shorten what else it keeps",
	"MOVED": node, "ASK": node, "TRYAGAIN": node, "CLUSTERDOWN": node, "CROSSSLOT": node,
}

const node = "it is a node of a cluster: write redis+cluster:// instead of redis://"

// explain converts an error of the client to one of the ledger. It returns an error of the context
// unchanged.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var pass *passingError
	var foreign *foreignError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &pass):
		return fmt.Errorf("%w: redis: %w", quota.ErrUnreachable, err)
	}
	if errors.As(err, &foreign) {
		return fmt.Errorf("%w: redis: %w", quota.ErrLedgerUnusable, err)
	}
	text, code := err.Error(), codeOfReply(err)
	advice := unusable[code]
	switch sentinels, found := strings.CutPrefix(text, noSentinel); {
	case advice != "":
	case found:
		return sentinelTrouble(sentinels)
	case strings.Contains(text, "Protocol error: unauthenticated"): // a script has many arguments
		advice = unusable["NOAUTH"]
	case strings.Contains(text, "OOM command not allowed"):
		advice = unusable["OOM"]
	case strings.Contains(text, "cluster support disabled"):
		advice = "it is no cluster: write redis:// instead of redis+cluster://"
	case strings.Contains(text, "DB index is out of range"):
		advice = "it has fewer databases: end the ledger's URL with /0"
	case strings.HasPrefix(text, "redis: can't parse"):
		advice = "this is not a Redis server"
	case code == "NOPERM", strings.Contains(text, "The user executing the script"),
		strings.Contains(text, "ACL failure in script"):
		advice = missing(text)
	case strings.Contains(text, "remote error: tls: "):
		advice = "it refused this client's certificate, or wants one: " +
			"name it with ?cert=FILE&key=FILE"
	case isFinalDial(err), strings.HasPrefix(code, "ERR"):
		return fmt.Errorf("%w: redis: %w", quota.ErrLedgerUnusable, err)
	default:
		return fmt.Errorf("%w: redis: %w", quota.ErrUnreachable, err)
	}
	return fmt.Errorf("%w: redis: %s (%w)", quota.ErrLedgerUnusable, advice, err)
}

// noSentinel begins the client's error when no Sentinel names the master, for any reason.
const noSentinel = "redis: all sentinels specified in configuration are unreachable: "

func sentinelTrouble(reason string) error {
	reason = strings.ReplaceAll(reason, "\n", "; ")
	advice := ""
	switch {
	case strings.Contains(reason, "redis: nil"):
		return fmt.Errorf("%w: redis: no Sentinel has the master that the ledger's URL names",
			quota.ErrLedgerUnusable)
	case strings.Contains(reason, "NOAUTH"), strings.Contains(reason, "WRONGPASS"):
		advice = "the Sentinels want a password of their own: ?sentinel_password=PASSWORD " +
			"(and sentinel_user=USER)"
	case strings.Contains(reason, "unknown command"):
		advice = "it is a server and no Sentinel: name the Sentinels, whose port is 26379"
	default:
		return fmt.Errorf("%w: redis: no Sentinel answers: %s", quota.ErrUnreachable, reason)
	}
	return fmt.Errorf("%w: redis: %s (%s)", quota.ErrLedgerUnusable, advice, reason)
}

func isFinalDial(err error) bool {
	var dial *dialError
	return errors.As(err, &dial) && dial.final
}

var namedCommand = regexp.MustCompile(`run the '([^']+)' command`)

// missing names what an ACL does not allow. Redis 6 and 7.0 do not name a command that a script
// calls; doctor tries each.
func missing(text string) string {
	what := "use the keys quota:*"
	if m := namedCommand.FindStringSubmatch(text); m != nil {
		what = "run " + strings.ToUpper(m[1])
	} else if strings.Contains(text, "command or subcommand") {
		what = "run a command of the scripts, which quotactl doctor names"
	}
	return "its ACL does not let this user " + what + ": see User and rights in docs/redis.md"
}

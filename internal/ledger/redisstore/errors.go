package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// unusable maps the codes of replies that a person must act on to advice.
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

// phrases lists texts in errors, with advice.
var phrases = []struct{ text, advice string }{
	{"Protocol error: unauthenticated", unusable["NOAUTH"]}, // a script has many arguments
	{"OOM command not allowed", unusable["OOM"]},
	{"cluster support disabled", "it is no cluster: write redis:// instead of redis+cluster://"},
	{"DB index is out of range", "it has fewer databases: end the ledger's URL with /0"},
	{"redis: can't parse", "this is not a Redis server"},
	{"remote error: tls: ", "it refused this client's certificate, or requires one: name it with " +
		"?cert=FILE&key=FILE"},
}

// explain converts an error of the client to one of the ledger. It returns an error of the context
// unchanged.
func explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	text, code := err.Error(), codeOfReply(err)
	if sentinels, found := strings.CutPrefix(text, noSentinel); found {
		return sentinelTrouble(strings.ReplaceAll(sentinels, "\n", "; "))
	}
	_, isPassing := errors.AsType[passingError](err)
	_, isForeign := errors.AsType[*foreignError](err)
	advice := unusable[code]
	for _, p := range phrases {
		if strings.Contains(text, p.text) {
			advice = cmp.Or(advice, p.advice)
		}
	}
	kind := quota.ErrLedgerUnusable
	switch {
	case isPassing:
		kind, advice = quota.ErrUnreachable, ""
	case isForeign:
		advice = ""
	case advice != "":
	case code == "NOPERM", strings.Contains(text, "The user executing the script"),
		strings.Contains(text, "ACL failure in script"):
		advice = missing(text)
	case !isFinalDial(err) && !strings.HasPrefix(code, "ERR"):
		kind = quota.ErrUnreachable
	}
	if advice == "" {
		return fmt.Errorf("%w: redis: %w", kind, err)
	}
	return fmt.Errorf("%w: redis: %s (%w)", kind, advice, err)
}

// noSentinel begins the client's error when no Sentinel names the master, for any reason.
const noSentinel = "redis: all sentinels specified in configuration are unreachable: "

func sentinelTrouble(reason string) error {
	advice := ""
	switch {
	case strings.Contains(reason, "redis: nil"):
		advice = "no Sentinel has the master that the ledger's URL names"
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

var namedCommand = regexp.MustCompile(`run the '([^']+)' command`)

// missing names what an ACL does not allow. Redis 6 and 7.0 do not name a command that a script
// calls, so doctor tries each.
func missing(text string) string {
	what := "use the keys quota:*"
	if m := namedCommand.FindStringSubmatch(text); m != nil {
		what = "run " + strings.ToUpper(m[1])
	} else if strings.Contains(text, "command or subcommand") {
		what = "run a command of the scripts, which quotactl doctor names"
	}
	return "its ACL does not let this user " + what + ": see User and rights in docs/redis.md"
}

// notExecutedError marks an error that certainly changed nothing.
type notExecutedError struct{ error }

func (e notExecutedError) Unwrap() error      { return e.error }
func (notExecutedError) Is(target error) bool { return target == quota.ErrNotExecuted }

// passingError is a temporary reply that outlasted the patience.
type passingError struct{ notExecutedError }

// explainRead explains the error of a read.
func explainRead(err error) error {
	if err = explain(err); errors.Is(err, quota.ErrUnreachable) {
		return notExecutedError{err}
	}
	return err
}

func isFinalDial(err error) bool {
	dial, is := errors.AsType[*dialError](err)
	return is && dial.final
}

// notSent reports whether there was no connection for the command, but may be one soon.
func notSent(err error) bool {
	if dial, is := errors.AsType[*dialError](err); is {
		return !dial.final
	}
	// An error of HELLO or AUTH: unlike that of a command, the client strips its net.OpError.
	_, handshake := err.(*os.SyscallError)
	return handshake
}

// isReply reports whether the error is a server's reply.
func isReply(err error) bool {
	_, is := errors.AsType[redis.Error](err)
	return is
}

func isNil(err error) bool { return errors.Is(err, redis.Nil) }

// codeOfReply returns the first word of an error reply. Redis 5 and 6 wrap the error of a command
// in a script into another one.
func codeOfReply(err error) string {
	text := strings.TrimPrefix(err.Error(), "-")
	for _, code := range []string{"READONLY", "OOM", "NOPERM", wrongKind} {
		if strings.Contains(text, ": -"+code+" ") || strings.Contains(text, ": "+code+" ") {
			return code
		}
	}
	code, _, _ := strings.Cut(text, " ")
	return code
}

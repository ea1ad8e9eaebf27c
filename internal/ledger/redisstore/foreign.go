package redisstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// wrongKind is the code of the reply for a key of the wrong type. The reply does not name the key.
const wrongKind = "WRONGTYPE"

// foreignError is the reply to a command on a key that another program wrote.
type foreignError struct {
	key, kind string
	err       error
}

func (e *foreignError) Error() string {
	return fmt.Sprintf("the key %s is not a %s: something else wrote it; rename or delete that "+
		"key, then run quotactl ledger check --repair", e.key, e.kind)
}

func (e *foreignError) Unwrap() error { return e.err }

// nameKey adds the key of the wrong type to the error of a command or a script.
func nameKey(ctx context.Context, next redis.ProcessHook, cmd redis.Cmder, err error) error {
	for _, key := range keysOf(cmd) {
		command, kind := kindOf(key)
		probe := redis.NewCmd(ctx, command, key)
		if wrong := next(ctx, probe); wrong != nil && codeOfReply(wrong) == wrongKind {
			return &foreignError{key, kind, err}
		}
	}
	return err
}

// keysOf returns the keys of a command or a script.
func keysOf(cmd redis.Cmder) (keys []string) {
	args := cmd.Args()
	if name := strings.ToUpper(cmd.Name()); name == "EVAL" || name == "EVALSHA" {
		if args = args[2:]; len(args) > 0 {
			n, _ := args[0].(int)
			args = args[1 : 1+min(n, len(args)-1)]
		}
	} else {
		args = args[1:min(2, len(args))]
	}
	for _, arg := range args {
		if key, is := arg.(string); is {
			keys = append(keys, key)
		}
	}
	return keys
}

// kindOf returns the kind of a key of a ledger, and a command that fails on any other.
func kindOf(key string) (command, kind string) {
	_, name, _ := strings.Cut(key, "}:")
	switch last := name[strings.LastIndex(name, ":")+1:]; {
	case name == ":buckets", last == "log", last == "lapsed", last == "notes":
		return "ZCARD", "sorted set"
	case last == "holds", strings.Contains(name, ":sums:"), strings.HasPrefix(name, ":denials:"):
		return "HLEN", "hash"
	}
	return "GET", "string"
}

package redisstore

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// wrongKind is the code of the reply for a key whose type is not the one that a command needs. The
// reply does not name the key.
const wrongKind = "WRONGTYPE"

// foreignKey is a hook that adds the key to a wrongKind reply.
type foreignKey struct{}

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

// ProcessHook sends a command.
func (foreignKey) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil || codeOfReply(err) != wrongKind {
			return err
		}
		for _, key := range keysOf(cmd) {
			command, kind := kindOf(key)
			probe := redis.NewCmd(ctx, command, key)
			if wrong := next(ctx, probe); wrong != nil && codeOfReply(wrong) == wrongKind {
				err = &foreignError{key, kind, err}
				break
			}
		}
		cmd.SetErr(err)
		return err
	}
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

// ProcessPipelineHook sends a pipeline, which consists of commands on one key each.
func (foreignKey) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			wrong, keys := cmd.Err(), keysOf(cmd)
			if wrong != nil && codeOfReply(wrong) == wrongKind && len(keys) > 0 {
				_, kind := kindOf(keys[0])
				err = &foreignError{keys[0], kind, wrong}
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// DialHook leaves connecting as it is.
func (foreignKey) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return next(ctx, network, addr)
	}
}

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// How long a call waits for servers that may soon be back. If a failover takes longer, the call
// returns ErrUnreachable.
const (
	restartPatience  = 500 * time.Millisecond
	failoverPatience = 2 * time.Second
	movingPatience   = 20 * time.Second // for a slot that moves to another node

	firstWait, maxWait = 10 * time.Millisecond, 200 * time.Millisecond

	// reloadEvery is how often a cluster's client reads the map of slots. A failed call also
	// reads it, but a call to a host that vanished fails only after a timeout.
	reloadEvery = 2 * time.Second
	reloadWait  = 100 * time.Millisecond // enough for most of these reads
)

// once is a command that the client does not retry, except to follow the redirections of a cluster.
// A charge whose reply was lost may have been recorded, and a retried release or claim would find
// its own work done.
type once struct{ redis.Cmder }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }

// resend is a hook that repeats a command that the server certainly did not execute but soon may.
// It also adds the key to an error for a key of the wrong type: see nameKey.
type resend struct {
	patience time.Duration
	many     bool                  // other servers can take over
	reload   func(context.Context) // of a cluster: reads the map of slots in the background
}

// ProcessHook sends a command.
func (r *resend) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		began := time.Now()
		for wait := firstWait; ; wait = min(2*wait, maxWait) {
			err := next(ctx, once{cmd})
			if err == nil {
				return nil
			}
			patience, why := r.patienceWith(err)
			if patience == 0 {
				return r.giveUp(ctx, next, cmd, err)
			}
			if r.reload != nil {
				r.reload(ctx)
			}
			switch {
			case time.Since(began)+wait <= patience:
				if ctx.Err() != nil || !quota.Pause(ctx, wait) {
					return ctx.Err()
				}
			case why == "":
				return notExecutedError{err}
			default:
				return passingError{notExecutedError{fmt.Errorf("%s (%w)", why, err)}}
			}
		}
	}
}

// giveUp returns err. After a broken connection another node may serve the slot, so it reloads the
// map of slots for the next call.
func (r *resend) giveUp(ctx context.Context, next redis.ProcessHook, cmd redis.Cmder,
	err error) error {
	if r.reload != nil && !isReply(err) {
		r.reload(ctx)
		quota.Pause(ctx, reloadWait)
	}
	if codeOfReply(err) == wrongKind {
		err = nameKey(ctx, next, cmd, err)
		cmd.SetErr(err)
	}
	return err
}

// ProcessPipelineHook sends a pipeline once. Each of its commands is on one key.
func (*resend) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
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

// DialHook wraps each error of connecting in a dialError. Without it, only the text shows that no
// Sentinel answers.
func (*resend) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		var dial *dialError
		if err != nil && !errors.As(err, &dial) {
			err = &dialError{error: err}
		}
		return conn, err
	}
}

// passing maps the codes of temporary replies, sent before a command is executed, to their
// meanings. Codes that are also in unusable are temporary only with several servers: from a single
// server they mean that the URL is wrong.
var passing = map[string]string{
	"LOADING":    "it is loading its data, and serves when that is done",
	"MASTERDOWN": "it is a replica that has lost its primary",
	"CLUSTERDOWN": "the cluster is down: a master is lost, and no replica has taken its place " +
		"(redis-cli --cluster check HOST:PORT)",
	"READONLY":   "it has become a replica, and the failover is not over",
	"NOREPLICAS": "too few replicas follow it (min-replicas-to-write)",
	"BUSY":       "it is busy with another program's script",
	"TRYAGAIN":   tornSlot, "MOVED": tornSlot, "ASK": tornSlot,
}

const tornSlot = "the cluster has not finished moving this credential's slot; after a resharding " +
	"that was interrupted, run redis-cli --cluster fix HOST:PORT"

// patienceWith returns how long to repeat a command after err, and what the error means: 0 if the
// command may have been executed or repeating does not help.
func (r *resend) patienceWith(err error) (patience time.Duration, why string) {
	if notSent(err) {
		return r.patience, ""
	}
	code := codeOfReply(err)
	switch why = passing[code]; {
	case why == "" || !isReply(err) || unusable[code] != "" && !r.many:
		return 0, ""
	case why == tornSlot:
		return movingPatience, why
	}
	return r.patience, why
}

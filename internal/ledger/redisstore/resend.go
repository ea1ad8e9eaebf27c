package redisstore

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// How long a call waits for servers that are about to serve again. Their own failover may take
// longer; the call then says that the ledger cannot be reached, and the caller decides.
const (
	restartPatience  = 500 * time.Millisecond
	failoverPatience = 2 * time.Second
	movingPatience   = 20 * time.Second // a slot on its way to another node: that ends by itself

	firstWait, longestWait = 10 * time.Millisecond, 200 * time.Millisecond

	// reloadEvery is how often a cluster's client in use asks who serves which slot. It asks at
	// once when a call goes wrong; this is for a host that is lost without a word, where a call
	// goes wrong only when its time is up.
	reloadEvery = 2 * time.Second
	reloadWait  = 100 * time.Millisecond // is enough for most answers to that
)

// once is a command that the client does not send again by itself: a charge whose answer was lost
// may have been recorded, a release or a claim that is sent again finds its own work done. Only a
// node's redirection is followed.
type once struct{ redis.Cmder }

// NoRetry is what the client asks.
func (once) NoRetry() bool { return true }

// resend is a hook that sends a command again while it has surely not been executed, and may soon
// be.
type resend struct {
	patience time.Duration
	many     bool                  // there are other servers that can take over
	reload   func(context.Context) // asks in the background who serves which slot; of a cluster
}

// ProcessHook sends a command.
func (r *resend) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		began := time.Now()
		for wait := firstWait; ; wait = min(2*wait, longestWait) {
			err := next(ctx, once{cmd})
			if err == nil {
				return nil
			}
			patience, why := r.patienceWith(err)
			if patience == 0 {
				return r.giveUp(ctx, err)
			}
			if r.reload != nil {
				r.reload(ctx)
			}
			if time.Since(began)+wait > patience {
				return r.inVain(err, why)
			}
			if ctx.Err() != nil || !quota.Pause(ctx, wait) {
				return ctx.Err()
			}
		}
	}
}

// giveUp returns err. A connection that broke may mean that another node serves the slot now, and
// the caller's next call should find it.
func (r *resend) giveUp(ctx context.Context, err error) error {
	if r.reload != nil && !isReply(err) {
		r.reload(ctx)
		quota.Pause(ctx, reloadWait)
	}
	return err
}

// ProcessPipelineHook leaves a pipeline as it is; the ledger uses none, but a cluster's client does
// for a redirection.
func (*resend) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// DialHook marks each error of connecting as one: that Sentinel does not answer is known by its
// text alone otherwise.
func (*resend) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		var dial *dialError
		if err != nil && !errors.As(err, &dial) {
			err = &dialError{err: err}
		}
		return conn, err
	}
}

// passing are replies that come before a command is executed and that pass by themselves, and what
// they mean.
var passing = map[string]string{
	"LOADING":    "it is loading its data, and serves when that is done",
	"MASTERDOWN": "it is a replica that has lost its primary",
	"CLUSTERDOWN": "the cluster is down: a master is lost, and no replica has taken its place " +
		"(redis-cli --cluster check HOST:PORT)",
	"READONLY":   "it has become a replica, and the failover is not over",
	"NOREPLICAS": "too few replicas follow it (min-replicas-to-write)",
	"BUSY":       "it is busy with a script of somebody else",
	"TRYAGAIN":   tornSlot, "MOVED": tornSlot, "ASK": tornSlot,
}

// moves are those that pass only where there are other servers. To a client of one server they say
// that its URL is wrong.
var moves = map[string]bool{
	"CLUSTERDOWN": true, "READONLY": true, "TRYAGAIN": true, "MOVED": true, "ASK": true,
}

const tornSlot = "the cluster has not finished moving this credential's slot; after a resharding " +
	"that was interrupted, run redis-cli --cluster fix HOST:PORT"

// patienceWith is how long to go on after err, and what the error means for a person; 0 if a
// command may have been executed, or going on does not help.
func (r *resend) patienceWith(err error) (patience time.Duration, why string) {
	if notSent(err) {
		return r.patience, ""
	}
	code := codeOfReply(err)
	switch why = passing[code]; {
	case why == "" || !isReply(err) || moves[code] && !r.many:
		return 0, ""
	case why == tornSlot:
		return movingPatience, why
	}
	return r.patience, why
}

// notSent reports whether there was no connection to send the command on, and may be one soon.
func notSent(err error) bool {
	var dial *dialError
	if errors.As(err, &dial) {
		return !dial.final
	}
	// An error of HELLO or AUTH: the client strips it of the net.OpError that a command's has.
	_, handshake := err.(*os.SyscallError)
	return handshake
}

// isReply reports whether a server has said so.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// codeOfReply is the first word of an error reply, and what Redis 5 and 6 wrap into another when a
// script met it.
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

// inVain is the error after the last attempt.
func (r *resend) inVain(err error, why string) error {
	if why == "" {
		return &unsentError{err}
	}
	return &passingError{why, err}
}

// unsentError is one of a command that was never executed, for there was no connection.
type unsentError struct{ err error }

func (e *unsentError) Error() string        { return e.err.Error() }
func (e *unsentError) Unwrap() error        { return e.err }
func (e *unsentError) Is(target error) bool { return target == quota.ErrNotExecuted }

// passingError is a reply that was expected to pass.
type passingError struct {
	why string
	err error
}

func (e *passingError) Error() string        { return e.why + " (" + e.err.Error() + ")" }
func (e *passingError) Unwrap() error        { return e.err }
func (e *passingError) Is(target error) bool { return target == quota.ErrNotExecuted }

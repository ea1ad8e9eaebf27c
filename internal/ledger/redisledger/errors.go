package redisledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"quotabudget/internal/quota"
)

// unusable are the replies by which a server says that a person must change something.
var unusable = map[string]string{
	"NOAUTH":     "it asks for a password: put one into the ledger's URL (redis://:password@host), through the environment",
	"WRONGPASS":  "it refused the user or the password in the ledger's URL",
	"NOPERM":     "its ACL does not allow this user to run the ledger's scripts on keys quota:*",
	"READONLY":   "it is a replica: name the primary, or Sentinel with redis+sentinel://",
	"OOM":        "it is out of memory: raise maxmemory, or shorten what else it keeps",
	"MISCONF":    "it cannot write to its disk, and therefore takes no writes",
	"QUOTATOTAL": "begin a new bucket or credential",
	"WRONGTYPE":  "a key quota:… holds something else: another program uses the same names",
}

// explain tells what an error of the client means for whoever asked the ledger. A cancelled context stays what it is.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err // the caller's own end
	}
	code, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "-"), " ")
	if hint, ok := unusable[code]; ok {
		return fmt.Errorf("%w: redis: %s (%w)", quota.ErrLedgerUnusable, hint, err)
	}
	if strings.Contains(err.Error(), "-OOM") || strings.Contains(err.Error(), "OOM command not allowed") {
		return fmt.Errorf("%w: redis: %s (%w)", quota.ErrLedgerUnusable, unusable["OOM"], err)
	}
	if strings.Contains(err.Error(), "cluster support disabled") {
		return fmt.Errorf("%w: redis: it is no cluster: write redis:// instead of redis+cluster:// (%w)", quota.ErrLedgerUnusable, err)
	}
	if code == "MOVED" || code == "ASK" {
		return fmt.Errorf("%w: redis: it is a node of a cluster: write redis+cluster:// instead of redis://", quota.ErrLedgerUnusable)
	}
	if strings.HasPrefix(code, "ERR") {
		return fmt.Errorf("%w: redis: %w", quota.ErrLedgerUnusable, err)
	}
	return fmt.Errorf("%w: redis: %w", quota.ErrUnreachable, err)
}

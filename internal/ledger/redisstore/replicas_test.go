package redisstore_test

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// TestWaitReplicas: with wait_replicas, no charge that was allowed is lost when the primary is
// killed and the replica takes its place. A change that no replica confirms is an error.
func TestWaitReplicas(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"killed first", "promoted first"} {
		t.Run(when, func(t *testing.T) {
			primary := redistest.Start(t, redistest.Options{Args: []string{
				"--repl-diskless-sync-delay", "0"}})
			host, port, _ := net.SplitHostPort(primary.Addr)
			replica := redistest.Start(t, redistest.Options{Args: []string{"--replicaof", host, port}})
			r, p := admin(t, replica.Addr), admin(t, primary.Addr)
			eventually(t, "the primary counts the replica", func() bool {
				return strings.Contains(p.Info(t.Context(), "replication").Val(), "state=online")
			})
			l := openEnv(t, primary.URL()+"?wait_replicas=1")
			// on a busy machine, the replica may confirm this too late, but later charges confirm it, too
			if _, err := l.Reserve(t.Context(), reserveOf("default.r", 10, time.Hour)); err != nil {
				isError(t, err, quota.ErrUnreachable, "0 of 1 replicas")
			}
			allowed := 0
			eventually(t, "the replica confirms five charges", func() bool {
				if chargeErr(t, l) == nil {
					allowed++
				}
				return allowed == 5
			})
			if when == "killed first" {
				var all sync.WaitGroup
				results := make(chan int, 8)
				for range 8 {
					all.Go(func() {
						n := 0
						for {
							d, err := l.Charge(t.Context(), charge("k", wide, 1))
							if err != nil || !d.Allowed {
								break
							}
							n++
						}
						results <- n
					})
				}
				eventually(t, "some are charged", func() bool {
					return l.client.ZCard(t.Context(), logOfK).Val() > 10
				})
				primary.Kill()
				all.Wait()
				close(results)
				for n := range results {
					allowed += n
				}
				must(t, r.Do(t.Context(), "REPLICAOF", "NO", "ONE"))
			} else {
				must(t, r.Do(t.Context(), "REPLICAOF", "NO", "ONE"))
				isError(t, chargeErr(t, l), quota.ErrUnreachable, "0 of 1 replicas")
				isError(t, only(l.Release(t.Context(), released("default.r"))), quota.ErrUnreachable,
					"0 of 1 replicas")
				if d, err := l.Charge(t.Context(), one("k", 99)); err != nil || d.Allowed {
					t.Errorf("a denial waits for no replica: %+v, %v", d, err)
				}
				primary.Kill()
			}
			after := openEnv(t, replica.URL())
			if n := len(entriesOf(t, after, "k")); n < allowed {
				t.Errorf("%d charges were allowed, and the replica has %d", allowed, n)
			}
			list, err := after.Reservations(t.Context(), "k", "default")
			if err != nil || len(list) != 1 {
				t.Errorf("reservations: %v, %v", list, err)
			}
		})
	}
}

package redisstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// Six nodes under load from several clients: slots move, then a master is killed. While slots move,
// no call fails. After the cluster's own failover all clients are back at once.
// Nothing is allowed beyond a limit, and the log agrees with the answers, except for the last
// charges of the killed master, which had not reached its replica. Charges with a label are in two
// buckets, or in neither.
func TestClusterUnderLoad(t *testing.T) {
	t.Parallel()
	c := cluster{redistest.StartCluster(t, 3, documentedACL(t))}
	url := "redis+cluster://quota:PASSWORD@" + c.Masters[0].Addr + "," + c.Masters[1].Addr
	l := startLoad(t, c, url)
	l.eventually(t, "small limits are used up", func(r *record) bool {
		return r.denied > 0 || r.limit > small && len(r.answers) > 20
	})

	for _, r := range l.records {
		if r.owner == 0 {
			c.move(t, r.slot, c.Masters[0], c.Masters[1])
		}
	}
	moved := time.Now()
	l.eventually(t, "the load goes on", func(r *record) bool { return r.servedSince(moved) })

	l.replicate(t, c, 2)
	l.eventually(t, "more is charged", func(r *record) bool {
		return r.limit == small || len(r.answers) > r.safe+20
	})
	l.mayFail.Store(true)
	c.Masters[2].Kill()
	killed := time.Now()
	eventually(t, "the replica takes over", func() bool {
		return strings.Contains(c.Replication(t, c.Replicas[2]), "role:master")
	})
	promoted := time.Now()
	l.eventually(t, "every client is back", func(r *record) bool { return r.servedSince(promoted) })
	t.Logf("the failover took %v; all clients were back %v later",
		promoted.Sub(killed), time.Since(promoted))
	l.stop()

	reader := openEnv(t, url)
	for _, r := range l.records {
		r.verify(t, reader, killed)
	}
}

const (
	clients, workers = 2, 3 // workers of each client
	small            = 40   // units of a limit that is soon used up
)

// labelled is the bucket of a label's value, whose braces are no hash tag.
var labelled = quota.LabelBucket("default", "team", "{other}")

// load charges a unit of one credential after the other.
type load struct {
	records []*record
	pause   sync.RWMutex // locked while nothing may be under way
	mayFail atomic.Bool  // calls may say that the ledger cannot be reached
	stop    func()
}

// record holds the answers to the callers of a credential.
type record struct {
	credential string
	slot       int64
	owner      int // number of the master that has the slot at first
	limit      int64

	mu      sync.Mutex
	answers map[string]answered // of all that was allowed, or whose answer was lost, by ID
	denied  int
	safe    int                // how many answers there were when the replica had everything
	served  [clients]time.Time // when a client had its last answer
}

type answered struct {
	nth      int
	lost     bool
	labelled bool
	at       time.Time // stamp
}

func startLoad(t *testing.T, c cluster, url string) *load {
	t.Helper()
	l := &load{}
	for owner := range c.Masters {
		for _, limit := range []int64{small, 1_000_000} {
			l.records = append(l.records, newRecord(t, c, owner, limit))
		}
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	l.stop = sync.OnceFunc(func() { close(done); all.Wait() })
	t.Cleanup(l.stop)
	for client := range clients {
		ledger := openEnv(t, url)
		for worker := range workers {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(client), uint64(worker)))
				for {
					select {
					case <-done:
						return
					case <-time.After(time.Millisecond): // leaves the machine some room
						r := l.records[random.IntN(len(l.records))]
						l.charge(t, r, ledger, client, random.IntN(2) == 0)
					}
				}
			})
		}
	}
	return l
}

// newRecord finds a credential whose slot a master has.
func newRecord(t *testing.T, c cluster, owner int, limit int64) *record {
	t.Helper()
	for n := 0; ; n++ {
		credential := fmt.Sprintf("k%d-%d-%d", owner, limit, n)
		slot, err := c.Admin(c.Masters[0]).ClusterKeySlot(t.Context(), "{"+credential+"}").Result()
		noError(t, err)
		if int64(len(c.Masters))*slot/16384 == int64(owner) {
			return &record{credential: credential, slot: slot, owner: owner, limit: limit,
				answers: make(map[string]answered)}
		}
	}
}

func (l *load) charge(t *testing.T, r *record, ledger *env, client int, keyed bool) {
	charge := one(r.credential, 1)
	charge.Limits = slices.Clone(charge.Limits)
	charge.Limits[0].Units = r.limit
	if keyed {
		charge.Key, charge.NewValues = charge.ID, true
		part := charge.Limits[0]
		part.Bucket, part.Units = labelled, 1_000_000
		charge.Limits = append(charge.Limits, part)
		charge.Costs = append(charge.Costs, quota.Cost{Bucket: labelled, Units: 1})
	}
	l.pause.RLock()
	defer l.pause.RUnlock()
	d, err := ledger.Charge(t.Context(), charge)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && !d.Allowed:
		r.denied++
	case err == nil:
		r.answers[charge.ID] = answered{nth: len(r.answers), at: d.At, labelled: keyed}
	case l.mayFail.Load() && errors.Is(err, quota.ErrUnreachable):
		r.answers[charge.ID] = answered{nth: len(r.answers), lost: true, labelled: keyed}
		return
	default:
		t.Errorf("%s: %v", r.credential, err)
	}
	r.served[client] = time.Now()
}

// replicate waits until a master's replica has all that was charged so far.
func (l *load) replicate(t *testing.T, c cluster, master int) {
	t.Helper()
	l.pause.Lock()
	defer l.pause.Unlock()
	eventually(t, "the replica has it all", func() bool {
		return c.offset(t, c.Masters[master]) == c.offset(t, c.Replicas[master])
	})
	for _, r := range l.records {
		r.safe = len(r.answers)
	}
}

func (l *load) eventually(t *testing.T, what string, condition func(*record) bool) {
	t.Helper()
	for _, r := range l.records {
		eventually(t, what+" ("+r.credential+")", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return condition(r)
		})
	}
}

func (r *record) servedSince(moment time.Time) bool {
	return !slices.ContainsFunc(r.served[:], moment.After)
}

// verify compares the log with the answers.
func (r *record) verify(t *testing.T, l *env, killed time.Time) {
	entries := entriesOf(t, l, r.credential)
	var newestKept time.Time // of those from before the kill
	logged := make(map[string]bool)
	for i, e := range entries {
		if _, ok := r.answers[e.ID]; !ok || logged[e.ID] || e.Total != int64(i+1) {
			t.Errorf("%s: entry %d, %s with the total %d: twice, or no caller knows it",
				r.credential, i, e.ID, e.Total)
		}
		logged[e.ID] = true
		if e.At.Before(killed) {
			newestKept = e.At
		}
	}
	parts, err := l.Entries(t.Context(), quota.Query{Credential: r.credential, Bucket: labelled})
	noError(t, err)
	inBoth := make(map[string]bool)
	for _, e := range parts {
		inBoth[e.ID] = true
	}
	for id := range logged {
		if inBoth[id] != r.answers[id].labelled {
			t.Errorf("%s: %s is in the bucket of the label: %v", r.credential, id, inBoth[id])
		}
		delete(inBoth, id)
	}
	if len(inBoth) > 0 {
		t.Errorf("%s: only in the bucket of the label: %v", r.credential, inBoth)
	}
	allowed, gone := 0, 0
	for id, a := range r.answers {
		if !a.lost {
			allowed++
		}
		switch {
		case a.lost || logged[id]:
		case r.owner == 2 && a.nth >= r.safe && a.at.After(newestKept) &&
			a.at.Before(killed):
			gone++
		default:
			t.Errorf("%s: %s was allowed at %v and is not in the log", r.credential, id, a.at)
		}
	}
	if r.limit == small && (len(entries) != small || allowed != small) {
		t.Errorf("%s: %d allowed, %d in the log, under a limit of %d",
			r.credential, allowed, len(entries), small)
	}
	t.Logf("%s: %d entries, %d denials, %d lost with the master",
		r.credential, len(entries), r.denied, gone)
}

// cluster is six nodes whose slots move.
type cluster struct{ *redistest.Cluster }

// move moves a slot from one master to another, one key at a time, as redis-cli --cluster reshard
// does. It waits until a client has met the slot split between two nodes, and until one was
// redirected to the other node.
func (c cluster) move(t *testing.T, slot int64, from, to *redistest.Server) {
	t.Helper()
	ctx, source, target := t.Context(), c.Admin(from), c.Admin(to)
	for _, s := range []*redis.Client{source, target} {
		noError(t, s.ConfigResetStat(ctx).Err())
	}
	c.setSlot(t, to, slot, "importing", c.ID(t, from))
	c.setSlot(t, from, slot, "migrating", c.ID(t, to))
	replies := func(code string) int {
		count := func(s *redis.Client) int {
			return strings.Count(s.Info(ctx, "errorstats").Val(), "errorstat_"+code)
		}
		return count(source) + count(target)
	}
	host, port, _ := net.SplitHostPort(to.Addr)
	for moved := 0; ; moved++ {
		keys, err := source.ClusterGetKeysInSlot(ctx, int(slot), 1).Result()
		noError(t, err)
		if len(keys) == 0 {
			break
		}
		noError(t, source.Migrate(ctx, host, port, keys[0], 0, 5*time.Second).Err())
		if moved == 0 {
			split := func() bool { return replies("TRYAGAIN") > 0 }
			eventually(t, "a client met a split slot", split)
		}
	}
	eventually(t, "a client was redirected", func() bool { return replies("ASK") > 0 })
	for _, s := range []*redistest.Server{to, from} {
		c.setSlot(t, s, slot, "node", c.ID(t, to))
	}
}

// offset returns the node's position in the stream of its master's writes.
func (c cluster) offset(t *testing.T, s *redistest.Server) string {
	_, after, _ := strings.Cut(c.Replication(t, s), "master_repl_offset:")
	offset, _, _ := strings.Cut(after, "\r\n")
	return offset
}

func (c cluster) setSlot(t *testing.T, s *redistest.Server, slot int64, args ...any) {
	t.Helper()
	do(t, c.Admin(s), append([]any{"cluster", "setslot", slot}, args...)...)
}

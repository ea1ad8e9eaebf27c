package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Facts describes the server of a ledger. A field that the user may not read is zero, and Hidden
// contains its command.
type Facts struct {
	Version, Role string
	Cluster       string // "ok" or "fail"; "" for a server outside a cluster
	Address       string // first host of the URL
	TLS, Password bool   // whether our connection uses them

	Policy            string // maxmemory-policy
	MaxMemory, Memory int64  // bytes; MaxMemory is 0 for no limit
	Evicted           int64  // keys evicted since the server started

	AOF         bool
	Fsync       string // appendfsync: always, everysec or no
	Unsaved     int64  // changes since the last snapshot
	WriteError  string // why it refuses writes or soon will
	Replicas    int64
	MinReplicas int64 // min-replicas-to-write

	Clock  time.Duration // the server's clock is this far ahead of ours
	Trip   time.Duration // the shortest of five round trips
	Lacks  []string      // required commands that the user may not call
	Hidden []string      // optional commands that the user may not call

	Masters []Facts // one for each master of a cluster
}

// Rights are the commands that a ledger's user needs on the keys quota:*. In a cluster the user
// also needs CLUSTER|SLOTS and ASKING.
var Rights = strings.Fields("EVAL EVALSHA MULTI EXEC TIME INFO GET MGET SET DEL PTTL PEXPIRE " +
	"PEXPIREAT HSET HINCRBY HDEL HLEN HGETALL HSCAN ZADD ZREM ZCARD ZSCORE ZRANGE ZREVRANGE " +
	"ZRANGEBYSCORE ZREVRANGEBYSCORE ZREMRANGEBYSCORE SCAN")

// Examine reads the facts of the server that keeps the ledger of a credential. Unlike Open it
// accepts any server that answers. It writes one key, which expires at once.
func Examine(ctx context.Context, ledgerURL, credential string) (Facts, error) {
	a, err := parseURL(ledgerURL)
	if err != nil {
		return Facts{}, err
	}
	client := connect(a)
	defer client.Close()
	ctx, done := context.WithTimeout(ctx, connectTimeout)
	defer done()
	f := Facts{Address: a.Addrs[0], TLS: a.tls != nil, Password: a.Password != ""}
	if err := f.clock(ctx, client); err != nil && !isRefused(err) {
		return f, explain(err)
	}
	f.info(ctx, client)
	f.settings(ctx, client)
	if a.kind == "cluster" {
		f.cluster(ctx, client)
	}
	f.rights(ctx, client, credential)
	return f, nil
}

// clock compares the clocks by the fastest of five replies, which is the most exact.
func (f *Facts) clock(ctx context.Context, client redis.UniversalClient) error {
	for range 5 {
		sent := time.Now()
		theirs, err := client.Time(ctx).Result()
		if err != nil {
			return err
		}
		if trip := time.Since(sent); f.Trip == 0 || trip < f.Trip {
			f.Trip, f.Clock = trip, theirs.Sub(sent.Add(trip/2))
		}
	}
	return nil
}

func (f *Facts) info(ctx context.Context, client redis.UniversalClient) {
	text, err := client.Info(ctx).Result()
	if err != nil {
		f.Hidden = append(f.Hidden, "INFO")
		return
	}
	info := parseInfo(text)
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(info[name], 10, 64)
		return n
	}
	f.Version, f.Role, f.Policy = info["redis_version"], info["role"], info["maxmemory_policy"]
	f.MaxMemory, f.Memory = number("maxmemory"), number("used_memory")
	f.Evicted = number("evicted_keys")
	f.AOF, f.Unsaved = info["aof_enabled"] == "1", number("rdb_changes_since_last_save")
	f.Replicas = number("connected_slaves")
	switch {
	case info["aof_enabled"] == "1" && info["aof_last_write_status"] == "err":
		f.WriteError = "it could not write its append-only file"
	case info["rdb_last_bgsave_status"] == "err":
		f.WriteError = "its last snapshot failed"
	}
}

// settings reads what INFO does not contain.
func (f *Facts) settings(ctx context.Context, client redis.UniversalClient) {
	get := func(name string) string {
		values, err := client.ConfigGet(ctx, name).Result()
		if err != nil && !slices.Contains(f.Hidden, "CONFIG|GET") {
			f.Hidden = append(f.Hidden, "CONFIG|GET")
		}
		return values[name]
	}
	f.Fsync = get("appendfsync")
	f.MinReplicas, _ = strconv.ParseInt(get("min-replicas-to-write"), 10, 64)
}

func (f *Facts) cluster(ctx context.Context, client redis.UniversalClient) {
	text, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		f.Hidden = append(f.Hidden, "CLUSTER|INFO")
		return
	}
	f.Cluster = parseInfo(text)["cluster_state"]
	nodes, ok := client.(*redis.ClusterClient)
	if !ok {
		return
	}
	var mu sync.Mutex
	// The cluster's state shows a master that does not answer.
	_ = nodes.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		facts := Facts{Address: node.Options().Addr, TLS: f.TLS, Password: f.Password, Cluster: "ok"}
		if facts.clock(ctx, node) != nil {
			return nil
		}
		facts.info(ctx, node)
		facts.settings(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		f.Masters = append(f.Masters, facts)
		return nil
	})
	slices.SortFunc(f.Masters, func(a, b Facts) int { return cmp.Compare(a.Address, b.Address) })
}

// probe calls the commands for hashes and sorted sets on a string that it creates. Each call fails,
// because of the key's type or because the user may not call it. It returns the names of the
// commands that the user may not call.
const probe = `
local key, lacks = KEYS[1], {}
local function try(name, ...)
  local r = redis.pcall(name, ...)
  local err = type(r) == 'table' and r.err
  if err and (string.find(err, 'NOPERM') or string.find(err, 'permission')
      or string.find(err, "can't run") or string.find(err, 'ACL')) then
    lacks[#lacks + 1] = name
    return false
  end
  return true
end
if not try('SET', key, '1', 'PX', '1000') then return lacks end
try('GET', key) try('MGET', key) try('PTTL', key) try('TIME')
try('HSET', key, 'f', 'v') try('HINCRBY', key, 'n', 1)
try('HDEL', key, 'f') try('HLEN', key) try('HGETALL', key)
try('HSCAN', key, 0)
try('ZADD', key, 1, 'm') try('ZREM', key, 'm') try('ZCARD', key)
try('ZSCORE', key, 'm') try('ZRANGE', key, 0, 1) try('ZREVRANGE', key, 0, 1)
try('ZRANGEBYSCORE', key, 0, 1) try('ZREVRANGEBYSCORE', key, 1, 0)
try('ZREMRANGEBYSCORE', key, 0, 1) try('SCAN', 0)
try('PEXPIRE', key, 1000) try('PEXPIREAT', key, 1) try('DEL', key)
return lacks`

// rights finds the required commands that the user may not call.
func (f *Facts) rights(ctx context.Context, client redis.UniversalClient, credential string) {
	key := credentialKey(credential, "rights")
	lacks, err := client.Eval(ctx, probe, []string{key}).StringSlice()
	switch {
	case isRefused(err):
		lacks = []string{"EVAL"}
	case err != nil: // it accepts no writes, which other findings report
		return
	}
	if isRefused(client.EvalSha(ctx, "none", []string{key}).Err()) {
		lacks = append(lacks, "EVALSHA")
	}
	_, err = client.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.PTTL(ctx, key).Err() })
	for _, name := range []string{"MULTI", "EXEC"} {
		if err != nil && strings.Contains(err.Error(), "run the '"+strings.ToLower(name)) {
			lacks = append(lacks, name)
		}
	}
	if slices.Contains(f.Hidden, "INFO") {
		lacks = append(lacks, "INFO")
	}
	f.Lacks = lacks
}

// isRefused reports whether the server refused a command because the user may not call it.
func isRefused(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOPERM") }

// RightsLine returns the command that gives a user all rights that a ledger needs.
func RightsLine(cluster bool) string {
	line := fmt.Sprintf("ACL SETUSER quota on >PASSWORD ~quota:* +%s", strings.Join(Rights, " +"))
	if cluster {
		line += " +CLUSTER|SLOTS +ASKING"
	}
	return line
}

package doctor

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/ledger/redisstore"
)

const (
	slow      = 20 * time.Millisecond // for a round trip: a charge takes one, and a page waits for it
	clockSlip = 2 * time.Second       // between this host and the server
)

// redis adds the faults of a server.
func (e *exam) redis(f redisstore.Facts) {
	fact := fmt.Sprintf("ledger: Redis %s on %s answers in %s", f.Version, f.Address,
		f.Trip.Round(10*time.Microsecond))
	switch {
	case f.AOF && f.Fsync == "always":
		fact += "; a crash loses no charges"
	case f.AOF && f.Fsync == "everysec":
		fact += "; a crash of the machine forgets up to two seconds of charges"
	}
	if len(f.Hidden) > 0 {
		fact += "; not checked, because the user lacks the rights: " + strings.Join(f.Hidden, ", ")
	}
	e.Facts = append(e.Facts, fact)
	major, _, _ := strings.Cut(f.Version, ".")
	n, err := strconv.Atoi(major)
	host, _, _ := net.SplitHostPort(f.Address)
	rights := redisstore.RightsLine(f.Cluster != "")
	e.judge("redis "+f.Address, []check{
		{err == nil && n < 5, Error, "redis-version", "Redis " + f.Version + " is too old",
			"its scripts cannot read the time and then write", "install Redis 5 or newer"},
		{f.Role == "slave" && f.Cluster == "", Error, "redis-role", "it is a replica",
			"a replica records nothing", "name the primary in the ledger's URL, or its Sentinels: " +
				"redis+sentinel://host:26379/master"},
		{f.Cluster != "" && f.Cluster != "ok", Error, "redis-cluster", "the cluster's state is " +
			f.Cluster + ": no server has some of the slots", "credentials in these slots can spend " +
			"nothing", "redis-cli --cluster check " + f.Address},
		{len(f.Lacks) > 0, Error, "redis-rights", "its ACL does not let this user call " +
			strings.Join(f.Lacks, ", "), "operations that need these commands fail", rights},
		{!local(host) && !f.Password, Warning, "redis-access", "no password is needed",
			"anyone who can connect can change the spending", rights},
		{!local(host) && f.Password && !f.TLS, Warning, "redis-access", "the password crosses " +
			"the network in the clear", "anyone who can read the traffic can change the spending",
			"use TLS: rediss:// (docs/redis.md)"},
	})
	if len(f.Masters) == 0 {
		e.redisNode(f)
	}
	for _, node := range f.Masters { // each has its own settings
		e.redisNode(node)
	}
}

// redisNode adds the faults of one server, alone or in a cluster.
func (e *exam) redisNode(f redisstore.Facts) {
	const keep = "redis-cli config set maxmemory-policy noeviction; and in redis.conf"
	const more = "raise maxmemory, or move other data to another server"
	evicts, limited := f.Policy != "" && f.Policy != "noeviction", f.MaxMemory > 0
	full := limited && f.Memory >= f.MaxMemory
	side := "behind"
	if f.Clock > 0 {
		side = "ahead of"
	}
	e.judge("redis "+f.Address, []check{
		{f.WriteError != "", Error, "redis-writing", f.WriteError, "until that is fixed, Redis " +
			"refuses to write, or loses unsaved charges in a crash",
			"look at its log and its disk; then: redis-cli bgsave"},
		{evicts && limited, Error, "redis-eviction", "it evicts keys when memory is short " +
			"(maxmemory-policy " + f.Policy + ")", "charges would be lost, so the ledger is not " +
			"opened there", keep},
		{evicts && !limited, Warning, "redis-eviction", "it would evict keys if maxmemory were set " +
			"(maxmemory-policy " + f.Policy + ")", "charges would be lost", keep},
		{f.Evicted > 0, Warning, "redis-evicted", fmt.Sprintf("it has evicted %d keys since it "+
			"started", f.Evicted), "if keys of the ledger were among them, spent units can be " +
			"spent again", "compare quotactl status with what the upstream counts, and book the " +
			"rest: quotactl adjust; then: redis-cli config resetstat"},
		{full, Error, "redis-memory", "all of its maxmemory is used", "every charge is denied", more},
		{limited && !full && f.Memory > f.MaxMemory/100*80, Warning, "redis-memory", fmt.Sprintf(
			"%d %% of its maxmemory is used", f.Memory*100/max(f.MaxMemory, 1)),
			"once it is full, every charge is denied", more},
		{f.Version != "" && !f.AOF, Warning, "redis-persistence", fmt.Sprintf(
			"it keeps no append-only file; %d changes are in no snapshot", f.Unsaved),
			"a crash loses the charges since the last snapshot, and their units can be spent again",
			"redis-cli config set appendonly yes; and in redis.conf"},
		{f.AOF && f.Fsync == "no", Warning, "redis-fsync",
			"it lets the system sync the append-only file (appendfsync no)",
			"a crash of the machine forgets up to half a minute of charges",
			"redis-cli config set appendfsync everysec; and in redis.conf"},
		{f.Replicas > 0 && f.MinReplicas == 0, Warning, "redis-replicas", fmt.Sprintf(
			"it has %d replicas and accepts writes without them (min-replicas-to-write 0)",
			f.Replicas), "cut off from them it accepts charges that a failover forgets",
			"redis-cli config set min-replicas-to-write 1; and in redis.conf"},
		{f.Clock.Abs() > clockSlip, Warning, "clock", fmt.Sprintf("its clock is %s %s this host's",
			f.Clock.Abs().Round(time.Second), side),
			"calendar windows end by its clock, and the upstream's by the true time",
			"find out which is wrong (timedatectl), and set it by NTP"},
		{f.Trip > slow, Warning, "ledger-speed", fmt.Sprintf("it answers in %s at best",
			f.Trip.Round(time.Millisecond)), "every charge waits for one answer",
			"use a server that is nearer"},
	})
}

// local reports whether a host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

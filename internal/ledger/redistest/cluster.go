package redistest

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cluster is a Redis Cluster of masters with one replica each.
type Cluster struct {
	Masters, Replicas []*Server

	admin map[*Server]*redis.Client
}

// StartCluster runs a cluster until the test ends. A replica takes over from a master that is lost
// for 2 s.
func StartCluster(t testing.TB, masters int, setup ...[]any) *Cluster {
	t.Helper()
	c := &Cluster{admin: make(map[*Server]*redis.Client)}
	for range masters {
		c.Masters = append(c.Masters, c.start(t, setup))
		c.Replicas = append(c.Replicas, c.start(t, setup))
	}
	ctx := t.Context()
	for i, m := range c.Masters {
		c.do(t, m, "cluster", "set-config-epoch", i+1)
		first, last := 16384*i/masters, 16384*(i+1)/masters-1
		check(t, c.admin[m].ClusterAddSlotsRange(ctx, first, last).Err())
	}
	all := slices.Concat(c.Masters, c.Replicas)
	for i, s := range all {
		for _, other := range all[:i] {
			host, port, _ := net.SplitHostPort(other.Addr)
			c.do(t, s, "cluster", "meet", host, port)
		}
	}
	c.await(t, "all nodes know each other", func() bool {
		return every(all, func(s *Server) bool {
			return strings.Count(c.admin[s].ClusterNodes(ctx).Val(), " connected") == len(all)
		})
	})
	for i, r := range c.Replicas {
		c.do(t, r, "cluster", "replicate", c.ID(t, c.Masters[i]))
	}
	c.await(t, "the cluster is up, and each master has a replica", func() bool {
		matches := func(s *Server) bool {
			return strings.Contains(c.admin[s].ClusterInfo(ctx).Val(), "cluster_state:ok")
		}
		follows := func(r *Server) bool {
			return strings.Contains(c.Replication(t, r), "master_link_status:up")
		}
		return every(all, matches) && every(c.Replicas, follows)
	})
	return c
}

func (c *Cluster) start(t testing.TB, setup [][]any) *Server {
	t.Helper()
	s := Start(t, Options{Node: true, Args: []string{
		"--cluster-node-timeout", "2000", "--cluster-replica-validity-factor", "0",
		"--repl-diskless-sync-delay", "0",
	}})
	c.admin[s] = redis.NewClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { c.admin[s].Close() })
	for _, command := range setup {
		c.do(t, s, command...)
	}
	return s
}

func every(servers []*Server, matches func(*Server) bool) bool {
	return !slices.ContainsFunc(servers, func(s *Server) bool { return !matches(s) })
}

// Admin returns a client of one node, with all rights.
func (c *Cluster) Admin(s *Server) *redis.Client { return c.admin[s] }

// ID returns the node's name in its cluster.
func (c *Cluster) ID(t testing.TB, s *Server) string {
	t.Helper()
	id, err := c.admin[s].ClusterMyID(t.Context()).Result()
	check(t, err)
	return id
}

// Replication returns the replication section of a node's INFO.
func (c *Cluster) Replication(t testing.TB, s *Server) string {
	return c.admin[s].Info(t.Context(), "replication").Val()
}

func (c *Cluster) do(t testing.TB, s *Server, args ...any) {
	t.Helper()
	if err := c.admin[s].Do(context.WithoutCancel(t.Context()), args...).Err(); err != nil {
		t.Fatal(args, err)
	}
}

func (c *Cluster) await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in 60 s: %s", what)
		}
	}
}

package config

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/grammar"
	"quotabudget/internal/limit"
	"quotabudget/internal/quota"
)

// file is the content of quota.yaml; quota.schema.json has its rules.
type file struct {
	Ledger, Catalog string
	Costs           filePrices
	Upstreams       map[string]Upstream
	Credentials     []fileCredential
	YouTube         Upstream
	Ingest          *fileIngest
	Jobs            []fileJob
	Serve           *fileServe
	Notify          *fileNotify
}

// filePrices is {file, profile}, or only the file.
type filePrices struct{ File, Profile string }

func (p *filePrices) UnmarshalYAML(n *yaml.Node) error {
	type plain filePrices
	return grammar.DecodeEither(n, &p.File, (*plain)(p))
}

type fileCredential struct {
	Credential      `yaml:",inline"`
	Mode            string
	Limits          []fileLimit
	WhenUnreachable struct {
		Open   []string
		AtMost int64 `yaml:"at_most"`
	} `yaml:"when_unreachable"`
	Allow []fileAllowance
}

type fileAllowance struct {
	quota.Allowance `yaml:",inline"`
	Label           string
}

type fileLimit struct {
	Bucket, Window, Timezone, Across, Mode, Per string
	Units, Headroom                             int64
	Parts                                       map[string]int64
}

// UnmarshalYAML reads none, even, or {curve: even, slack: 10%} with even or 24 weights.
func (p *Pace) UnmarshalYAML(n *yaml.Node) error {
	*p = Pace{Slack: DefaultSlack}
	if n.Kind == yaml.ScalarNode {
		p.none = n.Value == paceNone
		return nil
	}
	var keys struct {
		Curve yaml.Node
		Slack string
	}
	err := n.Decode(&keys)
	if keys.Curve.Kind == yaml.SequenceNode && err == nil {
		err = keys.Curve.Decode(&p.Curve)
	}
	if percent, failed := strconv.ParseInt(strings.TrimSuffix(keys.Slack, "%"), 10,
		64); failed == nil {
		p.Slack = percent
	}
	return err
}

type fileIngest struct {
	Ingest   `yaml:",inline"`
	Daemon   `yaml:",inline"`
	Regions  []string
	Timezone string
	Stagger  string
	Jobs     []fileSweep

	Weights, Priorities, Floors map[string]int64
}

type fileSweep struct {
	Name, Schedule, Timezone string
	Regions                  []string
	Pages                    int
}

type fileJob struct {
	OwnJob   `yaml:",inline"`
	Timezone string
	Overlap  string
	Pace     *Pace
	Cost     grammar.List[fileCost]
	Max      fileCost
}

// UnmarshalYAML reads a job over the defaults.
func (j *fileJob) UnmarshalYAML(n *yaml.Node) error {
	type plain fileJob
	p := plain{OwnJob: OwnJob{Request: Request{Method: "GET"}, Timeout: time.Hour,
		Settle: Settlements()[0], Weight: 1}}
	err := n.Decode(&p)
	*j = fileJob(p)
	return err
}

// fileCost is {bucket, units}, {method, count} or {learned, bucket}. The ceiling of a job may be a
// number of units.
type fileCost struct {
	Bucket, Method string
	Units, Count   int64
	Learned        bool
}

func (c *fileCost) UnmarshalYAML(n *yaml.Node) error {
	type plain fileCost
	return grammar.DecodeEither(n, &c.Units, (*plain)(c))
}

type fileServe struct {
	Serve           `yaml:",inline"`
	Store           string
	WhenUnreachable string   `yaml:"when_unreachable"`
	TrustedProxies  []string `yaml:"trusted_proxies"`
	Keys            []struct{ Name, Organisation, Tier, Hash string }
	Limits          []fileRequestLimit
	Policies        []fileRequestLimit
}

type fileRequestLimit struct {
	limit.Policy    `yaml:",inline"`
	Per             limit.By
	Route           grammar.List[string]
	Requests, Cost  int64
	Tiers           map[string]int64
	CountDenied     bool `yaml:"count_denied"`
	Observe         bool
	WhenUnreachable string `yaml:"when_unreachable"`
}

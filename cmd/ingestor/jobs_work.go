package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/daemon"
	"quotabudget/internal/job"
	"quotabudget/internal/proxy"
	"quotabudget/internal/quota"
	"quotabudget/internal/untrusted"
)

// holdTime is how long a hold outlives a crashed daemon.
const holdTime = 10 * time.Minute

// jobLanes returns the lanes of the configured jobs, with the work of their ticks. Without toRun,
// they cannot run, and need no right to run as another user.
func (s *deps) jobLanes(toRun bool) (lanes []daemon.Lane, err error) {
	for _, j := range s.cfg.Jobs {
		if j.Elsewhere != "" {
			continue
		}
		work, err := s.command(j)
		if err == nil && toRun {
			work.Job.Command, err = s.jobCommand(j)
		}
		if err != nil {
			return nil, &cli.Coded{Code: cli.ExitConfig, Err: fmt.Errorf("job %s: %w", j.Name, err)}
		}
		lane, err := j.Lane(work.Job.Budget)
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, daemon.Lane{Lane: lane, Work: work})
	}
	return lanes, nil
}

// command returns the work of a job's ticks.
func (s *deps) command(j config.OwnJob) (*daemon.Command, error) {
	cred, err := s.cfg.Credential(j.Credential)
	if err != nil {
		return nil, err
	}
	table := s.cfg.Table(cred)
	c := &daemon.Command{
		Job: job.Job{
			Budget: j.Budget(cred.Budget(s.ledger, table, s.log)),
			Claims: s.ledger, Buckets: table.BucketNames(), Call: quota.Call{Method: j.Cost.Method},
			TTL: holdTime, Settle: job.Settlement(j.Settle), Timeout: j.Timeout, Log: s.log,
			Max: job.Ceiling{Units: j.Max.Units, Bucket: j.Max.Bucket},
		},
		Day: table.DayOf(j.Cost.Costs[0].Bucket), Jitter: j.Jitter, CatchUp: j.CatchUp,
		Queue: j.Queue, Retry: j.Retry, Learn: j.Cost.Learned, Output: s.log,
	}
	if c.Job.Settle == job.SettleProxy {
		c.Job.Prepare = cli.JobProxy(s.cfg, []config.Credential{cred}, s.ledger, s.log)
	}
	return c, nil
}

func (s *deps) jobCommand(j config.OwnJob) (job.Command, error) {
	c := job.Command{Args: j.Command, Dir: j.Directory, Group: true,
		Env: append(s.cfg.WithoutKeys(os.Environ()), j.Variables()...)}
	if j.Request.URL != "" {
		self, err := os.Executable()
		if err != nil {
			return c, err
		}
		request, err := json.Marshal(j.Request)
		if err != nil {
			return c, err
		}
		c.Args = []string{self, requestName}
		c.Env = append(c.Env, requestVariable+"="+string(request))
	}
	if j.User == "" {
		return c, nil
	}
	account, err := user.Lookup(j.User)
	if err != nil {
		return c, err
	}
	if c.User, err = credentialOf(account); err != nil {
		return c, err
	}
	c.Env = append(c.Env, "HOME="+account.HomeDir, "USER="+account.Username,
		"LOGNAME="+account.Username)
	c.Env = append(c.Env, j.Variables()...) // the job's variables override the others
	return c, nil
}

func credentialOf(account *user.User) (*syscall.Credential, error) {
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 && int(uid) != os.Geteuid() {
		return nil, fmt.Errorf("to run as %s the daemon must run as root", account.Username)
	}
	c := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: os.Geteuid() != 0}
	groups, err := account.GroupIds()
	if err != nil {
		return nil, err
	}
	for _, text := range groups {
		if group, err := strconv.ParseUint(text, 10, 32); err == nil {
			c.Groups = append(c.Groups, uint32(group))
		}
	}
	return c, nil
}

// watchCalls reads the end of calls that proxies on this host have left open, until ctx ends.
func (s *deps) watchCalls(ctx context.Context) {
	var p proxy.Proxy
	for _, cred := range s.cfg.Credentials {
		_, err := cred.APIKey.Key()
		if err != nil || !s.cfg.Table(cred).Async() {
			continue
		}
		up, err := cli.Upstream(s.cfg, cred, s.ledger, s.log)
		if err != nil {
			s.log.Warn("cannot read the end of open calls", "credential", cred.Name, "error", err)
			continue
		}
		p.Upstreams = append(p.Upstreams, up)
	}
	p.Watch(ctx)
}

// A job with a url runs as this program, so that all jobs run in the same way. The request is in a
// variable, because other users can read arguments.
const (
	requestName     = "request"
	requestVariable = "INGESTOR_REQUEST"
	maxAnswer       = 64 << 10 // bytes of a response that are printed
)

func requestCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: requestName, Short: "Send the request of a job", Hidden: true, Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			var r config.Request
			if err := json.Unmarshal([]byte(a.Getenv(requestVariable)), &r); err != nil {
				return cli.Usagef("%s: %w", requestVariable, err)
			}
			return a.request(c.Context(), r)
		},
	}
}

// request sends a request and writes the response. It returns an error unless the status is in
// r.Success or, if that is empty, is 2xx. A redirect is not followed.
func (a *app) request(ctx context.Context, r config.Request) error {
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "ingestor")
	if json.Valid([]byte(r.Body)) {
		request.Header.Set("Content-Type", "application/json")
	}
	host := request.URL.Host
	response, body, err := untrusted.Fetch(http.Client{}, request, maxAnswer)
	if response == nil {
		return &cli.Coded{Code: cli.ExitUnavailable, Err: fmt.Errorf("%s: %w", host, err)}
	}
	if _, failed := a.Stdout.Write(body); err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if slices.Contains(r.Success, response.StatusCode) ||
		len(r.Success) == 0 && response.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("%s responds with %s", host, response.Status)
	if response.StatusCode/100 == 3 {
		err = cli.Hint(err, "write the redirect's target, or list the status in success:")
	}
	return err
}

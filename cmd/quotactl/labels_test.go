package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"quotabudget/client"
	"quotabudget/internal/report"
)

const teamTokens = `ci   ci-token-of-24-characters    charge label=team=ci
web  web-token-of-24-characters   charge label=team=web
docs docs-token-of-24-characters  charge label=team=docs
new  new-token-of-24-characters   charge label=team=docs method=youtube.videos.* most=default=3
`

// floor is a shell with a server and a proxy used by three teams.
type floor struct {
	*shell
	server, proxy string
}

func newFloor(s *shell) floor {
	must(s, os.WriteFile(filepath.Join(s.dir, "tokens"), []byte(teamTokens), 0o600))
	s.env = append(s.env, "YK=ykey")
	server := process(s.T, s.env, "serve", "--listen", "127.0.0.1:0")
	proxy := process(s.T, s.env, "proxy", "--listen", "127.0.0.1:0", "--token-file",
		filepath.Join(s.dir, "tokens"))
	return floor{s, strings.TrimRight(server, "/"), strings.TrimRight(proxy, "/")}
}

func (f floor) client(name string) *client.Client {
	return &client.Client{URL: f.server, Token: name + "-token-of-24-characters"}
}

// viaProxy sends a request of one unit, and returns its status.
func (f floor) viaProxy(name, path string) int {
	r, err := http.NewRequestWithContext(f.Context(), http.MethodGet, f.proxy+path, nil)
	must(f, err)
	r.Header.Set("Authorization", "Bearer "+name+"-token-of-24-characters")
	resp, err := http.DefaultClient.Do(r)
	must(f, err)
	resp.Body.Close()
	return resp.StatusCode
}

// taken returns the used and held units of the bucket, and of each team.
func (f floor) taken() map[string]int64 {
	f.Helper()
	_, out := f.run("status", "-o", "json")
	var status report.Status
	must(f, json.Unmarshal([]byte(out), &status))
	taken := map[string]int64{}
	for _, b := range status.Credentials[0].Buckets {
		name := "all"
		if b.Value != nil {
			name = *b.Value
		}
		taken[name] = b.Limits[0].Used + b.Held
	}
	return taken
}

// lateCharged matches the output when team late's units are charged and nothing is held.
var lateCharged = regexp.MustCompile(`"value":"late","held":0,.*?"used":6,`)

const pageOfRegions = "/youtube/v3/i18nRegions?part=snippet"

// crowd makes a hundred callers of three teams request more than there is, through every interface.
func (f floor) crowd() {
	var callers sync.WaitGroup
	for _, team := range []string{"ci", "web", "docs"} {
		for i := range 12 {
			callers.Go(func() {
				cost := client.Cost{Units: 1, Labels: map[string]string{"team": "other"}} // the token wins
				_, err := f.client(team).Charge(f.Context(), cost, "")
				f.deniedOnly(err)
				held, err := f.client(team).Hold(f.Context(), client.Cost{Units: 3}, 1e11, "")
				f.deniedOnly(err)
				if err == nil {
					_, err = f.client(team).Settle(f.Context(), held.ID, map[string]int64{"default": int64(i % 3)})
					f.deniedOnly(err)
				}
			})
			callers.Go(func() {
				if status := f.viaProxy(team, pageOfRegions); status != 200 && status != 429 {
					f.Errorf("the proxy answered %d", status)
				}
			})
			callers.Go(func() {
				args := []string{"spend", "--units", "1", "--label", "team=" + team}
				if i%2 == 0 {
					args = []string{"exec", "--units", "1", "--label", "team=" + team, "--", "true"}
				}
				if code, out := f.run(args...); code != 0 && code != 75 {
					f.Errorf("%q: %d: %s", args, code, out)
				}
			})
		}
	}
	callers.Wait()
}

func (f floor) deniedOnly(err error) {
	if _, denied := errors.AsType[*client.DeniedError](err); err != nil && !denied {
		f.Error(err)
	}
}

// fill takes one unit at a time for a team, until it is denied.
func (f floor) fill(team string) {
	for err := error(nil); err == nil; {
		_, err = f.client(team).Charge(f.Context(), client.Cost{Units: 1}, "")
		f.deniedOnly(err)
	}
}

// TestTeams: callers of three teams, through any interface, get exactly their parts or, if the
// whole limit is smaller, exactly the whole.
func TestTeams(t *testing.T) {
	youtube := process(t, nil, "standin", "youtube", "--listen", "127.0.0.1:0", "--key", "ykey")
	for whole, name := range map[int64]string{60: "parts", 30: "whole"} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, fmt.Sprintf(`
credentials:
  - name: y1
    api_key: {env: YK}
    limits:
      - {bucket: default, units: %d, window: 24h}
      - {bucket: default, per: label:team, units: 9, parts: {ci: 20, web: 15}, window: 24h}
upstreams: {youtube: {endpoint: %q}}
serve: {token_file: tokens}
`, whole, youtube), func(s *shell) {
				f := newFloor(s)
				f.crowd()
				for _, team := range []string{"ci", "web", "docs"} {
					f.fill(team)
				}
				got := f.taken()
				if sum := got["ci"] + got["web"] + got["docs"]; got["all"] != sum || sum != min(44, whole) {
					t.Errorf("taken: %v", got)
				}
				if got["ci"] > 20 || got["web"] > 15 || got["docs"] > 9 || got["other"] != 0 {
					t.Errorf("taken: %v", got)
				}
				if whole == 60 {
					f.alone()
				}
			})
		})
	}
}

// alone tests the cases without concurrency: a key is for one team, a token allows only some calls,
// and a killed holder's units lapse into a charge of its team.
func (f floor) alone() {
	cost := client.Cost{Units: 1, Labels: map[string]string{"team": "a"}}
	_, err := f.client("ci").Charge(f.Context(), client.Cost{Units: 1}, "k")
	f.deniedOnly(err)
	f.want(0, "charged", "spend", "--units", "1", "--label", "team=late", "--id", "k")
	for _, c := range []struct {
		token  string
		cost   client.Cost
		status int
	}{
		{"web", cost, 409}, // the key belongs to team late
		{"new", cost, 403},
		{"new", client.Cost{Method: "youtube.videos.list", Count: 4}, 403},
		{"new", client.Cost{Method: "youtube.search.list"}, 403},
	} {
		_, err := f.client(c.token).Charge(f.Context(), c.cost, "k")
		if refused, ok := errors.AsType[*client.StatusError](err); !ok || refused.Status != c.status {
			f.Errorf("%s, %+v: %v, want %d", c.token, c.cost, err, c.status)
		}
	}
	if status := f.viaProxy("new", pageOfRegions); status != 403 {
		f.Errorf("the proxy answered %d to what the token does not allow", status)
	}
	exec := f.command("exec", "--units", "5", "--ttl", "1s", "--label", "team=late", "--", "sh", "-c",
		"echo > lived; exec sleep 2")
	must(f, exec.Start())
	f.exists("lived")
	must(f, exec.Process.Kill())
	exec.Wait()
	if got := f.taken(); got["late"] != 6 || got["all"] != 50 {
		f.Errorf("held by a killed process: %v", got)
	}
	for out := ""; !lateCharged.MatchString(out); {
		_, out = f.run("status", "-o", "json")
	}
}

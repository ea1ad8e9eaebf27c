//go:build interop

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/limit"
)

// TestLimit is a hundred callers of four languages: together they are allowed exactly the limit.
// Each program answers as the Go code does.
func TestLimit(t *testing.T) {
	examples := filepath.Join(root, "examples/limit")
	modules, err := filepath.Abs("node/node_modules")
	must(t, err)
	need(t, examples, "php", "-r", "new Redis();")
	need(t, examples, python, "-c", "import redis")
	programs := map[string][]string{
		"php": {"php", "limit.php"}, "python": {python, "limit.py"}, "node": {"node", "limit.js"},
	}
	server := redistest.Start(t, redistest.Options{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	store := limit.NewRedis(client)
	const units, each = 85, 25
	ask := func(language, who string, cost int64) string {
		args, ok := programs[language]
		if !ok {
			p := &limit.Policy{
				Name: "shared", Units: units, Window: time.Hour, Algorithm: limit.Log}
			asks := []limit.Ask{{Policy: p, Key: limit.FixedKey(who), Cost: cost}}
			allowed, err := store.Take(t.Context(), asks)
			if err != nil {
				return err.Error()
			}
			if !allowed {
				return fmt.Sprintf("denied, retry in %.6fs", asks[0].RetryAfter.Seconds())
			}
			return fmt.Sprintf("allowed, %d left", asks[0].Remaining)
		}
		cmd := exec.CommandContext(t.Context(), args[0], append(args[1:], server.Addr, "shared",
			fmt.Sprint(units), "3600", who, fmt.Sprint(cost))...)
		cmd.Dir = examples
		cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	languages := []string{"php", "python", "node", "go"}

	left := units
	for _, language := range languages {
		left -= 20
		want := fmt.Sprintf("allowed, %d left", left)
		if got := ask(language, "one by one", 20); got != want {
			t.Errorf("%s: %q, want %q", language, got, want)
		}
	}
	for _, language := range languages {
		got := ask(language, "one by one", 6)
		if !strings.HasPrefix(got, "denied, retry in 35") {
			t.Errorf("%s: %q", language, got)
		}
	}

	var mu sync.Mutex
	var callers sync.WaitGroup
	allowed := map[string]int{}
	total := 0
	for _, language := range languages {
		slots := make(chan struct{}, 4) // processes at a time
		for range each {
			callers.Go(func() {
				slots <- struct{}{}
				answer := ask(language, "together", 1)
				<-slots
				mu.Lock()
				defer mu.Unlock()
				switch {
				case strings.HasPrefix(answer, "allowed, "):
					allowed[language]++
					total++
				case !strings.HasPrefix(answer, "denied, retry in "):
					t.Errorf("%s: %s", language, answer)
				}
			})
		}
	}
	callers.Wait()
	t.Logf("allowed: %v", allowed)
	if total != units {
		t.Errorf("%d allowed together, want %d", total, units)
	}
}

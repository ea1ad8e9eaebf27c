//go:build interop

// Package interop runs real clients of the YouTube API against the proxy, in front of the stand-in,
// each set up by the lines that docs/proxy.md gives. What a client was answered must be whole,
// and what it was charged must be what the stand-in has counted. The examples of limit.lua run
// beside the Go code. make interop installs the clients.
package interop

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// documented is where the snippets of docs/proxy.md expect the proxy.
const documented = "http://127.0.0.1:8090/"

// sight is what a client saw; what it does not do stays zero.
type sight struct {
	Regions    int    `json:"regions"`
	Pages      int    `json:"pages"`       // of a chart
	Videos     int    `json:"videos"`      // on them
	Found      int    `json:"found"`       // by a search
	Long       int    `json:"long"`        // videos by ids, when the URL was too long
	LongWanted int    `json:"long_wanted"` // how many were asked for
	Multipart  string `json:"multipart"`   // ids of what was uploaded: with its metadata,
	Resumable  string `json:"resumable"`   // in chunks,
	Streamed   string `json:"streamed"`    // and without saying its length
	Denied     string `json:"denied"`      // what a person reads when the units are gone
	Status     int    `json:"status"`
	Upload     string `json:"upload_denied"` // the same of an upload
}

// TestClients runs each client from its first list to the end of its units.
func TestClients(t *testing.T) {
	media, id := film(t)
	for name, client := range map[string]func(t *testing.T, proxy, media string) []byte{
		"python": runPython, "node": runNode, "go": runGo, "curl": runCurl,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			var got sight
			out := client(t, s.proxy, media)
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			check(t, got, id)
			if got.Long != got.LongWanted || name == "python" && got.Long == 0 {
				t.Errorf("a long list of ids: %d of %d videos", got.Long, got.LongWanted)
			}
			s.agree(t)
		})
	}
}

var moment = regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d`)

// check compares what a client saw with the stand-in's data, and reads its last message.
func check(t *testing.T, got sight, id string) {
	t.Helper()
	if got.Regions != 110 || got.Pages != 4 || got.Videos != 200 || got.Found != 5 {
		t.Errorf("lists: %+v", got)
	}
	if got.Multipart != id || got.Resumable != id || got.Streamed != id {
		t.Errorf("uploads are not whole: %+v, want %s", got, id)
	}
	for limit, text := range map[string]string{
		"default 24h": got.Denied, "video_insert 24h": got.Upload,
	} {
		if !strings.Contains(text, "quota exhausted: "+limit) || !moment.MatchString(text) {
			t.Errorf("when %s was gone, a person reads: %q", limit, text)
		}
		t.Logf("a person reads: %s", text)
	}
	if got.Status != 429 {
		t.Errorf("when the units were gone: %d", got.Status)
	}
}

// film is a file of media in several chunks, and the id that the stand-in gives to it.
func film(t *testing.T) (path, id string) {
	t.Helper()
	media := make([]byte, 600<<10)
	for i := range media {
		media[i] = byte(i * i >> 9)
	}
	path = write(t, t.TempDir(), "film.mp4", string(media))
	sum := sha256.Sum256(media)
	return path, base64.RawURLEncoding.EncodeToString(sum[:])[:11]
}

// agree compares the ledger with what the stand-in has counted, by bucket and by method.
func (s *env) agree(t *testing.T) {
	t.Helper()
	var counted struct {
		Total             map[string]int64
		ByMethod          map[string]int64 `json:"by_method"`
		Refused, Rejected int64
		KeyInURL          int64 `json:"key_in_url"`
	}
	counts(t, s.standin, &counted)
	units, calls := map[string]int64{}, map[string]int64{}
	for _, e := range entries(t, s.vars) {
		units[e.Bucket] += e.Units
		calls[e.Labels["method"]]++
	}
	if !maps.Equal(units, counted.Total) || !maps.Equal(calls, counted.ByMethod) {
		t.Errorf("the ledger has %v in %v, the stand-in counted %+v", units, calls, counted)
	}
	if units["default"] != 12 || counted.Refused+counted.Rejected+counted.KeyInURL != 0 {
		t.Errorf("the stand-in counted %+v", counted)
	}
	t.Logf("ledger and stand-in agree on %v", units)
}

// run runs a program in its folder and returns what it printed.
func run(t *testing.T, dir, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	cmd.WaitDelay = time.Minute // for what its children print
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", filepath.Base(name), err, out, stderr.String())
	}
	return out
}

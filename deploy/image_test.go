package deploy_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestBuildContext: what .dockerignore lets through is enough to build both programs, and holds
// nothing that is secret or of no use.
func TestBuildContext(t *testing.T) {
	t.Parallel()
	comment := regexp.MustCompile(`(?m)^#.*$`)
	patterns := strings.Fields(comment.ReplaceAllString(read(t, "../.dockerignore"), ""))
	for _, name := range []string{".git/config", "key", "quota.yaml", ".env", "ledger.db",
		"state/ledger.db", "bin/ingestor", "layers_test.go", "cmd/ingestor/testdata/run.txt",
		"deploy/crontab", "README.md", "docs/redis.md"} {
		if !ignored(patterns, name) {
			t.Errorf("%s goes to the builder", name)
		}
	}
	dir := t.TempDir()
	files := tool(t, "git", "ls-files", "--cached", "--others", "--exclude-standard",
		"--full-name", "..")
	for name := range strings.FieldsSeq(files) {
		if ignored(patterns, name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) { // removed, and not committed yet
			continue
		}
		write(t, filepath.Join(dir, name), string(text))
	}
	tool(t, "go", "-C", dir, "list", "-deps", "./cmd/ingestor", "./cmd/quotactl")
	dockerfile := read(t, "Dockerfile")
	base := regexp.MustCompile(`(?m)^FROM (\S+)`)
	for _, from := range base.FindAllStringSubmatch(dockerfile, -1) {
		if !slices.Contains([]string{"${BUILD_IMAGE}", "${BASE_IMAGE}"}, from[1]) {
			t.Errorf("the base %s is no argument", from[1])
		}
	}
	copied := regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(dockerfile, -1)
	for _, line := range copied {
		for name := range strings.FieldsSeq(line[1]) {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("%s is copied, and not in the context: %v", name, err)
			}
		}
	}
	if len(copied) != 3 || !strings.Contains(dockerfile, "\nCOPY LICENSE THIRD_PARTY_NOTICES ") {
		t.Error("the image ships no licences")
	}
}

// ignored reports whether Docker leaves a file out: the last pattern that matches it or a folder
// above it counts.
func ignored(patterns []string, name string) (out bool) {
	for _, pattern := range patterns {
		pattern, again := strings.CutPrefix(pattern, "!")
		if matches(pattern, name) {
			out = !again
		}
	}
	return out
}

func matches(pattern, name string) bool {
	deep, anywhere := strings.CutPrefix(pattern, "**/")
	for at := name; at != "."; at = path.Dir(at) {
		last := at
		if anywhere {
			pattern, last = deep, path.Base(at)
		}
		if ok, err := path.Match(pattern, last); err == nil && ok {
			return true
		}
	}
	return false
}

// TestVersionOfTheImage: the version that the builder gives is the one that the programs say,
// although no repository is there.
func TestVersionOfTheImage(t *testing.T) {
	t.Parallel()
	touch(t)
	stamp := regexp.MustCompile(`-X (\S+)=\$\{VERSION\}`).FindStringSubmatch(read(t, "Dockerfile"))
	if stamp == nil {
		t.Fatal("the image is built without a version")
	}
	file := filepath.Join(t.TempDir(), "quotactl")
	tool(t, "go", "build", "-ldflags", "-X "+stamp[1]+"=v1.2.3", "-o", file, "../cmd/quotactl")
	if text := tool(t, file, "version"); !strings.HasPrefix(text, "quotactl v1.2.3 ") {
		t.Errorf("the image says %s", text)
	}
}

package deploy_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestVersionOfTheImage requires that the programs print the version that the builder sets, without
// a repository.
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

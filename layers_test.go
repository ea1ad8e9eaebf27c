package quotabudget_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "quotabudget"

// layers is the import table: which packages of the module a package may import. Its tests may
// import more. A package that is not in the table fails the test, so that a new one is given its
// place here.
var layers = map[string]string{
	".":                            "",
	"lua":                          "",
	"internal/quota":               "",
	"internal/quota/quotatest":     "internal/quota",
	"internal/regions":             "",
	"internal/share":               "internal/quota internal/schedule",
	"internal/spell":               "",
	"internal/textfile":            "",
	"internal/yamlfile":            "internal/spell",
	"internal/endpoint":            "",
	"internal/sqlite":              "",
	"internal/version":             "",
	"internal/costs":               ". internal/quota internal/spell internal/yamlfile",
	"internal/catalog":             "internal/sqlite",
	"internal/ledger/redistest":    "",
	"internal/ledger/redisledger":  "internal/quota lua",
	"internal/ledger/sqliteledger": "internal/quota internal/sqlite",
	"internal/ledger":              "internal/quota internal/sqlite internal/ledger/redisledger internal/ledger/sqliteledger",
	"internal/meter":               "internal/endpoint internal/quota",
	"internal/proxy":               "internal/costs internal/meter internal/quota",
	"internal/youtube":             "internal/endpoint internal/quota internal/youtube/bounds internal/youtube/fault",
	"internal/youtube/bounds":      "internal/quota",
	"internal/youtube/fault":       "internal/youtube/bounds",
	"internal/youtube/youtubetest": "",
	"internal/ingest":              "internal/catalog internal/meter internal/quota internal/regions internal/youtube internal/youtube/fault",
	"internal/upstream":            "internal/costs internal/meter internal/endpoint internal/quota internal/youtube/fault",
	"internal/schedule":            "",
	"internal/sim":                 "internal/quota internal/schedule internal/share",
	"internal/forecast":            "internal/quota internal/schedule internal/share internal/sim",
	"internal/metrics":             "internal/catalog internal/ingest internal/quota internal/version internal/youtube/fault",
	"internal/daemon":              "internal/catalog internal/forecast internal/ingest internal/meter internal/metrics internal/quota internal/regions internal/schedule internal/share internal/youtube/fault",
	"internal/plan":                "internal/quota internal/schedule internal/share internal/sim",
	"internal/picture":             "internal/plan",
	"internal/freshness":           "",
	"internal/config":              "internal/costs internal/ledger internal/endpoint internal/quota internal/regions internal/schedule internal/share internal/spell internal/sqlite internal/textfile internal/yamlfile",
	"internal/cli":                 "internal/config internal/ledger internal/quota internal/spell internal/sqlite internal/version internal/youtube/fault",
	"internal/cli/clitest":         "",
	"deploy":                       "", // tests alone
	"cmd/quotactl":                 "internal/*",
	"cmd/ingestor":                 "internal/*",
}

// owners are the modules that only the named packages may import: everything else is written
// without knowing them. Where tests is set, tests are held to it too.
var owners = []struct {
	imported string
	by       []string
	tests    bool
}{
	{"github.com/robfig/cron", []string{"internal/schedule"}, false},
	{"github.com/redis/go-redis", []string{"internal/ledger/redisledger", "internal/ledger/redistest"}, false},
	{"modernc.org/sqlite", []string{"internal/sqlite"}, true},
	{"google.golang.org/api", []string{"internal/youtube"}, false},
	{"github.com/guptarohit/asciigraph", []string{"internal/picture"}, true},
	{"github.com/spf13/cobra", []string{"internal/cli", "cmd/quotactl", "cmd/ingestor"}, true},
}

// without are the modules that a program is built without, not even through a library: they would
// make it slow to build and half as large again.
var without = map[string][]string{
	"cmd/quotactl": {"google.golang.org/api", "google.golang.org/grpc", "go.opentelemetry.io"},
}

// pkg is what go list -json says of a package, as far as it is asked here.
type pkg struct {
	Dir, ImportPath, Name              string
	Imports, TestImports, XTestImports []string
	GoFiles                            []string
}

// path is the package's folder within the module.
func (p pkg) path() string { return within(p.ImportPath) }

// within is the folder of an import path of the module, "" for all others.
func within(importPath string) string {
	if importPath == module {
		return "."
	}
	rest, ok := strings.CutPrefix(importPath, module+"/")
	if !ok {
		return ""
	}
	return rest
}

// touch looks at every source of the module. go test keeps a result until a file changes that the
// test itself looked at, and does not know what the commands that a test starts have read.
func touch(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func packages(t *testing.T) []pkg {
	t.Helper()
	touch(t)
	var stderr bytes.Buffer
	cmd := exec.Command("go", "list", "-json=Dir,ImportPath,Name,Imports,TestImports,XTestImports,GoFiles", "./...")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var list []pkg
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := in.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// The import table: what is inside knows nothing of what is outside.
func TestLayers(t *testing.T) {
	for _, p := range packages(t) {
		allowed, known := layers[p.path()]
		if !known {
			t.Errorf("%s has no place in the table of layers_test.go", p.path())
			continue
		}
		for _, imported := range p.Imports {
			to := within(imported)
			if to == "" || allowed == "internal/*" && strings.HasPrefix(to, "internal/") {
				continue
			}
			if !slices.Contains(strings.Fields(allowed), to) {
				t.Errorf("%s imports %s, which is not below it", p.path(), to)
			}
		}
	}
}

// The domain is written in the standard library alone, and so are its siblings that do nothing but
// compute.
func TestDomainImportsOnlyTheStandardLibrary(t *testing.T) {
	for _, p := range packages(t) {
		if !slices.Contains([]string{".", "lua", "internal/quota", "internal/regions", "internal/share", "internal/spell", "internal/meter"}, p.path()) {
			continue
		}
		for _, imported := range p.Imports {
			if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
				t.Errorf("%s imports %s", p.path(), imported)
			}
		}
	}
}

// One package for each library that could spread.
func TestLibrariesHaveOneOwner(t *testing.T) {
	for _, p := range packages(t) {
		for _, o := range owners {
			imports := p.Imports
			if o.tests {
				imports = slices.Concat(p.Imports, p.TestImports, p.XTestImports)
			}
			for _, imported := range imports {
				if strings.HasPrefix(imported, o.imported) && !slices.Contains(o.by, p.path()) {
					t.Errorf("%s imports %s, which only %s may", p.path(), imported, strings.Join(o.by, ", "))
				}
			}
		}
	}
}

// TestProgramsStaySmall: what a program does not need is not linked into it.
func TestProgramsStaySmall(t *testing.T) {
	touch(t)
	for program, modules := range without {
		out, err := exec.Command("go", "list", "-deps", "./"+program).Output()
		if err != nil {
			t.Fatal(err)
		}
		for imported := range strings.Lines(string(out)) {
			unwanted := func(module string) bool { return strings.HasPrefix(imported, module+"/") }
			if slices.ContainsFunc(modules, unwanted) {
				t.Errorf("%s is linked with %s", program, imported)
			}
		}
	}
}

// Nothing below cmd knows of the programs, and no name says nothing.
func TestNames(t *testing.T) {
	for _, p := range packages(t) {
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if strings.HasPrefix(within(imported), "cmd/") && !strings.HasPrefix(p.path(), "cmd/") {
				t.Errorf("%s imports %s", p.path(), imported)
			}
		}
		for _, name := range append(strings.Split(p.path(), "/"), p.Name) {
			if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "models", "mock", "mocks"}, name) {
				t.Errorf("%s: a package named %s", p.path(), name)
			}
		}
	}
}

// Everything arrives through the front door: the environment is read in cmd and handed on, and
// nothing runs before main.
func TestFrontDoor(t *testing.T) {
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			where := p.path() + "/" + name
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Recv == nil && n.Name.Name == "init" {
						t.Errorf("%s has a func init", where)
					}
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && x.Name == "os" && !frontDoor(p.path()) &&
						slices.Contains([]string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}, n.Sel.Name) {
						t.Errorf("%s asks os.%s", where, n.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// frontDoor says which packages may look at the environment: the programs, and the one that starts
// servers for tests.
func frontDoor(path string) bool {
	return strings.HasPrefix(path, "cmd/") || path == "internal/ledger/redistest"
}

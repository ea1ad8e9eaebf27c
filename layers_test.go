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

// layers is the import table: which packages of the module a package may import, without their
// internal/. Its tests may import more. A package that is not in the table fails the test, so that
// a new one is given its place here.
var layers = table(`
.:
lua:
client:
quota:
quota/quotatest: ledger quota
regions: words
share: quota schedule
words:
grammar: words
sqlite:
costs: . costs/formula grammar quota untrusted words
costs/formula: quota
costs/feed: costs costs/formula grammar untrusted words
untrusted: quota
notify: config plan quota report share untrusted words
catalog: sqlite
bill: costs costs/formula quota untrusted
ledger/redistest: lua
ledger/queue:
ledger/memstore: quota
ledger/sqlitestore: ledger/queue quota sqlite
ledger/redisstore: ledger/queue lua quota
limit: lua quota words
ledger: ledger/redisstore ledger/sqlitestore quota sqlite
meter: costs quota
proxy: costs limit meter quota words
youtube: catalog costs quota untrusted
standin:
ingest: catalog meter quota regions youtube
job: quota
meter/metertest: config costs ledger ledger/redistest meter quota standin
schedule: words
daemon: catalog ingest job ledger plan quota regions report schedule share youtube
plan: ledger/memstore quota schedule share words
report: catalog config costs job ledger ledger/memstore plan quota share words
report: words
serve: catalog config costs limit plan quota regions report schedule untrusted words
config: . costs grammar ledger limit quota regions schedule share words sqlite
doctor: bill config costs ledger ledger/redisstore quota report sqlite
cli: catalog config costs ledger ledger/redisstore limit meter proxy quota report serve
cli: job notify sqlite untrusted words
cli/clitest:
deploy:
examples/webhook:
cmd/quotactl: *
cmd/ingestor: *
`)

// table reads lines of a package and, behind a colon, those that it may import. A package may have
// several lines.
func table(text string) map[string][]string {
	rows := make(map[string][]string)
	for line := range strings.Lines(text) {
		if name, imports, ok := strings.Cut(line, ":"); ok {
			rows[name] = append(rows[name], strings.Fields(imports)...)
		}
	}
	return rows
}

// owners are the modules that only the named packages may import: everything else is written
// without knowing them. Where tests is set, tests are held to it too.
var owners = []struct {
	imported, by string
	tests        bool
}{
	{"github.com/robfig/cron", "schedule", false},
	{"mvdan.cc/sh", "cmd/quotactl", false},
	{"github.com/redis/go-redis", "ledger/redisstore ledger/redistest limit", false},
	{"modernc.org/sqlite", "sqlite", true},
	{"google.golang.org/api", "youtube", false},
	{"golang.org/x/oauth2", "bill", false},
	{"github.com/santhosh-tekuri/jsonschema", "grammar", false},
	{"github.com/expr-lang/expr", "costs/formula", true},
	{"github.com/go-json-experiment/json", "untrusted", true},
	{"github.com/vektah/gqlparser", "costs/formula standin", true},
	{"github.com/danielgtaylor/huma", "serve", false},
	{"github.com/modelcontextprotocol/go-sdk", "cmd/quotactl", true},
	{"github.com/spf13/cobra", "cli cmd/quotactl cmd/ingestor", true},
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

// path is the package's name in the table.
func (p pkg) path() string { return within(p.ImportPath) }

// within is the name of an import path in the table, "" for one outside the module.
func within(importPath string) string {
	if importPath == module {
		return "."
	}
	rest, ok := strings.CutPrefix(importPath, module+"/")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(rest, "internal/")
}

// touch looks at every source of the module. go test keeps a result until a file changes that the
// test itself looked at, and does not know what the commands that a test starts have read.
func touch(t *testing.T) {
	t.Helper()
	for _, path := range walk(t, ".", ".go") {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
}

// walk lists the files below a folder whose names end so, without those of npm, which are many:
// go test looks at each folder that a test has read.
func walk(t *testing.T, dir, suffix string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err == nil && entry.Name() == "node_modules":
			return filepath.SkipDir
		case strings.HasSuffix(path, suffix):
			files = append(files, path)
		}
		return err
	})
	must(t, err)
	return files
}

func packages(t *testing.T) []pkg {
	t.Helper()
	touch(t)
	var stderr bytes.Buffer
	cmd := exec.Command("go", "list",
		"-json=Dir,ImportPath,Name,Imports,TestImports,XTestImports,GoFiles", "./...")
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
		must(t, err)
		list = append(list, p)
	}
}

// The import table: what is inside knows nothing of what is outside.
func TestLayers(t *testing.T) {
	for _, p := range packages(t) {
		allowed, isListed := layers[p.path()]
		if !isListed {
			t.Errorf("%s has no place in the table of layers_test.go", p.path())
			continue
		}
		for _, imported := range p.Imports {
			to, all := within(imported), slices.Contains(allowed, "*")
			if to != "" && !all && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s, which is not below it", p.path(), to)
			}
		}
	}
}

// The domain is written in the standard library alone, and so are its siblings that do nothing but
// compute.
func TestDomainImportsOnlyTheStandardLibrary(t *testing.T) {
	for _, p := range packages(t) {
		pure := strings.Fields(". lua quota regions share words")
		if !slices.Contains(pure, p.path()) {
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
				owner := slices.Contains(strings.Fields(o.by), p.path())
				if strings.HasPrefix(imported, o.imported) && !owner {
					t.Errorf("%s imports %s, which only %s may", p.path(), imported, o.by)
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
		must(t, err)
		for imported := range strings.Lines(string(out)) {
			unwanted := func(module string) bool { return strings.HasPrefix(imported, module+"/") }
			if slices.ContainsFunc(modules, unwanted) {
				t.Errorf("%s is linked with %s", program, imported)
			}
		}
	}
}

// No name says nothing.
func TestNames(t *testing.T) {
	for _, p := range packages(t) {
		for _, name := range append(strings.Split(p.path(), "/"), p.Name) {
			empty := strings.Fields("util utils common helper helpers models mock mocks")
			if slices.Contains(empty, name) {
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
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil,
				parser.SkipObjectResolution)
			must(t, err)
			where := p.path() + "/" + name
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Recv == nil && n.Name.Name == "init" {
						t.Errorf("%s has a func init", where)
					}
				case *ast.SelectorExpr:
					x, ok := n.X.(*ast.Ident)
					env := strings.Contains(strings.ToLower(n.Sel.Name), "env")
					if ok && x.Name == "os" && env && !frontDoor(p.path()) {
						t.Errorf("%s asks os.%s", where, n.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// frontDoor says which packages may look at the environment: programs, and the one that starts
// servers for tests.
func frontDoor(path string) bool {
	return strings.HasPrefix(path, "cmd/") || strings.HasPrefix(path, "examples/") ||
		path == "ledger/redistest"
}

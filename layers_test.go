package quotabudget_test

import (
	"regexp"
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
costs: . grammar quota untrusted words
untrusted: quota
notify: config plan quota report share untrusted words
catalog: sqlite
bill: costs quota untrusted
ledger/redistest: lua
ledger/memstore: quota
ledger/sqlitestore: quota sqlite
ledger/redisstore: lua quota
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

// table parses lines of a package, a colon and the packages that it may import. A package may have
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
	{"github.com/expr-lang/expr", "costs", true},
	{"github.com/go-json-experiment/json", "untrusted", true},
	{"github.com/vektah/gqlparser", "costs standin", true},
	{"github.com/danielgtaylor/huma", "serve", false},
	{"github.com/modelcontextprotocol/go-sdk", "cmd/quotactl", true},
	{"github.com/spf13/cobra", "cli cmd/quotactl cmd/ingestor", true},
}

// without are the modules that a program is built without, not even through a library: they would
// make it slow to build and half as large again.
var without = map[string][]string{
	"cmd/quotactl": {"google.golang.org/api", "google.golang.org/grpc", "go.opentelemetry.io"},
}

// TestLayers: every package imports only packages that the table allows.
func TestLayers(t *testing.T) {
	for path, p := range packages(t) {
		allowed, isListed := layers[path]
		if !isListed {
			t.Errorf("%s is not in the table of layers_test.go", path)
		}
		for _, imported := range p.Imports {
			to, all := layerName(imported), slices.Contains(allowed, "*")
			if to != "" && !all && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s, which its line in the table does not allow", path, to)
			}
		}
	}
}

// TestDomainImportsOnlyTheStandardLibrary: the domain, and the packages that only compute, import
// no other module.
func TestDomainImportsOnlyTheStandardLibrary(t *testing.T) {
	for _, path := range strings.Fields(". lua quota regions share words") {
		for _, imported := range packages(t)[path].Imports {
			if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
}

// TestLibrariesHaveOneOwner: only its owners import a library that could otherwise spread.
func TestLibrariesHaveOneOwner(t *testing.T) {
	for path, p := range packages(t) {
		for _, o := range owners {
			imports := p.Imports
			if o.tests {
				imports = slices.Concat(p.Imports, p.TestImports, p.XTestImports)
			}
			for _, imported := range imports {
				owner := slices.Contains(strings.Fields(o.by), path)
				if strings.HasPrefix(imported, o.imported) && !owner {
					t.Errorf("%s imports %s, which only %s may import", path, imported, o.by)
				}
			}
		}
	}
}

// TestProgramsStaySmall: what a program does not need is not linked into it.
func TestProgramsStaySmall(t *testing.T) {
	for program, modules := range without {
		for _, imported := range packages(t)[program].Deps {
			unwanted := func(module string) bool { return strings.HasPrefix(imported, module+"/") }
			if slices.ContainsFunc(modules, unwanted) {
				t.Errorf("%s is linked with %s", program, imported)
			}
		}
	}
}

// TestNames: every package name says what is inside.
func TestNames(t *testing.T) {
	for path, p := range packages(t) {
		for _, name := range append(strings.Split(path, "/"), p.Name) {
			vague := strings.Fields("util utils common helper helpers models mock mocks")
			if slices.Contains(vague, name) {
				t.Errorf("%s: rename the package: %s says nothing about its contents", path, name)
			}
		}
	}
}

// TestFrontDoor: only programs, and the packages that start servers and programs for tests, use the
// environment, and nothing runs before main.
func TestFrontDoor(t *testing.T) {
	initFunc := regexp.MustCompile(`(?m)^func init\(`)
	environment := regexp.MustCompile(`\bos\.\w*[eE]nv\w*`)
	for path, p := range packages(t) {
		frontDoor := strings.HasPrefix(path, "cmd/") || strings.HasPrefix(path, "examples/") ||
			path == "ledger/redistest" || path == "cli/clitest"
		for name, text := range p.sources(t) {
			_, _, code := split(text)
			if initFunc.MatchString(code) {
				t.Errorf("%s/%s has a func init", path, name)
			}
			if reads := environment.FindString(code); reads != "" && !frontDoor {
				t.Errorf("%s/%s reads the environment: %s", path, name, reads)
			}
		}
	}
}

// TestNoUpstreamIsSpecial: the packages that meter, price and forward requests get everything about
// an upstream from its price list. They import no package about one upstream, not even through
// another package, and name no upstream in their code.
func TestNoUpstreamIsSpecial(t *testing.T) {
	imports := regexp.MustCompile(`(?ms)^import (?:\(.*?^\)|[^\n]*)$|"quotabudget[^"\n]*"`)
	upstream := regexp.MustCompile(`(?i)\w*(?:youtube|openai|anthropic|github|shopify)\w*`)
	all := packages(t)
	for _, path := range strings.Fields("meter costs proxy") {
		for _, imported := range all[path].Deps {
			if layer := layerName(imported); strings.HasPrefix(layer, "youtube") ||
				strings.HasPrefix(layer, "standin") {
				t.Errorf("%s imports %s, which is about one upstream", path, imported)
			}
		}
		for name, text := range all[path].sources(t) {
			_, literals, code := split(imports.ReplaceAllString(text, ""))
			if named := upstream.FindString(literals + code); named != "" {
				t.Errorf("%s/%s names an upstream: %s", path, name, named)
			}
		}
	}
}

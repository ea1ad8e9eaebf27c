# For users: demo, test, build, install. For a change: check. CONTRIBUTING.md explains the rest.

GO ?= go
# Strip local paths, symbols and debug information.
SMALL = -trimpath -ldflags "-s -w"

.PHONY: prices-check demo test soak check fuzz interop build install bench vuln fmt tools clean notices picture pictures browser

## demo: one sweep of eight regions against the built-in stand-in, on SQLite
demo:
	@MAKE="$(MAKE)" scripts/demo

## test: install what the tests need, then run all tests
test: tools
	$(GO) test ./...

## soak: two minutes of three daemons on one Redis, one of them killed every one to three seconds;
## then thousands of histories of the limiter, on Redis and in memory
soak: tools
	$(GO) test ./cmd/ingestor -run 'TestCrashes' -count 1 -v -long
	$(GO) test ./internal/limit -run 'TestSameAsMemory' -count 1 -v -long

# Packages that are tested without the race detector, which would find nothing in them and take up to
# ten times as long: they start programs, which are built without it, or compute in one goroutine.
UNRACED = . ./cmd/... ./deploy ./internal/costs ./internal/plan ./internal/report ./internal/schedule ./internal/share

## check: run the linters and all tests, under the race detector where it can find something
check: tools
	@scripts/unformatted
	$(GO) mod tidy -diff
	$(GO) vet -tags browser,interop ./...
	$(GO) tool staticcheck -tags browser,interop ./...
	$(GO) test -vet off $(UNRACED)
	@GO="$(GO)" scripts/test-race $$($(GO) list ./... | grep -vxF "$$($(GO) list $(UNRACED))")

## fuzz: every fuzz target for FUZZTIME (20s)
fuzz:
	@GO="$(GO)" scripts/fuzz

## interop: install real clients (Python, Node, PHP, curl), and run them and Go's against the proxy
## and the limiter's script; six tests run at a time, because most of their clients wait
interop: tools
	@scripts/install-interop
	$(GO) test -tags interop -count 1 -parallel 6 ./interop

## browser: install Chromium and axe-core, and test the pages; screenshots are in bin/screens
browser:
	@scripts/install-browser
	$(GO) test -tags browser -count 1 ./browser

## build: build both programs into bin/
build:
	$(GO) build $(SMALL) -o bin/ ./cmd/quotactl ./cmd/ingestor

## install: install both programs with go install
install:
	$(GO) install $(SMALL) ./cmd/quotactl ./cmd/ingestor

## bench: measure the figures of docs/benchmarks.md, each a ratio within one run
bench: tools
	$(GO) test -run '^$$' -bench Ledger -benchtime 1x ./internal/ledger/redisstore
	$(GO) test -run '^$$' -bench . -benchtime 3s ./internal/ledger/sqlitestore
	$(GO) test -run '^$$' -bench Processes -benchtime 3x ./internal/ledger
	$(GO) test -run '^$$' -bench Proxy -benchtime 1x ./internal/proxy
	$(GO) test -run '^$$' -bench Charges -benchtime 5x ./internal/serve
	$(GO) test -run '^$$' -bench 'Sweep/8x' -benchtime 5x ./internal/ingest
	$(GO) test -run '^$$' -bench 'Sweep/110x' -benchtime 1x ./internal/ingest
	$(GO) test -run '^$$' -bench 'Year|Suggest' -benchtime 1x ./internal/plan
	$(GO) test -run '^$$' -bench 'Of$$|Short' -benchtime 5x ./internal/plan
	$(GO) test -run '^$$' -bench 'Forecast$$' -benchtime 1x ./internal/plan
	$(GO) test -run '^$$' -bench Fair -benchtime 1x ./internal/share
	$(GO) test -run '^$$' -bench Decision -benchtime 100x ./internal/daemon
	cd bench && $(GO) test -run Boundary -v -bench . -benchtime 500ms .

## picture: draw the terminal at the top of the README from a real run
picture:
	$(GO) test . -run '^TestPicture$$' -count 1 -update

## pictures: draw the pictures of docs/api.md from the demo in a real browser
pictures:
	@scripts/install-browser
	$(GO) test -tags browser ./browser -run '^TestPictures$$' -count 1 -update

## notices: write the licences of all linked modules to THIRD_PARTY_NOTICES
notices:
	$(GO) test ./deploy -run '^TestNotices$$' -count 1 -update

## prices-check: compare the model prices with data sets: make prices-check SNAPSHOTS="data.json";
## shows all differences, and fails if a row differs from the data set that is its source
prices-check:
	@for file in $(SNAPSHOTS); do for name in anthropic azure-openai bedrock gemini mistral openai openrouter; do \
		echo "$$name and $$file"; \
		$(GO) run ./cmd/quotactl costs import $$file --upstream $$name --into costs/$$name.yaml --check || bad=1; \
	done; done; test -z "$$bad"

## vuln: list known vulnerabilities of the dependencies (needs the network)
vuln:
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...

fmt:
	gofmt -w $$(git ls-files '*.go')

tools:
	@scripts/install-test-tools

clean:
	rm -rf bin

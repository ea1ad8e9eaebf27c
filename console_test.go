package quotabudget_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/standin"
)

var (
	block   = regexp.MustCompile("(?ms)^```(console|yaml)\n(.*?)^```")
	named   = regexp.MustCompile(`^# ([a-z]+\.yaml)\n`)
	port    = regexp.MustCompile(`\b127\.0\.0\.1:(?:8090|810[1-9])\b`)
	listens = regexp.MustCompile(`--listen (\S+)`)
	reads   = regexp.MustCompile(`^quotactl (?:log|status)\b`)
	entryID = regexp.MustCompile(`\b[0-9a-z]{14}\b`)
	stamps  = regexp.MustCompile(
		`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z|\bin (?:\d+(?:d|h|min|s)\b ?)+`)
)

// What the pages show as typed into a shell prints what they say, except for times and the names of
// entries. All blocks of a page are one session. A YAML block whose first line is a file's name,
// such as "# quota.yaml", is that file from there on, and a line "…" stands for any number of
// lines. With -update, the pages then say what was printed.
func TestConsole(t *testing.T) {
	for _, path := range documents(t) {
		text := read(t, path)
		if !strings.Contains(text, "\n```console\n") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			s.page = text
			for _, b := range block.FindAllStringSubmatch(text, -1) {
				if b[1] == "console" {
					s.play(b[2])
				} else if name := named.FindStringSubmatch(b[2]); name != nil {
					must(t, os.WriteFile(filepath.Join(s.dir, name[1]), []byte(s.here(b[2])), 0o600))
				}
			}
			if *update && s.page != text {
				must(t, os.WriteFile(path, []byte(s.page), 0o644))
			}
		})
	}
}

var (
	shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")
	runnable   = regexp.MustCompile(`(?m)^(?:quotactl|ingestor) [^\\&\n]*$`)
)

// The commands that the pages tell to type work as they are, but for those that go on for ever.
func TestShellExamples(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(&standin.YouTube{})
	t.Cleanup(upstream.Close)
	for _, path := range documents(t) {
		s := newShell(t, "YOUTUBE_API_KEY=any", "YOUTUBE_ENDPOINT="+upstream.URL+"/")
		for _, b := range shellBlock.FindAllStringSubmatch(read(t, path), -1) {
			for _, line := range runnable.FindAllString(b[1], -1) {
				if strings.Contains(line, " proxy ") {
					continue
				}
				line = strings.ReplaceAll(line, "/var/lib/prometheus/node-exporter", s.dir)
				out := strings.TrimSpace(s.run(line + "\necho exit code $?"))
				if !regexp.MustCompile(`exit code (?:0|75)$`).MatchString(out) {
					t.Errorf("%s: %s\n%s", path, line, out)
				}
			}
		}
	}
}

// shell is a session of bash in a folder of its own.
type shell struct {
	*testing.T
	dir   string
	page  string
	at    int // how much of the page was played
	stdin io.Writer
	out   *bufio.Reader
	pipe  *os.File          // under out
	ports map[string]string // addresses, on the page and here
	ids   map[string]string // of entries and reservations
}

func newShell(t *testing.T, env ...string) *shell {
	t.Helper()
	s := &shell{T: t, dir: t.TempDir(), ports: map[string]string{}, ids: map[string]string{}}
	path := filepath.Dir(program(t, "quotactl")) + ":" + os.Getenv("PATH")
	cmd := exec.Command("bash", "--norc")
	cmd.Dir = s.dir
	cmd.Env = []string{"HOME=" + s.dir, "PATH=" + path, "TMPDIR=" + s.dir, "TZ=UTC",
		"LC_ALL=C.UTF-8"}
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	output, input, err := os.Pipe() // which, unlike that of the command, has deadlines
	must(t, err)
	cmd.Stdout, cmd.Stderr = input, input
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	input.Close()
	s.out, s.pipe = bufio.NewReader(output), output
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with what it has started
		cmd.Wait()
		output.Close()
	})
	return s
}

// here is a text of the page with free addresses of this machine for those of the page.
func (s *shell) here(text string) string {
	return port.ReplaceAllStringFunc(text, func(page string) string {
		if s.ports[page] == "" {
			free, err := net.Listen("tcp", "127.0.0.1:0")
			must(s, err)
			defer free.Close()
			s.ports[page] = free.Addr().String()
		}
		return s.ports[page]
	})
}

// play types the commands of a block and compares what each of them prints.
func (s *shell) play(text string) {
	s.Helper()
	for _, step := range strings.Split("\n"+text, "\n$ ")[1:] {
		command, want, _ := strings.Cut(step, "\n")
		for page, here := range s.ids {
			command = strings.ReplaceAll(command, page, here)
		}
		got := s.run(command)
		// the proxy settles a call when its answer has ended, which the caller may see first
		for i := 0; reads.MatchString(command) && !matches(lines(want), lines(got)) && i < 50; i++ {
			time.Sleep(100 * time.Millisecond)
			got = s.run(command)
		}
		// pair the IDs of entries on the page with those of this run
		there, here := entryID.FindAllString(want, -1), entryID.FindAllString(got, -1)
		for i := range min(len(there), len(here)) {
			s.ids[there[i]] = here[i]
		}
		if matches(lines(want), lines(got)) {
			continue
		}
		if *update {
			s.correct(step, got)
		} else {
			s.Errorf("$ %s\nprints\n%sthe page says\n%s", command, got, want)
		}
	}
}

// correct makes the page say what a command of it printed, with the names that the page has.
func (s *shell) correct(step, printed string) {
	for page, here := range s.ids {
		printed = strings.ReplaceAll(printed, here, page)
	}
	command, _, _ := strings.Cut(step, "\n")
	text := strings.TrimRight(command+"\n"+printed, "\n")
	if strings.HasSuffix(step, "\n") {
		text += "\n"
	}
	s.at += strings.Index(s.page[s.at:], "$ "+step)
	s.page = s.page[:s.at] + strings.Replace(s.page[s.at:], step, text, 1)
	s.at += len(text)
}

// endsIn is how long a command of a page may take.
const endsIn = 2 * time.Minute

// run types one command and returns what it prints. It waits for the address of a program that the
// command starts.
func (s *shell) run(command string) (printed string) {
	const end = "\x04end of output"
	command = s.here(command)
	must(s, s.pipe.SetReadDeadline(time.Now().Add(endsIn)))
	fmt.Fprintf(s.stdin, "%s\necho '%s'\n", command, end)
	for {
		line, err := s.out.ReadString('\n')
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.Fatalf("$ %s\nhas not ended after %v; it has printed\n%s", command, endsIn, printed)
		}
		if err != nil {
			s.Fatalf("$ %s: %v", command, err)
		}
		if strings.TrimSpace(line) == end {
			break
		}
		printed += line
	}
	for page, here := range s.ports {
		printed = strings.ReplaceAll(printed, here, page)
	}
	if at := listens.FindStringSubmatch(command); at != nil && strings.HasSuffix(command, "&") {
		s.await(at[1])
	}
	return printed
}

// await waits until something listens.
func (s *shell) await(address string) {
	for i := 0; ; i++ {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return
		}
		if i == 1500 {
			s.Fatalf("nothing listens: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// lines are those of an output, without what differs each time.
func lines(text string) (list []string) {
	for line := range strings.Lines(text) {
		line = entryID.ReplaceAllString(stamps.ReplaceAllString(line, "TIME"), "ID")
		list = append(list, strings.Join(strings.Fields(line), " "))
	}
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// matches reports whether lines are those of a page, in which "…" stands for any number of them.
func matches(page, printed []string) bool {
	switch {
	case len(page) == 0:
		return len(printed) == 0
	case page[0] == "…":
		return matches(page[1:], printed) || len(printed) > 0 && matches(page, printed[1:])
	case len(printed) == 0 || page[0] != printed[0]:
		return false
	}
	return matches(page[1:], printed[1:])
}

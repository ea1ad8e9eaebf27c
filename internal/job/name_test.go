package job

import "testing"

// TestNameOf: a job is named after its program, not after the program's wrapper.
func TestNameOf(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{"backfill", []string{"/usr/local/bin/backfill", "--since", "1d"}},
		{"backfill", []string{"./backfill.sh"}},
		{"a", []string{"python3", "/srv/a.py"}},
		{"a", []string{"/usr/bin/python3.12", "-u", "-W", "ignore", "/srv/a.py", "b.py"}},
		{"sync", []string{"python3", "-m", "app.sync", "x"}},
		{"python3", []string{"python3", "-c", "print(1)"}},
		{"backfill", []string{"nice", "-n", "10", "timeout", "5m", "backfill", "all"}},
		{"node", []string{"node", "-e", "1"}},
		{"a", []string{"bash", "-eu", "a.sh"}},
		{"a", []string{"sh", "-c", "cd /srv && exec ./a.sh >> log"}},
		{"b", []string{"bash", "-lc", "X=1 python3 b.py | logger"}},
		{"sh", []string{"sh", "-c", "echo units=3 >&3; exit 1"}},
		{"sh", []string{"sh", "-c", "echo 'a b'"}},
		{"sh", []string{"sh", "-c", "date; who"}},
		{"a", []string{"perl", "-I", "lib", "a.pl"}},
		{"a", []string{"ruby", "a.rb"}},
		{"a", []string{"php", "-d", "x=1", "-f", "a.php"}},
		{"a", []string{"java", "-Xmx1g", "-jar", "/srv/a.jar"}},
		{"a", []string{"uv", "run", "a.py"}},
		{"a", []string{"uv", "run", "--with", "x", "python", "a.py"}},
		{"a", []string{"poetry", "run", "python", "a.py"}},
		{"nightly", []string{"npm", "run", "nightly"}},
		{"crawl", []string{"node", "--env-file", ".env", "crawl.js"}},
		{"a", []string{"deno", "run", "--allow-net", "a.ts"}},
		{"a", []string{"env", "-u", "X", "Y=1", "python3", "a.py"}},
		{"a", []string{"nice", "-n", "10", "./a.sh"}},
		{"a", []string{"nice", "-10", "timeout", "-k", "5", "10m", "sh", "a.sh"}},
		{"a", []string{"flock", "-n", "/var/lock/a", "/srv/a"}},
		{"sh", []string{"sh"}},
		{".hidden", []string{"./.hidden"}},
	} {
		if got := NameOf(c.args); got != c.want {
			t.Errorf("%q is named %s, want %s", c.args, got, c.want)
		}
	}
}

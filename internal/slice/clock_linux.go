package slice

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// bootID names the boot of this host.
var bootID = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
})

func present() moment {
	m := moment{wall: time.Now()}
	var at unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &at) == nil {
		m.boot, m.up = bootID(), time.Duration(at.Nano())
	}
	return m
}

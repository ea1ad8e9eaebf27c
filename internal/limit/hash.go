package limit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"sync/atomic"
	"time"
)

// Hash turns a caller into a key, with a salt of the day that is deleted later, so that nobody can
// match what a store keeps with an address.
type Hash struct {
	// Salt is the salt of a day since 1970, the same for all processes with one store. Without it,
	// each day has a salt of this process.
	Salt func(ctx context.Context, day int64) ([]byte, error)

	salts atomic.Pointer[map[int64]salt] // of the last days; replaced, never changed
}

type salt struct {
	bytes []byte
	asked time.Time
}

// asksAgain is how long a shared salt is used. After a store has lost it, all processes have the
// same one again that soon.
const asksAgain = time.Minute

const aDay = 24 * time.Hour

// FixedKey is the key of something whose name is no secret, such as a route.
func FixedKey(who string) (key Key) {
	sum := sha256.Sum256([]byte(who))
	copy(key[:], sum[:])
	return key
}

// Daily is the key of somebody at a moment. As long after midnight UTC as yesterday's charges
// count, it also returns yesterday's key. A window of more than a day would forget some charges.
func (h *Hash) Daily(ctx context.Context, who string, now time.Time,
	window time.Duration) (key, before Key, err error) {
	day := now.Unix() / int64(aDay/time.Second)
	if now.Sub(time.Unix(0, 0))%aDay <= 2*window {
		if before, err = h.key(ctx, who, day-1, now); err != nil {
			return key, before, err
		}
	}
	key, err = h.key(ctx, who, day, now)
	return key, before, err
}

func (h *Hash) key(ctx context.Context, who string, day int64,
	now time.Time) (key Key, err error) {
	salt, err := h.salt(ctx, day, now)
	if err != nil {
		return key, err
	}
	var buffer [128]byte
	sum := sha256.Sum256(append(append(buffer[:0], salt...), who...))
	copy(key[:], sum[:])
	return key, nil
}

func (h *Hash) salt(ctx context.Context, day int64, now time.Time) ([]byte, error) {
	if salts := h.salts.Load(); salts != nil {
		known, ok := (*salts)[day]
		if ok && (h.Salt == nil || now.Sub(known.asked).Abs() < asksAgain) {
			return known.bytes, nil
		}
	}
	made := salt{make([]byte, sha256.Size), now}
	rand.Read(made.bytes)
	if h.Salt != nil {
		var err error
		if made.bytes, err = h.Salt(ctx, day); err != nil {
			return nil, err
		}
	}
	for {
		old := h.salts.Load()
		next := map[int64]salt{day: made}
		if old != nil {
			for other, known := range *old {
				if other >= day-1 && (other != day || h.Salt == nil) {
					next[other] = known // the first one made here counts
				}
			}
		}
		if h.salts.CompareAndSwap(old, &next) {
			return next[day].bytes, nil
		}
	}
}

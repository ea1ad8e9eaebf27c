package redisledger

import (
	"cmp"
	"context"
	"fmt"

	"quotabudget/internal/quota"
)

const otherUnits = int64(-7) // a status of adjust.lua: the span does not hold what it must

// Adjust corrects what was used in a span.
func (l *Ledger) Adjust(ctx context.Context, a quota.Adjust) (quota.Decision, error) {
	if err := a.Check(); err != nil {
		return quota.Decision{}, err
	}
	label := labelOf(a.Labels)
	label.code = codeOf(label.line)
	answer, labels := answerTo(a.Credential, a.Key), labelsKey(a.Credential)
	keys := append([]string{labels, cmp.Or(answer, labels)}, bucketKeys(a.Credential, a.Bucket)...)
	keys = append(keys, sumsKey(a.Credential, a.Bucket), takingsKey(a.Credential, a.Bucket))
	list, err := l.run(ctx, "adjust", keys, adjustNumbers(a), a.ID, label.code, label.line,
		label.run, a.Fingerprint()).Slice()
	if err != nil {
		return quota.Decision{}, explain(err)
	}
	return adjusted(a, reply{list: list})
}

func adjustNumbers(a quota.Adjust) []byte {
	keep, was := quota.RetentionFor(a.Limits), int64(-1)
	if a.Was != nil {
		was = *a.Was
	}
	after, until := a.Span(quota.MaxTotal)
	return numbers{keep.Microseconds(), a.Units, after, until, was, maxRewritten, flag(a.DryRun),
		min(keep, quota.MaxWindow).Milliseconds()}.blob()
}

// adjusted reads the reply of adjust.lua.
func adjusted(a quota.Adjust, reply reply) (quota.Decision, error) {
	switch reply.status() {
	case allowed:
		ints, err := reply.ints(3)
		return a.Done(a.ID, optional(ints[2])), err
	case replayed:
		key := answerTo(a.Credential, a.Key)
		kept, err := parseAnswer(reply.text(), key, 3)
		if err != nil {
			return quota.Decision{}, err
		}
		d := a.Done(kept.id, fromMicro(kept.ints[2]))
		d.Replayed = true
		return d, nil
	case reused:
		return quota.Decision{}, (&request{userKey: a.Key}).refusal(reused, reply)
	case tooLate:
		return quota.Decision{}, fmt.Errorf("%w: more than %d entries of bucket %s came after it",
			quota.ErrNoEntry, maxRewritten, a.Bucket)
	case otherUnits:
		ints, err := reply.ints(2)
		if err != nil {
			return quota.Decision{}, err
		}
		return quota.Decision{}, cmp.Or(a.Refuses(ints[1]), reply.unknown())
	}
	return quota.Decision{}, reply.unknown()
}

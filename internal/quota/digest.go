package quota

import (
	"hash/fnv"
	"strconv"
)

// Digest returns a number that follows from the state and the open holds of the bucket, in any
// order. A store keeps it with them, and refuses a bucket of which it is another one: damage to a
// hold or to the state is never taken for more room.
func (b *Bucket) Digest() int64 {
	s := b.State
	d := digest{}
	d.text(b.Name)
	d.numbers(s.SuspendedUntil, s.SuspendedSince, s.ResetAt, s.Keep, s.Floor)
	d.text(s.SuspendedBy)
	d.text(s.Reason)
	for _, l := range s.Levels {
		d.numbers(l.Num, l.Den, l.At, l.Total, l.Value)
	}
	for _, o := range s.Others {
		d.text(o.Window)
		d.numbers(o.At, o.Units, o.Level)
	}
	sum := d.sum()
	for i := range b.Holds {
		h := &b.Holds[i]
		d.line = d.line[:0]
		d.text(b.Name)
		d.text(h.ID)
		d.numbers(h.Units, h.Most, h.Drawn, h.Created, h.Expires)
		d.text(string(h.Lapse))
		d.text(h.Labels)
		d.text(h.Note)
		d.text(strconv.FormatBool(h.Manual))
		sum += d.sum()
	}
	return int64(sum)
}

// digest is a line of which the sum is taken.
type digest struct{ line []byte }

func (d *digest) numbers(list ...int64) {
	for _, n := range list {
		d.line = append(strconv.AppendInt(d.line, n, 10), ' ')
	}
}

func (d *digest) text(s string) { d.line = append(append(d.line, s...), 0) }

func (d *digest) sum() uint64 {
	h := fnv.New64a()
	h.Write(d.line)
	return h.Sum64()
}

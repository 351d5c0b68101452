// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	. "github.com/evenkeel/evenkeel/pkg/distribute"
)

// FuzzDistribute reads a problem, with health, from any bytes. Bounds, sum and certificate must hold, and fallback
// must honour the bounds and leave nothing uncovered; what is malformed must be an error. An answer that does not come
// is a crash: the fuzzer by itself would wait for it, and look as if it were still minimising.
func FuzzDistribute(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("evenkeel distributes replicas over zones, evenly or by share or by priority"))
	f.Add(binary.LittleEndian.AppendUint64(nil, math.MaxInt64))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer time.AfterFunc(5*time.Second, func() { panic(fmt.Sprintf("no answer for %q", data)) }).Stop()
		r := reader(data)
		total, o := r.count(), Options{Seed: r.word(1)}
		var targets []Target
		var health []Health
		for len(r) > 0 && len(targets) < 64 {
			targets = append(targets, r.target(len(targets)))
			health = append(health, Health{Blocked: r.word(1)%2 == 1, Usable: r.count(), Failed: r.count(), Probe: r.count()})
		}
		result, err := Distribute(total, targets, o)
		if err != nil {
			if sound(targets) {
				t.Fatalf("%d over %+v: %v", total, targets, err)
			}
			return
		}
		if !sound(targets) {
			t.Fatalf("%d over %+v: no error", total, targets)
		}
		checkCounts(t, total, targets, result)
		checkCertificate(t, targets, o, result)
		checkCover(t, total, targets, health, o)
	})
}

// checkCover checks the bounds, that no healthy target has less than without fallback, and that nothing is left uncovered.
func checkCover(t *testing.T, total int64, targets []Target, health []Health, o Options) {
	base, err := Distribute(total, targets, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := WithFallback(total, targets, health, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range r.Replicas {
		if x < targets[i].Min || targets[i].Max != Unbounded && x > targets[i].Max || !health[i].Blocked && x < base.Replicas[i] {
			t.Fatalf("%d over %+v, %+v: %v, without fallback %v", total, targets, health, r.Replicas, base.Replicas)
		}
	}
	// Each fallback may use the total once more: the sums need more than 64 bits.
	covered, health := float64(r.Overflow), probing(health, -1)
	if r, err = WithFallback(total, targets, health, o); err != nil {
		t.Fatal(err)
	}
	for _, x := range willRun(r.Replicas, health) {
		covered += float64(x)
	}
	if covered < float64(total)*(1-1e-12) {
		t.Fatalf("%d over %+v, %+v: %+v covers only %v", total, targets, health, r, covered)
	}
}

// sound tells whether the targets make sense together.
func sound(targets []Target) bool {
	var minima uint64
	for _, t := range targets {
		minima += uint64(t.Min)
		if minima > math.MaxInt64 || t.Max != Unbounded && t.Max < t.Min {
			return false
		}
	}
	return true
}

// reader takes numbers off the front of bytes; after the end it reads zeros.
type reader []byte

func (r *reader) word(size int) uint64 {
	var w [8]byte
	n := copy(w[:size], *r)
	*r = (*r)[n:]
	return binary.LittleEndian.Uint64(w[:])
}

// count reads a size first, so that small and large counts are alike frequent.
func (r *reader) count() int64 { return int64(r.word(int(r.word(1)%9)) & math.MaxInt64) }

func (r *reader) target(i int) Target {
	t := Target{Key: key(i), Tier: int32(r.word(1) % 3), Weight: r.count(), Min: r.count(), Max: Unbounded, Current: r.count()}
	switch r.word(1) % 3 {
	case 0:
		t.Max = r.count()
	case 1:
		t.Max = t.Min + r.count()%100
	}
	return t
}

// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/evenkeel/evenkeel/test/sim"
)

// ledger is what has been written, as known to those who wrote it.
type ledger struct {
	mu      sync.Mutex
	version map[string]string // by name; empty once deleted
	doomed  map[string]bool   // its deletion was requested
	// calls are the creates asked for: true once one was answered with a machine. born is how many machines each of them made,
	// as the server knows.
	calls map[string]bool
	born  map[string]int
}

func newLedger() *ledger {
	return &ledger{version: map[string]string{}, doomed: map[string]bool{}, calls: map[string]bool{}, born: map[string]int{}}
}

// call begins a create, and names it.
func (l *ledger) call() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := fmt.Sprint("call-", len(l.calls))
	l.calls[name] = false
	return name
}

func (l *ledger) answered(call string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[call] = true
}

// follow is a hook of the server.
func (l *ledger) follow(w sim.Write) error {
	if w.Effect == sim.Added {
		l.mu.Lock()
		defer l.mu.Unlock()
		call, _, _ := unstructured.NestedString(w.Object, "metadata", "labels", callLabel)
		l.born[call]++
	}
	return nil
}

// judge expects that each create made one machine, or none where it was answered with an error: what is unknown is looked up (L4.3).
func (l *ledger) judge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for call, answered := range l.calls {
		made := 0
		if answered {
			made = 1
		}
		Expect(l.born[call]).To(Equal(made), "%s, answered with a machine: %t", call, answered)
	}
}

// callLabel names the create that a machine comes from.
const callLabel = "call"

func (l *ledger) doom(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doomed[name] = true
}

func (l *ledger) isDoomed(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.doomed[name]
}

func (l *ledger) note(name, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, known := l.version[name]; known && (old == "" || version != "" && !later(version, old)) {
		return
	}
	l.version[name] = version
}

func (l *ledger) copy() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	copied := map[string]string{}
	for name, version := range l.version {
		copied[name] = version
	}
	return copied
}

func later(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	Expect(err).NotTo(HaveOccurred())
	return order > 0
}

// writer makes random writes and notes those that are known to have happened.
type writer struct {
	lensWorld
	*ledger
	*rand.Rand
}

func (w writer) write() {
	names := []string{}
	for name, version := range w.copy() {
		if version != "" {
			names = append(names, name)
		}
	}
	if len(names) < 3 || w.IntN(3) == 0 {
		m, call := unnamed(), w.call()
		m.Labels = map[string]string{callLabel: call}
		if made, err := w.machines().Create(w, m, metav1.CreateOptions{}); err == nil {
			w.answered(call)
			w.note(made.Name, made.ResourceVersion)
		}
		return
	}
	name := names[w.IntN(len(names))]
	if w.IntN(2) == 0 {
		w.doom(name)
		if err := w.machines().Delete(w, name, metav1.DeleteOptions{}); err == nil || apierrors.IsNotFound(err) {
			w.note(name, "")
		}
		return
	}
	m, err := w.machines().Get(w, name, metav1.GetOptions{})
	if err != nil {
		return
	}
	m.Spec.ProviderID = fmt.Sprint(w.Uint32())
	if m, err = w.machines().Update(w, m, metav1.UpdateOptions{}); err == nil {
		w.note(name, m.ResourceVersion)
	}
}

// check lists as a controller does, and compares with what had been written before.
func (w writer) check() {
	before := w.copy()
	list, err := w.informers.Machines().Lister().List(labels.Everything())
	Expect(err).NotTo(HaveOccurred())
	shown := map[string]string{}
	for _, m := range list {
		shown[m.Name] = m.ResourceVersion
	}
	for name, version := range before {
		switch now, there := shown[name]; {
		case version == "":
			Expect(there).To(BeFalse(), "%s was deleted and is still shown", name)
		case !there:
			Expect(w.isDoomed(name)).To(BeTrue(), "%s is not shown", name)
		default:
			Expect(later(version, now)).To(BeFalse(), "%s is shown at %s, was written at %s", name, now, version)
		}
	}
}

var _ = Describe("In a storm (L4.1, L4.3)", func() {
	It("every list shows every earlier write of every worker, and no create is doubled", func() {
		for seed := range uint64(60) {
			By(fmt.Sprint("seed ", seed))
			inWorld(seed, func(w lensWorld) {
				random := rand.New(rand.NewPCG(seed, 1))
				w.server.Lag("machines", func() time.Duration { return time.Duration(random.Int64N(int64(8 * time.Second))) })
				w.server.Latency(5 * time.Millisecond)
				w.server.FailWrites(float64(seed%4)/10, sim.Either, "ours")
				l := newLedger()
				w.server.AfterWrite(l.follow)
				var workers sync.WaitGroup
				for i := range uint64(4) {
					worker := writer{w, l, rand.New(rand.NewPCG(seed, 2+i))}
					workers.Go(func() {
						defer GinkgoRecover()
						for range 12 {
							worker.write()
							worker.check()
						}
					})
				}
				workers.Wait()
				l.judge()
				stored := map[string]bool{}
				for _, m := range w.stored() {
					stored[m.Name] = true
				}
				for name, version := range l.copy() {
					if version == "" || !l.isDoomed(name) {
						Expect(stored[name]).To(Equal(version != ""), name)
					}
				}
			})
		}
	})
})

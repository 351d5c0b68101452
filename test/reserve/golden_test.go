// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/manager"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// keep is a release whose objects are to be stored, before it is published: go test ./test/reserve -golden=v0.1.0
var keep = flag.String("golden", "", "the release whose objects to store in testdata")

// A golden is what a release stores at one moment: each later one has to understand it.
type golden struct {
	name string
	// play leads to that moment.
	play func(c *cluster)
	// then is what becomes of it, and resting means that nothing is left to write.
	then    string
	resting bool
	// moves is how many pods have to move until then.
	moves int
}

var goldens = []golden{
	{"at-rest", func(c *cluster) { c.work(3); c.pool(3, excess(2), bounds("0:8")); c.settle() }, "3+2 status 2/2 True Complete", true, 0},
	{"replicas-include-the-reserve", func(c *cluster) { c.work(3); c.pool(3, excess(2), bounds("0:8"), inclusive); c.settle() }, "3+2 status 2/2 True Complete", true, 0},
	{"growing", func(c *cluster) {
		c.work(3)
		c.pool(3, excess(2))
		c.settle()
		c.work(1)
		c.scale(4)
		time.Sleep(time.Second)
	}, "4+2 status 2/2 True Complete", false, 0},
	{"machines-named", func(c *cluster) {
		c.work(2)
		c.pool(3, excess(2))
		c.settle()
		c.name(2, c.idle())
	}, "2+2 status 2/2 True Complete", false, 0},
	{"rolling", func(c *cluster) {
		c.work(3)
		c.pool(3, excess(2))
		c.settle()
		c.patch(`{"spec":{"template":{"spec":{"class":{"name":"class-2"}}}}}`)
		time.Sleep(time.Minute)
	}, "3+2 status 2/2 True Complete", false, 2},
}

// idle is a machine that serves, and runs no pod.
func (c *cluster) idle() string {
	GinkgoHelper()
	serving, _ := c.names()
	serving = slices.DeleteFunc(serving, func(m string) bool { return slices.Contains(c.busy(), m) })
	Expect(serving).NotTo(BeEmpty())
	return serving[0]
}

var _ = Describe("What a release has stored", func() {
	if *keep != "" {
		for _, g := range goldens {
			It("is kept: "+g.name, func() { g.store(filepath.Join("testdata", *keep, g.name+".json")) })
		}
	}
	files, err := filepath.Glob("testdata/*/*.json")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		It("is understood by this one: "+file, func() {
			i := slices.IndexFunc(goldens, func(g golden) bool { return g.name+".json" == filepath.Base(file) })
			Expect(i).To(BeNumerically(">=", 0))
			goldens[i].read(file)
		})
	}
	It("is there", func() { Expect(len(files)).To(BeNumerically(">=", len(goldens))) })
})

// store writes what is stored when the process is killed.
func (g golden) store(file string) {
	play(func(c *cluster) {
		g.play(c)
		c.process.Crash()
		text, err := json.MarshalIndent(c.Snapshot(), "", " ")
		Expect(err).NotTo(HaveOccurred())
		Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		Expect(os.WriteFile(file, append(text, '\n'), 0o644)).To(Succeed())
	})
}

// read starts a process, and all others, with what is stored.
func (g golden) read(file string) {
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	storm.Bubble(suite, func() {
		w := storm.NewWorld(sim.Options{Seed: 2, Resources: served}) // another one than that of what is stored: UIDs follow from it
		defer w.End()
		time.Sleep(24 * time.Hour) // all of it is older
		b, err := w.Decode(text)
		Expect(err).NotTo(HaveOccurred())
		w.Restore(b)
		c := inhabit(w)
		moved := c.countMoves()
		c.process = w.Start(evenkeel, manager.Program(machinetaint.Settings{}))
		c.start()
		c.settle()
		Expect(c.numbers()).To(Equal(g.then))
		Expect(*moved).To(Equal(g.moves))
		if g.resting {
			Expect(c.written(0)).To(BeEmpty())
		}
	})
}

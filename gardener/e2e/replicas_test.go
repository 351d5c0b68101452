// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/charts"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// replica is one of several processes of the extension.
type replica struct {
	*localcluster.Process
	name string
}

// startReplicas starts the extension as often as its chart does, behind one address.
func startReplicas(ctx context.Context) (*frontend, []replica) {
	GinkgoHelper()
	front := newFrontend()
	arguments := installObjects(ctx, extensionProgram, extensionNamespace, charts.Extension)
	compile(ctx, extensionProgram, "./cmd/"+extensionProgram)
	var all []replica
	for i := range 2 {
		r := replica{name: fmt.Sprintf("%s-%d", extensionProgram, i)}
		r.Process = startProgram(ctx, extensionProgram, extensionNamespace, r.name, front.port, arguments)
		all = append(all, r)
	}
	return front, all
}

// keepRunning starts a replica again that has ended, as a kubelet does: one ends when it cannot renew its lease in time.
func (r replica) keepRunning() {
	GinkgoHelper()
	if !r.Running() {
		Expect(r.Start()).To(Succeed())
	}
}

// leads reports whether a replica is the leader.
func (r replica) leads() bool {
	GinkgoHelper()
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", must(seedCluster.Port(r.name+"/metrics"))))
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return strings.Contains(string(must(io.ReadAll(response.Body))), `leader_election_master_status{name="evenkeel-leader-election"} 1`)
}

// frontend stands for the Service of the webhooks. It passes connections on to one replica at a time, so that a spec knows which one has
// answered.
type frontend struct {
	listener net.Listener
	port     int
	running  sync.WaitGroup

	mu      sync.Mutex
	backend int
	conns   map[net.Conn]bool
	passed  map[int]bool
}

func newFrontend() *frontend {
	GinkgoHelper()
	port := must(seedCluster.Port(extensionProgram))
	f := &frontend{listener: must(net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))), port: port, conns: map[net.Conn]bool{}, passed: map[int]bool{}}
	f.running.Go(f.accept)
	DeferCleanup(func() {
		Expect(f.listener.Close()).To(Succeed())
		f.cut()
		f.running.Wait()
	})
	return f
}

// use has a replica get all connections from now on. Those to another end.
func (f *frontend) use(r replica) {
	GinkgoHelper()
	port := must(seedCluster.Port(r.name))
	f.mu.Lock()
	f.backend = port
	f.mu.Unlock()
	f.cut()
}

// passedTo reports whether a replica has got a connection.
func (f *frontend) passedTo(r replica) bool {
	GinkgoHelper()
	port := must(seedCluster.Port(r.name))
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.passed[port]
}

// cut ends all connections.
func (f *frontend) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Close()
	}
	clear(f.conns)
}

func (f *frontend) accept() {
	for {
		from, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.running.Go(func() { f.pass(from) })
	}
}

// pass copies what comes from either side, until one of them ends.
func (f *frontend) pass(from net.Conn) {
	defer from.Close()
	f.mu.Lock()
	port := f.backend
	f.mu.Unlock()
	to, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return
	}
	defer to.Close()
	f.mu.Lock()
	f.conns[from], f.conns[to], f.passed[port] = true, true, true
	f.mu.Unlock()
	var copies sync.WaitGroup
	for _, pair := range [][2]net.Conn{{to, from}, {from, to}} {
		copies.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].Close()
		})
	}
	copies.Wait()
}

// hasTwoReplicas plays the extension with as many replicas as its chart has.
func hasTwoReplicas(ctx context.Context) {
	front, replicas := startReplicas(ctx)
	s := writeShoot(ctx, "replicas", stock, newPool("pool", 3, 9, "a"))
	s.withWorkers(ctx)
	s.enable(ctx, reserveOfTwo)
	// A request on a connection that was cut a moment ago has no answer, as of a pod that has just been killed.
	use := func(r replica) {
		GinkgoHelper()
		front.use(r)
		Eventually(func() string {
			r.keepRunning()
			s.deploy(ctx, 1)
			return imageOf(s.manager(ctx))
		}).WithContext(ctx).WithTimeout(soon).Should(Equal(ours))
	}
	changed := func(bounds string) {
		GinkgoHelper()
		s.gardenletWrites(ctx)
		Expect(imageOf(s.manager(ctx))).To(Equal(ours))
		Expect(s.worker.Spec.Pools[0].Annotations).To(HaveKeyWithValue(machine.BoundsAnnotation, bounds))
	}

	By("each replica answers")
	for _, r := range replicas {
		use(r)
		changed("3:9:2")
		Expect(front.passedTo(r)).To(BeTrue())
	}

	By("the leader is killed, and the other one answers, and acts for the next change")
	Eventually(func() bool { return replicas[0].leads() != replicas[1].leads() }).WithContext(ctx).WithTimeout(soon).Should(BeTrue())
	leader, other := replicas[0], replicas[1]
	if other.leads() {
		leader, other = other, leader
	}
	Expect(leader.Kill()).To(Succeed())
	use(other)
	changed("3:9:2")
	s.enable(ctx, config(`[{"name":"pool","excess":1}]`))
	Expect(other.leads()).To(BeTrue())
	changed("3:9:1")

	By("the one that was killed comes back, and answers")
	Expect(leader.Start()).To(Succeed())
	awaitReady(ctx, leader.name)
	use(leader)
	changed("3:9:1")
}

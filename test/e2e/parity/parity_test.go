// SPDX-License-Identifier: Apache-2.0

// Package parity compares what machine-controller-manager writes, ours and the stock one, without any excess.
package parity

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/audit"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	identity = "machine-controller-manager"
	stock    = "github.com/gardener/machine-controller-manager/cmd/" + identity
	// quiet is how long nothing is written at rest. Machine-controller-manager resumes what it has begun after five seconds.
	quiet = 8 * time.Second
	limit = 3 * time.Minute
)

func TestParity(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Parity")
}

// changes are made one after the other, each at rest.
var changes = []struct {
	patch string
	live  int32
}{
	{`{"spec":{"replicas":5}}`, 5},
	{`{"spec":{"replicas":2}}`, 2},
	{`{"spec":{"template":{"metadata":{"labels":{"round":"2"}}}}}`, 2},
	{`{"spec":{"paused":true}}`, 2},
	{`{"spec":{"paused":false,"replicas":0}}`, 0},
}

// writes counts what was written by verb and kind. Status is kept apart: it is what was seen at some instant, and several changes
// that come before one look are one write. So two runs of the same binary differ by a write or two there.
type writes struct{ spec, status map[string]int }

var _ = Describe("Without excess", func() {
	It("Evenkeel writes what stock writes", func(ctx SpecContext) {
		ours := story(ctx, localcluster.Program{Name: identity})
		peer := story(ctx, localcluster.Program{Name: identity, Package: stock, Binary: "stock-" + identity})
		AddReportEntry("ours", ours)
		AddReportEntry("stock", peer)
		By("leaving aside the flags, which are published once for kubectl evenkeel plan")
		Expect(ours.spec).To(HaveKeyWithValue("create configmaps", 1))
		delete(ours.spec, "create configmaps")
		Expect(ours.spec).To(Equal(peer.spec))
		Expect(ours.status).To(HaveLen(len(peer.status)))
		for what, n := range peer.status {
			Expect(ours.status[what]).To(BeNumerically("~", n, n/5), what)
		}
	}, SpecTimeout(20*time.Minute))
})

// story lets a program carry all changes out in a cluster of its own, and returns what that took.
func story(ctx context.Context, program localcluster.Program) writes {
	GinkgoHelper()
	cluster, err := localcluster.Start(ctx, localcluster.Options{Name: "parity", Out: GinkgoWriter, Audit: true, UnsafeNoFsync: true, Fresh: true})
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(cluster.Reset()).To(Succeed()) }()
	Expect(cluster.Apply(ctx, "kubernetes/crds")).To(Succeed())
	program.Kubeconfig, err = cluster.KubeconfigFor(identity, "system:masters")
	Expect(err).NotTo(HaveOccurred())
	for _, p := range []localcluster.Program{{Name: "machine-controller"}, program} {
		_, err := cluster.RunProgram(ctx, p)
		Expect(err).NotTo(HaveOccurred())
	}
	log, err := audit.Open(cluster.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	defer log.Close()

	all := writes{map[string]int{}, map[string]int{}}
	pools := versioned.NewForConfigOrDie(cluster.Config()).MachineV1alpha1().MachineDeployments("default")
	Expect(cluster.Apply(ctx, "test/e2e/parity/pool.yaml")).To(Succeed())
	all.untilRest(ctx, pools, log, 3)
	for _, change := range changes {
		_, err := pools.Patch(ctx, "pool", types.MergePatchType, []byte(change.patch), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		all.untilRest(ctx, pools, log, change.live)
	}
	return all
}

// untilRest counts until all machines are there and nothing has been written for a while.
func (w writes) untilRest(ctx context.Context, pools machineclient.MachineDeploymentInterface, log *audit.Log, live int32) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		pool, err := pools.Get(ctx, "pool", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pool.Status.ObservedGeneration).To(Equal(pool.Generation))
		g.Expect([]int32{pool.Status.Replicas, pool.Status.UpdatedReplicas, pool.Status.AvailableReplicas}).To(HaveEach(live))
	}).WithContext(ctx).WithTimeout(limit).WithPolling(250 * time.Millisecond).Should(Succeed())
	Eventually(func() int {
		select {
		case <-time.After(quiet):
		case <-ctx.Done():
		}
		return w.count(log)
	}).WithContext(ctx).WithTimeout(limit).Should(BeZero())
}

// count adds what has been written since the last time, and returns how much that was.
func (w writes) count(log *audit.Log) int {
	GinkgoHelper()
	requests, err := log.Read(func(r audit.Request) bool { return r.User == identity && r.Writes() && !r.Refused() })
	Expect(err).NotTo(HaveOccurred())
	for _, r := range requests {
		if r.Subresource == "status" {
			w.status[r.Verb+" "+r.Resource]++
		} else {
			w.spec[r.Verb+" "+r.Resource]++
		}
	}
	return len(requests)
}

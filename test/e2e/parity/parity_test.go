// SPDX-License-Identifier: Apache-2.0

// Package parity compares what machine-controller-manager writes, ours and the stock one, without any excess.
package parity

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
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

// history is what a program has made of the changes.
type history struct {
	// created are how many objects were created and deleted, by verb and kind, and changed how many writes changed objects, by kind.
	// Several changes that come before one look are one write.
	created, changed map[string]int
	// rests are what was stored whenever all was at rest.
	rests []rest
}

// rest is what machine-controller-manager has made of the MachineDeployment, with the MachineSets in the order of their creation.
type rest struct {
	Numbers    []int32
	Conditions []string
	Sets       []string
}

var _ = Describe("Without excess", func() {
	It("Evenkeel does what stock does, with no more writes", func(ctx SpecContext) {
		ours := story(ctx, localcluster.Program{Name: identity})
		peer := story(ctx, localcluster.Program{Name: identity, Package: stock, Binary: "stock-" + identity})
		AddReportEntry("ours", fmt.Sprintf("%+v", ours))
		AddReportEntry("stock", fmt.Sprintf("%+v", peer))
		By("leaving aside the flags, which are published once for kubectl evenkeel plan")
		Expect(ours.created).To(HaveKeyWithValue("create configmaps", 1))
		delete(ours.created, "create configmaps")
		Expect(ours.created).To(Equal(peer.created))
		Expect(ours.rests).To(Equal(peer.rests))
		for what, n := range ours.changed {
			Expect(n).To(BeNumerically("<=", peer.changed[what]), what)
		}
	}, SpecTimeout(20*time.Minute))
})

// story lets a program carry all changes out in a cluster of its own, and returns what that took.
func story(ctx context.Context, program localcluster.Program) history {
	GinkgoHelper()
	cluster, err := localcluster.Start(ctx, localcluster.Options{Name: "parity", Out: GinkgoWriter, Audit: true, UnsafeNoFsync: true, Fresh: true})
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(cluster.Reset()).To(Succeed()) }()
	Expect(cluster.Apply(ctx, "kubernetes/crds")).To(Succeed())
	program.Kubeconfig, err = cluster.KubeconfigFor(identity, "system:masters")
	Expect(err).NotTo(HaveOccurred())
	// Leaving machines may freeze a MachineSet. Stock looks at that once a minute unless told otherwise, also to end it.
	program.Flags = []string{"--machine-safety-overshooting-period=2s"}
	for _, p := range []localcluster.Program{{Name: "machine-controller"}, program} {
		_, err := cluster.RunProgram(ctx, p)
		Expect(err).NotTo(HaveOccurred())
	}
	log, err := audit.Open(cluster.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	defer log.Close()

	all := history{created: map[string]int{}, changed: map[string]int{}}
	client := versioned.NewForConfigOrDie(cluster.Config()).MachineV1alpha1()
	pools := client.MachineDeployments("default")
	Expect(cluster.Apply(ctx, "test/e2e/parity/pool.yaml")).To(Succeed())
	all.untilRest(ctx, client, log, 3)
	for _, change := range changes {
		_, err := pools.Patch(ctx, "pool", types.MergePatchType, []byte(change.patch), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		all.untilRest(ctx, client, log, change.live)
	}
	return all
}

// untilRest counts until all machines are there and nothing has been written for a while.
func (h *history) untilRest(ctx context.Context, client machineclient.MachineV1alpha1Interface, log *audit.Log, live int32) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		pool, err := client.MachineDeployments("default").Get(ctx, "pool", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pool.Status.ObservedGeneration).To(Equal(pool.Generation))
		g.Expect([]int32{pool.Status.Replicas, pool.Status.UpdatedReplicas, pool.Status.AvailableReplicas}).To(HaveEach(live))
	}).WithContext(ctx).WithTimeout(limit).WithPolling(250 * time.Millisecond).Should(Succeed())
	Eventually(func() int {
		select {
		case <-time.After(quiet):
		case <-ctx.Done():
		}
		return h.count(log)
	}).WithContext(ctx).WithTimeout(limit).Should(BeZero())
	h.rests = append(h.rests, restOf(ctx, client))
}

// count adds what has been written since the last time, and returns how much that was.
func (h *history) count(log *audit.Log) int {
	GinkgoHelper()
	requests, err := log.Read(func(r audit.Request) bool { return r.User == identity && r.Writes() && !r.Refused() })
	Expect(err).NotTo(HaveOccurred())
	for _, r := range requests {
		switch {
		case r.Verb == "create" || r.Verb == "delete":
			h.created[r.Verb+" "+r.Resource]++
		case r.Subresource == "status":
			h.changed["status of "+r.Resource]++
		default:
			h.changed[r.Resource]++
		}
	}
	return len(requests)
}

// restOf reads what is stored, without names and times.
func restOf(ctx context.Context, client machineclient.MachineV1alpha1Interface) rest {
	GinkgoHelper()
	pool, err := client.MachineDeployments("default").Get(ctx, "pool", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	s := pool.Status
	now := rest{Numbers: []int32{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas}}
	for _, c := range s.Conditions {
		now.Conditions = append(now.Conditions, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(now.Conditions)
	sets, err := client.MachineSets("default").List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	slices.SortFunc(sets.Items, func(a, b mcm.MachineSet) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, set := range sets.Items {
		now.Sets = append(now.Sets, fmt.Sprintf("%d of %d, %d ready, revision %s", set.Status.Replicas, set.Spec.Replicas, set.Status.ReadyReplicas, set.Annotations["deployment.kubernetes.io/revision"]))
	}
	return now
}

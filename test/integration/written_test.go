// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/evenkeel/evenkeel/cmd/machine-controller-manager/app"
	"github.com/evenkeel/evenkeel/pkg/written"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// faults are those of proxies and of API servers under load.
func faults() (all []fault) {
	for _, after := range []bool{false, true} {
		all = append(all, fault{code: 0, after: after})
		for _, code := range []int{500, 502, 503, 504, 429, 401, 403} {
			all = append(all, fault{code: code, after: after})
			if reasons[code] != "" && (code != 403 || !after) {
				all = append(all, fault{code: code, after: after, status: true})
			}
		}
		all = append(all, fault{code: 503, after: after, retryAfter: true}, fault{code: 429, after: after, retryAfter: true})
	}
	return all
}

var _ = Describe("A write through a proxy", func() {
	It("is never taken for refused where the API server stored it, nor for done where it did not", func(ctx SpecContext) {
		direct := versioned.NewForConfigOrDie(cluster.Config()).MachineV1alpha1().Machines("default")
		for _, f := range faults() {
			dealt := newDealer()
			config, err := clientcmd.BuildConfigFromFlags("", faultyProxy(func(*http.Request) *fault { return dealt.next("write", []fault{f}) }))
			Expect(err).NotTo(HaveOccurred())
			m := fixture.Machine("written")
			_, err = versioned.NewForConfigOrDie(config).MachineV1alpha1().Machines("default").Create(ctx, m, metav1.CreateOptions{})
			_, found := direct.Get(ctx, m.Name, metav1.GetOptions{})
			By(f.String() + ": " + string(written.Outcome(err)))
			switch written.Outcome(err) {
			case written.Done:
				Expect(found).NotTo(HaveOccurred(), f.String())
			case written.Refused:
				Expect(apierrors.IsNotFound(found)).To(BeTrue(), f.String())
			case written.Conflict: // client-go sent it twice
				Expect(f.after && f.retryAfter).To(BeTrue(), f.String())
			}
			if found == nil {
				Expect(direct.Delete(ctx, m.Name, metav1.DeleteOptions{})).To(Succeed())
			}
		}
	})

	It("makes no machine too many, though creates get every fault and reads are denied at first", func(ctx SpecContext) {
		const pool = "behind-proxy"
		machines := "/namespaces/default/machines"
		kinds, dealt := faults(), newDealer()
		wanted := 2 * int32(len(kinds))
		kubeconfig := faultyProxy(func(r *http.Request) *fault {
			one := strings.HasSuffix(path.Dir(r.URL.Path), machines)
			switch {
			case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, machines):
				return dealt.everyOther("create", kinds)
			case r.Method == http.MethodGet && one:
				return dealt.next(r.URL.Path, []fault{{code: 429}, {code: 403, status: true}, {code: 401, status: true}})
			}
			return nil
		})
		client := versioned.NewForConfigOrDie(cluster.Config()).MachineV1alpha1()
		seen := seenMachines(ctx)
		ends := runManager("--control-kubeconfig="+kubeconfig, "--target-kubeconfig=none", "--namespace=default", "--controllers=mcm", "--leader-elect=false")
		_, err := client.MachineDeployments("default").Create(ctx, fixture.MachineDeployment(pool, wanted, func(d *v1alpha1.MachineDeployment) { d.Namespace = "default" }), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		// Delays grow to a minute while every other creation fails.
		Eventually(func() int32 { return int32(seen().Len()) }, 4*time.Minute).Should(BeNumerically(">=", wanted))
		Consistently(func() []string { return sets.List(seen()) }, 10*time.Second, time.Second).Should(HaveLen(int(wanted)))
		Expect(dealt.count("create")).To(BeNumerically(">=", len(kinds)), "each fault has struck")
		ends()
	}, NodeTimeout(5*time.Minute))
})

// dealer deals faults out, by what they are for.
type dealer struct {
	mu    sync.Mutex
	dealt map[string]int
}

func newDealer() *dealer { return &dealer{dealt: map[string]int{}} }

// next is each fault in its turn, and none after the last.
func (d *dealer) next(what string, faults []fault) *fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dealt[what]++
	if i := d.dealt[what] - 1; i < len(faults) {
		return &faults[i]
	}
	return nil
}

// everyOther is as next, with none between two of them, so that what fails does not do so ever more slowly.
func (d *dealer) everyOther(what string, faults []fault) *fault {
	turn := "turns of " + what
	d.next(turn, nil)
	if d.count(turn)%2 == 0 {
		return nil
	}
	return d.next(what, faults)
}

func (d *dealer) count(what string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dealt[what]
}

// seenMachines are the names of all Machines that there ever were from now on.
func seenMachines(ctx context.Context) func() sets.Set[string] {
	GinkgoHelper()
	client := versioned.NewForConfigOrDie(cluster.Config()).MachineV1alpha1().Machines("default")
	list, err := client.List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(list.Items).To(BeEmpty())
	events, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	var mu sync.Mutex
	seen := sets.New[string]()
	go func() {
		for e := range events.ResultChan() {
			if m, ok := e.Object.(*v1alpha1.Machine); ok {
				mu.Lock()
				seen.Insert(m.Name)
				mu.Unlock()
			}
		}
	}()
	return func() sets.Set[string] {
		mu.Lock()
		defer mu.Unlock()
		return seen.Clone()
	}
}

// runManager runs the binary beside the spec, until the function returned is called.
func runManager(arguments ...string) (ends func()) {
	GinkgoHelper()
	o := app.NewOptions()
	Expect(o.Flags().Parse(append(arguments, "--port=0", "--kube-api-qps=1000", "--kube-api-burst=1000"))).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx, o) }()
	return func() {
		GinkgoHelper()
		Consistently(ended, time.Second).ShouldNot(Receive())
		cancel()
		Eventually(ended, time.Minute).Should(Receive())
	}
}

// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"sync"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

const (
	// spares is the reserve of a storm, and narrow the max of every other one, which is reached.
	spares = 4
	narrow = 28
)

// reserved gives a new pool of this max a reserve that replicas do not include.
func reserved(limit int32) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) {
		d.Annotations[v1alpha1.AppliedExcessAnnotation] = v1alpha1.AppliedExcess{Machines: spares, Max: &limit}.String()
	}
}

// recount has replicas include the reserve, as far as there is room below max, or not, in one write as the machine-taint controller does.
func (c *cluster) recount(counted bool) {
	GinkgoHelper()
	for {
		d := c.deployment("pool")
		a, r := pool.AppliedOf(d, d.Spec.Replicas), pool.Requested(d)
		if a.Counted = 0; counted {
			a.Counted = max(0, min(a.Excess, narrow-int(r)))
		}
		pool.Apply(d, r, a)
		if _, err := c.ours.MachineDeployments(ns).Update(context.Background(), d, metav1.UpdateOptions{}); err == nil {
			c.Strike(map[bool]string{true: "change to inclusive", false: "change to additive"}[counted])
			return
		}
	}
}

// books watch the server's writes where there is a reserve: replicas do not pass max, and workload takes reserve machines that replicas
// include where there is no room for it otherwise, each once.
type books struct {
	limit int32
	mu    sync.Mutex
	last  *v1alpha1.MachineDeployment
	wrong []string
	// withdrawn counts the machines that were withdrawn.
	withdrawn int
}

func (c *cluster) audited(limit int32) *books {
	b := &books{limit: limit}
	c.AfterWrite(func(w sim.Write) error {
		if w.Resource != "machinedeployments" || w.Subresource != "" {
			return nil
		}
		d := world.Decoded[v1alpha1.MachineDeployment](w.Object)
		b.mu.Lock()
		defer b.mu.Unlock()
		if w.User == serving && b.last != nil {
			b.enter(c, d)
		}
		b.last = d
		return nil
	})
	return b
}

func (b *books) enter(c *cluster, d *v1alpha1.MachineDeployment) {
	was, is := pool.AppliedOf(b.last, b.last.Spec.Replicas), pool.AppliedOf(d, d.Spec.Replicas)
	by, taken := world.Requested(d)-world.Requested(b.last), was.Counted-is.Counted
	switch {
	case by < 0 && d.Annotations[machineutils.TriggerDeletionByMCM] == b.last.Annotations[machineutils.TriggerDeletionByMCM]:
		c.Strike("withdrawal")
		b.withdrawn -= by
	case taken > 0:
		c.Strike("reserve machines taken")
	case by > 0 && was.Counted > 0:
		c.Strike("inclusive raise")
	case by > 0:
		c.Strike("additive raise")
	}
	if was.Excess-is.Excess != taken || taken < 0 || taken > 0 && d.Spec.Replicas != b.limit || d.Spec.Replicas > b.limit {
		b.wrong = append(b.wrong, fmt.Sprintf("replicas from %d to %d, %+v became %+v", b.last.Spec.Replicas, d.Spec.Replicas, was, is))
	}
}

// withdrawals is how many machines have been withdrawn so far.
func (b *books) withdrawals() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.withdrawn
}

// restored begins anew with what a backup contains, which was made after so many machines had been withdrawn.
func (b *books) restored(withdrawn int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last, b.withdrawn = nil, withdrawn
}

func (b *books) verdict() {
	GinkgoHelper()
	b.mu.Lock()
	defer b.mu.Unlock()
	Expect(b.wrong).To(BeEmpty())
}

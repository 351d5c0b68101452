// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// zones are the MachineDeployments of one pool, each in a zone of its own.
type zones []pool

// newZones makes them similar to each other and to no one else's.
func newZones(ctx context.Context, name string, replicas []int32, changes ...func(*machine.MachineDeployment)) zones {
	GinkgoHelper()
	var z zones
	for i, n := range replicas {
		z = append(z, newPool(ctx, fmt.Sprintf("%s-z%d", name, i+1), n, append([]func(*machine.MachineDeployment){func(d *machine.MachineDeployment) {
			d.Labels = map[string]string{"worker.gardener.cloud/pool": name}
			d.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"pool": name}
		}}, changes...)...))
	}
	return z
}

func balanced(mode machine.BalanceMode) func(*machine.MachineDeployment) {
	return func(d *machine.MachineDeployment) {
		d.Annotations = map[string]string{machine.BalanceAnnotation: string(mode)}
	}
}

func poolExcess(text string) func(*machine.MachineDeployment) {
	return func(d *machine.MachineDeployment) {
		d.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{machine.PoolExcessAnnotation: text}
	}
}

func poolExcessPatch(text string) string {
	return fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"annotations":{%q:%q}}}}}}}`, machine.PoolExcessAnnotation, text)
}

func (z zones) patch(ctx context.Context, merge string) {
	GinkgoHelper()
	for _, p := range z {
		p.patch(ctx, merge)
	}
}

func (z zones) annotate(ctx context.Context, key, value string) {
	GinkgoHelper()
	z.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
}

// record returns the machines that were created since.
func (z zones) record(ctx context.Context) (made func() []string) {
	GinkgoHelper()
	var mu sync.Mutex
	var names []string
	present, err := machines.MachineV1alpha1().Machines(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	Expect(err).NotTo(HaveOccurred())
	watching, err := machines.MachineV1alpha1().Machines(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: present.ResourceVersion})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(watching.Stop)
	go func() {
		for e := range watching.ResultChan() {
			m, ok := e.Object.(*machine.Machine)
			if !ok || e.Type != watch.Added {
				continue
			}
			for _, p := range z {
				if m.Labels["name"] == p.name {
					mu.Lock()
					names = append(names, m.Name)
					mu.Unlock()
				}
			}
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), names...)
	}
}

// leastReady returns the smallest number of ready serving machines since.
func (z zones) leastReady(ctx context.Context) func() int {
	ctx, cancel := context.WithCancel(ctx)
	done, least := make(chan struct{}), 1000
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if n, err := z.ready(ctx); err == nil {
				least = min(least, n)
			}
			sleep(ctx, 200*time.Millisecond)
		}
	}()
	return func() int {
		cancel()
		<-done
		return least
	}
}

// ready are all machines that serve and run, and are not named to go.
func (z zones) ready(ctx context.Context) (int, error) {
	n := 0
	for _, p := range z {
		list, err := p.machines(ctx)
		if err != nil {
			return 0, err
		}
		for _, m := range list {
			if m.Status.CurrentStatus.Phase == "Running" && m.Annotations[machine.ReserveAnnotation] == "" && m.DeletionTimestamp == nil {
				n++
			}
		}
	}
	return n, nil
}

func (z zones) hasEvent(ctx context.Context, reason string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		events, err := kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		g.Expect(err).NotTo(HaveOccurred())
		var about []string
		for _, e := range events.Items {
			about = append(about, e.InvolvedObject.Name)
		}
		g.Expect(about).To(ContainElement(z[0].name))
	}).Should(Succeed())
}

// dropReserve deletes the machines of a zone that are in reserve, as a cloud might.
func (p pool) dropReserve(ctx context.Context) {
	GinkgoHelper()
	for _, m := range must(p.machines(ctx)) {
		if m.Annotations[machine.ReserveAnnotation] != "" {
			Expect(machines.MachineV1alpha1().Machines(namespace).Delete(ctx, m.Name, metav1.DeleteOptions{})).To(Succeed())
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// registry decides births as our controller will: so many serve, the rest is reserve. It sees nothing of its own.
type registry struct {
	mu    sync.Mutex
	serve int
	asked []view.Creation
	seen  bool // is everything shown by the store?
	busy  int  // how many decisions are being made
	most  int
	quick bool // leave others no time to come in between
	// during is called while a decision is being made.
	during func(view.Creation)
}

func (r *registry) births() view.CreationOptions {
	return view.CreationOptions{
		ReserveMark: r.born,
		DeploymentOf: func(namespace string, m *v1alpha1.Machine) (types.NamespacedName, bool) {
			return types.NamespacedName{Namespace: namespace, Name: m.Labels["name"]}, m.Labels["name"] != ""
		},
		Seen: func(string) bool { return r.seen },
	}
}

func (r *registry) born(b view.Creation) *machine.Reserve {
	r.mu.Lock()
	r.busy++
	r.most = max(r.most, r.busy)
	r.asked = append(r.asked, b)
	r.mu.Unlock()
	for i := 0; i < 100 && !r.quick; i++ { // room for others to come in between
		runtime.Gosched()
	}
	if r.during != nil {
		r.during(b)
	}
	serving := 0
	for _, other := range b.InProgress {
		if !other.Reserve {
			serving++
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
	if serving < r.serve {
		return nil
	}
	return ptr.To(reserve)
}

func child(deployment string) *v1alpha1.Machine {
	m := fixture.Machine("", func(m *v1alpha1.Machine) { m.Labels = map[string]string{"name": deployment} })
	m.GenerateName = deployment + "-"
	return m
}

func (w world) bear(m *v1alpha1.Machine) (*v1alpha1.Machine, error) {
	return w.seen.Machines(ns).Create(w, m, metav1.CreateOptions{})
}

// stored are the Machines of a MachineDeployment, by whether they serve.
func (w world) stored(deployment string) (serving, reserved int) {
	GinkgoHelper()
	list, err := w.raw.Machines(ns).List(w, metav1.ListOptions{LabelSelector: "name=" + deployment})
	Expect(err).NotTo(HaveOccurred())
	for _, m := range list.Items {
		if m.Annotations[machine.ReserveAnnotation] == "" {
			Expect(template(&m).Spec.Taints).To(BeEmpty())
			serving++
			continue
		}
		Expect(markOf(&m)).To(Equal(reserve))
		Expect(template(&m).Spec.Taints).To(ConsistOf(taint))
		Expect(template(&m).Annotations).To(Equal(reserve.Annotations))
		reserved++
	}
	return serving, reserved
}

var _ = Describe("The creation of a Machine (V9)", func() {
	It("is counted with those under way, however many come at once and however late they are shown", func() {
		r := &registry{serve: 3}
		bornInWorld(r.births(), func(w world) {
			w.server.Latency(time.Second)
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					defer GinkgoRecover()
					m, err := w.bear(child("pool"))
					Expect(err).NotTo(HaveOccurred())
					isViewOfMachine(m)
				})
			}
			all.Wait()
			serving, reserved := w.stored("pool")
			Expect([]int{serving, reserved}).To(Equal([]int{3, 2}))
			Expect(r.most).To(Equal(1), "one decision after another")
			Expect(r.asked[4].InProgress).To(HaveLen(4))
			Expect(r.asked[4].Deployment).To(Equal(types.NamespacedName{Namespace: ns, Name: "pool"}))

			r.seen = true
			_, err := w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[5].InProgress).To(BeEmpty(), "the store shows them all")
		})
	})

	It("does not wait for one of another MachineDeployment, nor count it", func() {
		r := &registry{serve: 1}
		bornInWorld(r.births(), func(w world) {
			decided := make(chan struct{})
			r.during = func(b view.Creation) {
				if b.Deployment.Name == "pool0" {
					<-decided // a lock of all would never get there
				}
			}
			first := make(chan error)
			go func() {
				_, err := w.bear(child("pool0"))
				first <- err
			}()
			synctest.Wait()
			_, err := w.bear(child("pool1"))
			Expect(err).NotTo(HaveOccurred())
			close(decided)
			Expect(<-first).To(Succeed())
			for _, pool := range []string{"pool0", "pool1"} {
				serving, _ := w.stored(pool)
				Expect(serving).To(Equal(1))
			}
		})
	})

	It("is forgotten with its MachineDeployment", func() {
		r := &registry{serve: 1, quick: true}
		bornInWorld(r.births(), func(w world) {
			memory := func() int { return view.Remembered(w.clientset) }
			_, err := w.bear(child("pool-0"))
			Expect(err).NotTo(HaveOccurred())
			Expect(memory()).To(Equal(1))
			r.seen = true
			most := 0
			for i := range 2_000 {
				m, err := w.bear(child(fmt.Sprintf("pool-%d", i)))
				Expect(err).NotTo(HaveOccurred())
				Expect(w.raw.Machines(ns).Delete(w, m.Name, metav1.DeleteOptions{})).To(Succeed())
				most = max(most, memory())
			}
			Expect(most).To(BeNumerically("<=", 17))
		})
	})

	It("is left alone while its MachineDeployment decides, however many others are forgotten meanwhile", func() {
		r := &registry{serve: 1, quick: true}
		deciding, looked := false, 0
		births := r.births()
		own := ""
		births.Seen = func(version string) bool {
			if deciding && version == own {
				looked++ // under no lock of its MachineDeployment
			}
			return false
		}
		bornInWorld(births, func(w world) {
			first, err := w.bear(child("pool-0"))
			Expect(err).NotTo(HaveOccurred())
			own = first.ResourceVersion
			r.during = func(b view.Creation) {
				if b.Deployment.Name != "pool-0" {
					return
				}
				deciding = true
				for i := range 40 { // more than are kept without looking
					_, err := w.bear(child(fmt.Sprintf("pool-%d", i+1)))
					Expect(err).NotTo(HaveOccurred())
				}
				deciding = false
			}
			_, err = w.bear(child("pool-0"))
			Expect(err).NotTo(HaveOccurred())
			Expect(looked).To(BeZero())
			r.during = nil
			_, err = w.bear(child("pool-0"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[len(r.asked)-1].InProgress).To(HaveLen(2))
			_, err = w.bear(child("pool-1"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[len(r.asked)-1].InProgress).To(HaveLen(1), "no store shows it yet")
		})
	})

	It("knows the names of those that were created", func() {
		r := &registry{serve: 9}
		bornInWorld(r.births(), func(w world) {
			first, err := w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			_, err = w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[1].InProgress).To(Equal([]view.InProgress{{Name: first.Name}}))
		})
	})

	It("of a Machine without MachineDeployment, or of a dry run, is not asked about", func() {
		r := &registry{}
		bornInWorld(r.births(), func(w world) {
			_, err := w.bear(child(""))
			Expect(err).To(HaveOccurred()) // a prefix of a name must be a name
			orphan := fixture.Machine("orphan")
			_, err = w.bear(orphan)
			Expect(err).NotTo(HaveOccurred())
			_, err = w.seen.Machines(ns).Create(w, child("pool"), metav1.CreateOptions{DryRun: []string{"All"}})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked).To(BeEmpty())
			m, err := w.raw.Machines(ns).Get(w, "orphan", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Annotations).To(BeEmpty())
		})
	})

	It("leaves what the controllers gave to it as it is: they make many machines of one template", func() {
		r := &registry{}
		bornInWorld(r.births(), func(w world) {
			asked := child("pool")
			before := asked.DeepCopy()
			_, err := w.bear(asked)
			Expect(err).NotTo(HaveOccurred())
			Expect(asked).To(Equal(before))
			_, reserved := w.stored("pool")
			Expect(reserved).To(Equal(1))
		})
	})
})

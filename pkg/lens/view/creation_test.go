// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machinelisters "github.com/gardener/machine-controller-manager/pkg/client/listers/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/fixture"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
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

	It("of an outcome that is unknown counts until it is too old, and is decided once for its name", func() {
		r := &registry{serve: 1}
		bornInWorld(r.births(), func(w world) {
			named := child("pool")
			named.Name, named.GenerateName = "pool-x", ""
			w.failing(w.server.AfterWrite, 1, errLate)
			Expect(second(w.bear(named))).To(HaveOccurred())
			Expect(apierrors.IsAlreadyExists(second(w.bear(named)))).To(BeTrue())
			Expect(r.asked).To(HaveLen(1))
			serving, _ := w.stored("pool")
			Expect(serving).To(Equal(1))

			_, err := w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[1].InProgress).To(Equal([]view.InProgress{{Name: "pool-x"}}))
			time.Sleep(3 * time.Minute)
			_, err = w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[2].InProgress).To(HaveLen(1), "the doubtful one is forgotten, the other is not shown yet")
		})
	})

	It("that is tried again is under way, however long ago the first try was", func() {
		r := &registry{serve: 1}
		bornInWorld(r.births(), func(w world) {
			named := child("pool")
			named.Name, named.GenerateName = "pool-x", ""
			w.failing(w.server.AfterWrite, 1, errLate)
			Expect(second(w.bear(named))).To(HaveOccurred())
			time.Sleep(115 * time.Second)
			w.server.Latency(20 * time.Second)
			var again sync.WaitGroup
			again.Go(func() { _, _ = w.bear(named) })
			time.Sleep(10 * time.Second)
			_, err := w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			again.Wait()
			Expect(r.asked[1].InProgress).To(Equal([]view.InProgress{{Name: "pool-x"}}))
		})
	})

	It("that was refused does not count", func() {
		r := &registry{serve: 1}
		bornInWorld(r.births(), func(w world) {
			w.failing(w.server.OnWrite, 1, apierrors.NewForbidden(v1alpha1.Resource("machines"), "", fmt.Errorf("quota")))
			Expect(apierrors.IsForbidden(second(w.bear(child("pool"))))).To(BeTrue())
			_, err := w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[1].InProgress).To(BeEmpty())
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

	It("is decided alone also if the one before it was refused, and the next one comes meanwhile (V13)", func() {
		r := &registry{serve: 1}
		births := r.births()
		var all sync.WaitGroup
		var next func()
		var first, second sync.Once
		births.Superfluous = func(view.Creation) (err error) {
			first.Do(func() {
				next() // waits for this one
				err = apierrors.NewConflict(v1alpha1.Resource("machines"), "", errors.New("there are enough"))
			})
			return err
		}
		r.during = func(view.Creation) { second.Do(func() { next() }) }
		bornInWorld(births, func(w world) {
			next = func() {
				all.Go(func() {
					defer GinkgoRecover()
					_, err := w.bear(child("pool"))
					Expect(err).NotTo(HaveOccurred())
				})
				for range 1000 {
					runtime.Gosched()
				}
			}
			_, err := w.bear(child("pool"))
			Expect(apierrors.IsConflict(err)).To(BeTrue())
			all.Wait()
			Expect(r.most).To(Equal(1), "one decision after another")
			serving, reserved := w.stored("pool")
			Expect([]int{serving, reserved}).To(Equal([]int{1, 1}))
		})
	})

	It("is not created where it is superfluous, and is not remembered (V13)", func() {
		r := &registry{}
		births, refuse := r.births(), true
		births.Superfluous = func(b view.Creation) error {
			Expect(b.Deployment.Name).To(Equal("pool"))
			if refuse {
				return apierrors.NewConflict(v1alpha1.Resource("machines"), "", errors.New("there are enough"))
			}
			return nil
		}
		bornInWorld(births, func(w world) {
			m, err := w.bear(child("pool"))
			Expect(apierrors.IsConflict(err)).To(BeTrue())
			Expect(m).NotTo(BeNil())
			Expect(r.asked).To(BeEmpty())
			Expect(view.Remembered(w.clientset)).To(BeZero())
			refuse = false
			_, err = w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked).To(HaveLen(1))
		})
	})
})

var _ = Describe("The MachineDeployment of a Machine", func() {
	owned := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
	}
	DescribeTable("is found by way of its MachineSet", func(m *v1alpha1.Machine, found bool) {
		store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		for name, owner := range map[string][]metav1.OwnerReference{"set": owned("MachineDeployment", "pool"), "alone": nil, "odd": owned("Other", "x")} {
			Expect(store.Add(&v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(name), OwnerReferences: owner}})).To(Succeed())
		}
		name, is := view.OwnedThrough(machinelisters.NewMachineSetLister(store))(ns, m)
		Expect(is).To(Equal(found))
		if found {
			Expect(name).To(Equal(types.NamespacedName{Namespace: ns, Name: "pool"}))
		}
	},
		Entry("of its own", ownedBy(owned("MachineSet", "set")), true),
		Entry("no owner", ownedBy(nil), false),
		Entry("another kind of owner", ownedBy(owned("Other", "set")), false),
		Entry("no such MachineSet", ownedBy(owned("MachineSet", "gone")), false),
		Entry("a MachineSet that stands alone", ownedBy(owned("MachineSet", "alone")), false),
		Entry("a MachineSet of another kind of owner", ownedBy(owned("MachineSet", "odd")), false),
		Entry("another MachineSet of that name", ownedBy([]metav1.OwnerReference{{Kind: "MachineSet", Name: "set", UID: "older", Controller: ptr.To(true)}}), false),
	)
})

func ownedBy(owners []metav1.OwnerReference) *v1alpha1.Machine {
	return fixture.Machine("m", func(m *v1alpha1.Machine) { m.OwnerReferences = owners })
}

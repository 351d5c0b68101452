// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// answer is what a request returns: an object with an error, as typed clients do.
type answer struct {
	object any
	err    error
}

func answered(object any, err error) answer { return answer{object, err} }

var _ = Describe("An error", func() {
	const adoption = `{"metadata":{"labels":{"a":"b"}}}`
	update, get, list := metav1.UpdateOptions{}, metav1.GetOptions{}, metav1.ListOptions{}

	It("of the server is passed on by each verb, with an object to read", func() {
		inWorld(func(w world) {
			forbidden := sim.Trouble{Reads: 1, Writes: 1, Only: []sim.Answer{sim.Forbidden}}
			one, deployment := w.machine(), w.deployment()
			set := w.createSet()
			for _, kind := range []string{"machines", "machinesets", "machinedeployments"} {
				w.server.Trouble(kind, forbidden, "ours")
			}
			machines, sets, deployments := w.seen.Machines(ns), w.seen.MachineSets(ns), w.seen.MachineDeployments(ns)
			ctx, stop := context.WithTimeout(w, time.Second) // a write is retried while the object cannot be read
			defer stop()
			for verb, is := range map[string]answer{
				"create a machine":              answered(machines.Create(w, fixture.Machine("x"), metav1.CreateOptions{})),
				"update a machine":              answered(machines.Update(ctx, one, update)),
				"update a machine's status":     answered(machines.UpdateStatus(ctx, one, update)),
				"get a machine":                 answered(machines.Get(w, "m", get)),
				"list machines":                 answered(machines.List(w, list)),
				"patch a machine":               answered(machines.Patch(w, "m", types.MergePatchType, []byte(adoption), metav1.PatchOptions{})),
				"create a deployment":           answered(deployments.Create(w, fixture.MachineDeployment("x", 1), metav1.CreateOptions{})),
				"update a deployment":           answered(deployments.Update(ctx, deployment, update)),
				"update a deployment's status":  answered(deployments.UpdateStatus(ctx, deployment, update)),
				"get a deployment":              answered(deployments.Get(w, "pool", get)),
				"list deployments":              answered(deployments.List(w, list)),
				"update a machine set":          answered(sets.Update(w, set, update)),
				"update a machine set's status": answered(sets.UpdateStatus(w, set, update)),
				"get a machine set":             answered(sets.Get(w, "set", get)),
				"patch a machine set":           answered(sets.Patch(w, "set", types.MergePatchType, []byte(adoption), metav1.PatchOptions{})),
			} {
				Expect(is.err).To(HaveOccurred(), verb)
				Expect(is.object).NotTo(BeNil(), verb)
				Expect(is.object.(runtime.Object).DeepCopyObject()).NotTo(BeNil(), verb)
			}
			Expect(machines.Delete(w, "m", metav1.DeleteOptions{})).To(Satisfy(apierrors.IsForbidden))
			for verb, is := range map[string]answer{
				"watch machines":    answered(machines.Watch(w, list)),
				"watch deployments": answered(deployments.Watch(w, list)),
			} {
				Expect(is.err).To(Satisfy(apierrors.IsForbidden), verb)
				Expect(is.object).To(BeNil(), verb)
			}
		})
	})

	It("of ours comes with an object to read, too", func() {
		inWorld(func(w world) {
			for verb, is := range map[string]answer{
				"patch a machine":     answered(w.seen.Machines(ns).Patch(w, "m", types.JSONPatchType, []byte(adoption), metav1.PatchOptions{})),
				"patch a machine set": answered(w.seen.MachineSets(ns).Patch(w, "set", types.JSONPatchType, []byte(adoption), metav1.PatchOptions{})),
				"patch a deployment":  answered(w.seen.MachineDeployments(ns).Patch(w, "pool", types.MergePatchType, []byte(adoption), metav1.PatchOptions{})),
				"scale a deployment":  answered(w.seen.MachineDeployments(ns).UpdateScale(w, "pool", &autoscalingv1.Scale{}, update)),
				"scale a machine set": answered(w.seen.MachineSets(ns).UpdateScale(w, "set", &autoscalingv1.Scale{}, update)),
			} {
				Expect(is.err).To(Satisfy(apierrors.IsMethodNotSupported), verb)
				Expect(is.object.(runtime.Object).DeepCopyObject()).NotTo(BeNil(), verb)
			}
			old := w.machine()
			old.ResourceVersion = "1"
			m, err := w.seen.Machines(ns).Update(w, old, update)
			Expect(err).To(Satisfy(apierrors.IsConflict))
			Expect(m.Name).To(BeEmpty())
			d := w.deployment()
			d.Spec.Replicas++
			d, err = w.seen.MachineDeployments(ns).Update(w, d, update)
			Expect(err).To(Satisfy(apierrors.IsBadRequest))
			Expect(d.Name).To(BeEmpty())
		})
	})
})

var _ = Describe("A write", func() {
	It("that took effect without an answer returns the view of what is stored", func() {
		inWorld(func(w world) {
			m := w.machine()
			m.Spec.ProviderID = "x"
			w.failing(w.server.AfterWrite, 1, errLate)
			is, err := w.seen.Machines(ns).Update(w, m, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(is.Spec.ProviderID).To(Equal("x"))
			isViewOfMachine(is)
		})
	})

	DescribeTable("without an answer is not taken for done because another client's write looks like it",
		func(decide func(world) func() error, meanwhile, subresource string) {
			inWorld(func(w world) {
				write := decide(w)
				w.failing(w.server.OnWrite, 1, errSilent)
				go func() {
					time.Sleep(10 * time.Millisecond)
					_, _ = w.raw.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(meanwhile), metav1.PatchOptions{}, subresource)
				}()
				Expect(write()).To(Satisfy(apierrors.IsConflict))
			})
		},
		Entry("the status is another", world.updateMachineStatus, `{"status":{"currentStatus":{"phase":"Running"}}}`, "status"),
		Entry("the rest is another", world.updateMachine, `{"status":{"currentStatus":{"phase":"Running"}}}`, "status"),
	)

	It("that took effect without an answer is done although the status was written since", func() {
		inWorld(func(w world) {
			write := w.updateMachine()
			w.failing(w.server.AfterWrite, 1, errSilent)
			go func() {
				time.Sleep(10 * time.Millisecond)
				_, _ = w.raw.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(`{"status":{"currentStatus":{"phase":"Running"}}}`), metav1.PatchOptions{}, "status")
			}()
			Expect(write()).To(Succeed())
		})
	})

	It("ends with its context, and is not sent again", func() {
		inWorld(func(w world) {
			m := w.machine()
			w.server.LatencyOf(func(r sim.Request) (before, after time.Duration) { return 0, time.Minute })
			ctx, stop := context.WithTimeout(w, time.Second)
			defer stop()
			begun := time.Now()
			Expect(second(w.seen.Machines(ns).Update(ctx, m, metav1.UpdateOptions{}))).To(MatchError(context.DeadlineExceeded))
			Expect(time.Since(begun)).To(Equal(time.Second))
		})
	})
})

var _ = DescribeTable("Another attempt may succeed after",
	func(err error, may bool) { Expect(view.MayRetry(err)).To(Equal(may)) },
	Entry("an answer of the server", apierrors.NewInternalError(errors.New("storage")), true),
	Entry("a connection that broke", io.ErrUnexpectedEOF, true),
	Entry("an error of the network", &net.OpError{Op: "dial", Err: errors.New("refused")}, true),
	Entry("not the end of the context", context.Canceled, false),
	Entry("not its deadline, which is also an error of the network", context.DeadlineExceeded, false),
	Entry("not an error before there was a request", errors.New("invalid name"), false),
)

var _ = DescribeTable("What is stored and cannot be read is not restored",
	func(stored string) {
		Expect(second(view.RestoreMachine([]byte(stored), fixture.Machine("m")))).To(MatchError(ContainSubstring("decode object")))
		show, restore := view.Viewing([]view.Spare{*starting(true, 0)}, 0)
		for _, restore := range []func([]byte, *v1alpha1.MachineDeployment) ([]byte, error){view.RestoreDeployment, restore} {
			Expect(second(restore([]byte(stored), show(withExcess(3, "2"))))).To(MatchError(ContainSubstring("decode object")))
		}
	},
	Entry("no JSON", `{`),
	Entry("no object", `[]`),
	Entry("another type", `{"metadata":7}`),
)

var _ = Describe("A dry run", func() {
	It("asks no guard and changes nothing", func() {
		guards := view.Guards{
			Shrink: func(*v1alpha1.MachineSet) (func(*v1alpha1.MachineSet, error), error) { panic("asked") },
			Remove: func(string, string) (string, func(error), error) { panic("asked") },
		}
		inWorldWith(view.Options{Guards: guards}, func(w world) {
			set, all := w.createSet(), []string{metav1.DryRunAll}
			set.Spec.Replicas = 1
			dry, err := w.seen.MachineSets(ns).Update(w, set, metav1.UpdateOptions{DryRun: all})
			Expect(err).NotTo(HaveOccurred())
			Expect(dry.Spec.Replicas).To(BeEquivalentTo(1))
			Expect(w.seen.Machines(ns).Delete(w, "m", metav1.DeleteOptions{DryRun: all})).To(Succeed())
			Expect(w.seen.Machines(ns).Delete(w, "none", metav1.DeleteOptions{DryRun: all})).To(Satisfy(apierrors.IsNotFound))
			Expect(second(w.seen.Machines(ns).Get(w, "m", metav1.GetOptions{}))).To(Succeed())
			now, err := w.raw.MachineSets(ns).Get(w, "set", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(now.Spec.Replicas).To(BeEquivalentTo(3))
		})
	})
})

var _ = Describe("The guard of deletions", func() {
	deleting := func(refusal error) (asked []string, err error) {
		guards := view.Guards{Remove: func(namespace, name string) (string, func(error), error) {
			asked = append(asked, namespace+"/"+name)
			return "", func(error) {}, refusal
		}}
		inWorldWith(view.Options{Guards: guards}, func(w world) { err = w.seen.Machines(ns).Delete(w, "m", metav1.DeleteOptions{}) })
		return asked, err
	}

	It("is told the namespace and the name, and without a version any version is deleted", func() {
		asked, err := deleting(nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(asked).To(Equal([]string{ns + "/m"}))
	})

	It("has its refusal passed on", func() {
		_, err := deleting(errServer)
		Expect(err).To(Equal(errServer))
	})
})

var _ = Describe("A clientset without options", func() {
	It("creates Machines as they are, shows MachineDeployments, and omits nothing from their status", func() {
		inWorld(func(w world) {
			m, err := w.seen.Machines(ns).Create(w, fixture.Machine("new"), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Name).To(Equal("new"))
			d := withExcess(1, "4")
			d.Name = "other"
			made, err := w.seen.MachineDeployments(ns).Create(w, d, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(made.Spec.Replicas).To(BeEquivalentTo(5))
			Expect(w.deployment().Status.Replicas).To(BeZero())
		})
	})
})

var _ = It("A clientset with spares shows them in each status", func() {
	r := view.Reserve{Starting: []view.Spare{*starting(true, 0)}, Ready: 1}
	inWorldWith(view.Options{Spares: func(*v1alpha1.MachineDeployment) view.Reserve { return r }}, func(w world) {
		status := w.deployment().Status
		Expect(status.Replicas).To(BeEquivalentTo(1))
		Expect(status.UnavailableReplicas).To(BeEquivalentTo(1))
	})
})

var _ = Describe("Creations under way", func() {
	var (
		asked []view.Creation
		clock *clocktesting.FakePassiveClock
		begin func(string, *v1alpha1.Machine) (*v1alpha1.Machine, func(*v1alpha1.Machine, error), error)
		mark  *machine.Reserve
	)
	start := func(name string) func(*v1alpha1.Machine, error) {
		GinkgoHelper()
		_, done, err := begin(ns, fixture.Machine(name))
		Expect(err).NotTo(HaveOccurred())
		return done
	}
	BeforeEach(func() {
		asked, mark, clock = nil, &reserve, clocktesting.NewFakePassiveClock(since)
		begin = view.Beginner(view.CreationOptions{
			ReserveMark: func(c view.Creation) *machine.Reserve { asked = append(asked, c); return mark },
			DeploymentOf: func(string, *v1alpha1.Machine) (types.NamespacedName, bool) {
				return types.NamespacedName{Name: "pool"}, true
			},
			Seen: func(string) bool { return false },
		}, clock)
	})

	It("are passed on with their names, and whether they are for the reserve", func() {
		start("a")
		mark = nil
		start("b")
		start("c")
		Expect(asked[2].InProgress).To(Equal([]view.InProgress{{Name: "a", Reserve: true}, {Name: "b"}}))
		start("b")
		Expect(asked).To(HaveLen(3), "it has been decided already")
	})

	It("count for two minutes if their outcome is unknown", func() {
		start("a")(nil, errSilent)
		clock.SetTime(since.Add(2 * time.Minute))
		start("b")
		Expect(asked[1].InProgress).To(HaveLen(1))
		clock.SetTime(since.Add(2*time.Minute + 1))
		start("c")
		Expect(asked[2].InProgress).To(Equal([]view.InProgress{{Name: "b", Reserve: true}}))
	})
})

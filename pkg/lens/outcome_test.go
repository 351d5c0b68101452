// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/written"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var (
	serverError = apierrors.NewInternalError(errors.New("etcd is having a moment"))
	tooLate     = apierrors.NewTimeoutError("too late", 0)
	forbidden   = apierrors.NewForbidden(machineResource, "", errors.New("no"))
	noAnswer    = io.ErrUnexpectedEOF

	throttled    = apierrors.NewTooManyRequests("too many requests", 0)
	unauthorized = apierrors.NewUnauthorized("token has expired")
)

// firstly makes a hook that fails the first n writes of ours.
func firstly(n int, err error) func(sim.Write) error {
	return func(sim.Write) error {
		if n--; n >= 0 {
			return err
		}
		return nil
	}
}

// pauses is how long this many pauses between attempts take: each is twice as long as the one before it.
func pauses(n int) time.Duration { return (1<<n - 1) * 50 * time.Millisecond }

// requests are the verbs of the requests that the clientset makes from now on.
func (w lensWorld) requests() *[]string {
	verbs := &[]string{}
	w.server.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if r.User == "ours" {
			*verbs = append(*verbs, r.Verb)
		}
		return 0, 0
	})
	return verbs
}

// overtaken makes a create fail, and lets another client take its name after the lookup found nothing and before the create is repeated.
func overtaken(w lensWorld, ours *v1alpha1.Machine, change func(*v1alpha1.Machine)) (*v1alpha1.Machine, error) {
	looked := make(chan string, 1)
	w.server.OnWrite(firstly(1, noAnswer))
	w.server.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if r.User == "ours" && r.Verb == "get" {
			looked <- r.Name
		}
		return 0, 0
	})
	go func() {
		defer GinkgoRecover()
		m := machine(<-looked)
		change(m)
		time.Sleep(10 * time.Millisecond)
		world.Create(w.others.Machines(ns), m)
		<-looked
	}()
	return w.machines().Create(w, ours, metav1.CreateOptions{})
}

var _ = Describe("An unknown outcome (L4.3)", func() {
	DescribeTable("of a create is settled: there is one machine, and no error",
		func(err error, prepare func(*sim.Server, func(sim.Write) error)) {
			inWorld(1, func(w lensWorld) {
				w.server.Lag("machines", sim.Constantly(lag))
				prepare(w.server, firstly(2, err))
				made, err := w.machines().Create(w, unnamed(), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(w.listed()).To(ConsistOf(made.Name))
				Expect(w.stored()).To(HaveLen(1))
				Expect(made.Name).To(MatchRegexp(`^pool-[a-z0-9]{5}$`))
				Expect(w.count("evenkeel_lens_unknown_outcomes_total")).NotTo(BeZero())
			})
		},
		Entry("server error before the effect", serverError, (*sim.Server).OnWrite),
		Entry("server error after the effect", serverError, (*sim.Server).AfterWrite),
		Entry("timeout before the effect", tooLate, (*sim.Server).OnWrite),
		Entry("timeout after the effect", tooLate, (*sim.Server).AfterWrite),
		Entry("no answer, before the effect", noAnswer, (*sim.Server).OnWrite),
		Entry("no answer, after the effect", noAnswer, (*sim.Server).AfterWrite),
		Entry("throttled", throttled, (*sim.Server).OnWrite),
		Entry("throttled, after an attempt that took effect", throttled, (*sim.Server).AfterWrite),
		Entry("an expired token", unauthorized, (*sim.Server).OnWrite),
		Entry("an expired token, after an attempt that took effect", unauthorized, (*sim.Server).AfterWrite),
	)

	DescribeTable("of a create is settled by a name like those that the API server generates: whatever the prefix, it can be the value of a label",
		func(prefix, kept int) {
			inWorld(1, func(w lensWorld) {
				m := unnamed()
				m.GenerateName = strings.Repeat("p", prefix)
				made, err := w.machines().Create(w, m, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(made.Name).To(MatchRegexp("^p{%d}[a-z0-9]{5}$", kept))
			})
		},
		Entry("a short prefix", 10, 10),
		Entry("one that leaves room for the suffix", 58, 58),
		Entry("one that is too long by a character", 59, 58),
		Entry("a long one", 200, 58),
	)

	DescribeTable("of a create is looked up until the API server shows it or denies that there is one",
		func(answer sim.Answer) {
			inWorld(1, func(w lensWorld) {
				w.server.AfterWrite(firstly(1, tooLate))
				w.server.Trouble("machines", sim.Trouble{Reads: 1, Only: []sim.Answer{answer}}, "ours")
				go func() {
					time.Sleep(10 * time.Minute)
					w.server.Trouble("machines", sim.Trouble{}, "ours")
				}()
				made, err := w.machines().Create(w, unnamed(), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(w.stored()).To(ConsistOf(HaveField("Name", made.Name)))
			})
		},
		Entry("and not throttles", sim.Throttled),
		Entry("and not asks who is there", sim.Unauthorized),
		Entry("and not denies the read", sim.Forbidden),
		Entry("and not fails", sim.Failed),
		Entry("and no proxy answers in its place", sim.BadGateway),
	)

	It("of a create stays unknown if the attempt after it is refused, since the first may still be under way", func() {
		inWorld(1, func(w lensWorld) {
			requests := 0
			w.server.OnWrite(func(sim.Write) error {
				if requests++; requests == 1 {
					return noAnswer
				}
				return forbidden
			})
			_, err := w.machines().Create(w, unnamed(), metav1.CreateOptions{})
			Expect(written.Outcome(err)).To(Equal(written.Unknown), "%v", err)
			Expect(requests).To(Equal(2))
		})
	})

	It("of a create that is still under way makes no second one", func() {
		inWorld(1, func(w lensWorld) {
			made, err := overtaken(w, unnamed(), func(*v1alpha1.Machine) {})
			Expect(err).NotTo(HaveOccurred())
			Expect(w.stored()).To(HaveLen(1))
			Expect(w.listed()).To(ConsistOf(made.Name))
		})
	})

	It("of a create is not mistaken for another owner's machine", func() {
		inWorld(1, func(w lensWorld) {
			_, err := overtaken(w, unnamed(), func(m *v1alpha1.Machine) { m.OwnerReferences[0].UID = "another" })
			Expect(apierrors.IsAlreadyExists(err)).To(BeTrue())
		})
	})

	It("of a create waits for a server that has gone away in the middle", func() {
		inWorld(1, func(w lensWorld) {
			w.server.AfterWrite(firstly(1, noAnswer))
			w.server.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.Verb == "create" {
					return 0, time.Second
				}
				return 0, 0
			})
			go func() {
				time.Sleep(500 * time.Millisecond)
				w.server.Down(true)
				time.Sleep(10 * time.Minute)
				w.server.Down(false)
			}()
			made, err := w.machines().Create(w, unnamed(), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(w.stored()).To(HaveLen(1))
			Expect(w.listed()).To(ConsistOf(made.Name))
		})
	})

	It("of a create is reported if the server goes on failing without effect", func() {
		inWorld(1, func(w lensWorld) {
			requests := 0
			w.server.OnWrite(func(sim.Write) error { requests++; return serverError })
			Expect(took(func() {
				made, err := w.machines().Create(w, unnamed(), metav1.CreateOptions{})
				Expect(apierrors.IsInternalError(err)).To(BeTrue())
				Expect(made).NotTo(BeNil())
			})).To(Equal(pauses(4)))
			Expect(requests).To(Equal(5))
			Expect(w.count("evenkeel_lens_unknown_outcomes_total")).To(BeEquivalentTo(5))
			Expect(w.stored()).To(BeEmpty())
		})
	})

	It("is not what a refusal is: that is passed on at once", func() {
		inWorld(1, func(w lensWorld) {
			requests := 0
			w.server.OnWrite(func(sim.Write) error { requests++; return forbidden })
			_, err := w.machines().Create(w, unnamed(), metav1.CreateOptions{})
			Expect(apierrors.IsForbidden(err)).To(BeTrue())
			Expect(requests).To(Equal(1))
		})
	})

	DescribeTable("of a deletion is settled: the machine leaves, and no error",
		func(err error, prepare func(*sim.Server, func(sim.Write) error), requests []string, finalizers ...string) {
			inWorld(1, func(w lensWorld) {
				w.create(machine("a", finalizers...))
				w.server.Lag("machines", sim.Constantly(lag))
				prepare(w.server, firstly(1, err))
				requested := w.requests()
				Expect(w.machines().Delete(w, "a", metav1.DeleteOptions{})).To(Succeed())
				Expect(*requested).To(Equal(requests))
				Expect(w.listed()).NotTo(ContainElement("a"))
			})
		},
		Entry("before the effect", serverError, (*sim.Server).OnWrite, []string{"delete", "get", "delete"}, finalizer),
		Entry("after the effect", serverError, (*sim.Server).AfterWrite, []string{"delete", "get"}, finalizer),
		Entry("before the effect, gone at once", noAnswer, (*sim.Server).OnWrite, []string{"delete", "get", "delete"}),
		Entry("after the effect, gone at once", noAnswer, (*sim.Server).AfterWrite, []string{"delete", "get"}),
	)

	It("of a deletion that is still under way is no error", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a"))
			w.server.OnWrite(firstly(1, noAnswer))
			go func() { // after it was looked up in vain, before it is repeated
				time.Sleep(10 * time.Millisecond)
				_ = w.others.Machines(ns).Delete(w, "a", metav1.DeleteOptions{})
			}()
			Expect(w.machines().Delete(w, "a", metav1.DeleteOptions{})).To(Succeed())
			Expect(w.listed()).To(BeEmpty())
		})
	})

	It("of a deletion is reported if the server goes on failing without effect", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a", finalizer))
			requests := 0
			w.server.OnWrite(func(sim.Write) error { requests++; return serverError })
			Expect(took(func() {
				Expect(apierrors.IsInternalError(w.machines().Delete(w, "a", metav1.DeleteOptions{}))).To(BeTrue())
			})).To(Equal(pauses(4)))
			Expect(requests).To(Equal(5))
			Expect(w.count("evenkeel_lens_unknown_outcomes_total")).To(BeEquivalentTo(5))
			Expect(w.listed()).To(ConsistOf("a"))
		})
	})

	It("of an update is reported, and what it has done is awaited", func() {
		inWorld(1, func(w lensWorld) {
			made := w.create(machine("a")).DeepCopy()
			w.server.Lag("machines", sim.Constantly(lag))
			w.server.AfterWrite(firstly(1, tooLate))
			made.Spec.ProviderID = "x"
			_, err := w.machines().Update(w, made, metav1.UpdateOptions{})
			Expect(apierrors.IsTimeout(err)).To(BeTrue())
			Expect(w.count("evenkeel_lens_unknown_outcomes_total")).To(BeEquivalentTo(1))
			Expect(w.listed()).To(ConsistOf("a"))
			held, err := w.informers.Machines().Lister().Machines(ns).Get("a")
			Expect(err).NotTo(HaveOccurred())
			Expect(held.Spec.ProviderID).To(Equal("x"))
		})
	})

	It("ends with the clientset", func() {
		inWorld(1, func(w lensWorld) {
			w.server.AfterWrite(func(sim.Write) error { return noAnswer })
			go func() {
				time.Sleep(time.Second)
				w.stop()
			}()
			w.server.Down(true)
			Expect(took(func() {
				_, err := w.machines().Create(w, unnamed(), metav1.CreateOptions{})
				Expect(err).To(HaveOccurred())
			})).To(Equal(time.Second))
		})
	})
})

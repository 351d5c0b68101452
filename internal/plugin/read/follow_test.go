// SPDX-License-Identifier: Apache-2.0

package read_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/internal/plugin/read"
)

// since matches the beginning of a loss.
var since = regexp.MustCompile(`since \S+ UTC`)

var _ = Describe("Following", func() {
	It("shows changes, and signals that there are some", func() {
		play(everything(), func(s scene) {
			s.deployment("a")
			f, err := s.clusters(s.ConfigFor("reader")).Follow(s)
			Expect(err).NotTo(HaveOccurred())
			synctest.Wait()
			Expect(f.Objects().Deployments).To(HaveLen(1))
			Expect(f.Changed()).To(Receive())
			Expect(f.Changed()).NotTo(Receive(), "one word is enough for many changes")
			s.deployment("b")
			s.pod("p")
			synctest.Wait()
			Expect(f.Changed()).To(Receive())
			Expect(f.Objects().Deployments).To(HaveLen(2))
			Expect(f.Objects().Pods).To(HaveLen(1))
		})
	})

	It("follows no more objects of a kind than the limit: at the start, and when their number grows", func() {
		play(everything(), func(s scene) {
			for i := range 3 {
				s.pod(fmt.Sprint("p", i))
			}
			s.deployment("d0")
			c := s.clusters(s.ConfigFor("reader"))
			SetMost(&c, 2)
			f, err := c.Follow(s)
			Expect(err).NotTo(HaveOccurred())
			pods := "pods: more than 2 exist, too many to follow; all are omitted"
			o := f.Objects()
			Expect(o.Pods).To(BeEmpty())
			Expect(o.PodsUnknown).To(BeTrue())
			Expect(o.Missing).To(Equal([]string{pods}))
			Expect(o.Deployments).To(HaveLen(1))
			s.deployment("d1")
			time.Sleep(time.Second)
			Expect(f.Objects().Deployments).To(HaveLen(2))
			s.deployment("d2")
			time.Sleep(time.Second)
			o = f.Objects()
			Expect(o.Deployments).To(BeEmpty())
			Expect([]bool{o.MachinesUnknown, o.NodesUnknown}).To(Equal([]bool{true, false}))
			Expect(o.Missing).To(Equal([]string{"machinedeployments: more than 2 exist, too many to follow; all are omitted", pods}))
		})
	})

	It("misses no object if a list expires between two of its pages", func() {
		play(everything(), func(s scene) {
			for i := range 600 {
				s.pod(fmt.Sprint("p", i))
			}
			s.WatchLists(false)
			target := s.ConfigFor("reader")
			expiring := &expiry{RoundTripper: target.Transport}
			target.Transport = expiring
			f, err := s.clusters(target).Follow(s)
			Expect(err).NotTo(HaveOccurred())
			Expect(expiring.done).To(BeTrue())
			Expect(f.Objects().Pods).To(HaveLen(600))
			Expect(f.Objects().Missing).To(BeEmpty())
		})
	})

	It("reports what is not up to date while a cluster does not answer, and no longer", func() {
		play(everything(), func(s scene) {
			s.deployment("a")
			f, err := s.clusters(s.ConfigFor("target")).Follow(s)
			Expect(err).NotTo(HaveOccurred())
			s.Down(true, "target")
			time.Sleep(time.Minute)
			Expect(f.Objects().Missing).To(ConsistOf(HavePrefix("capacitybuffers: not up to date since 00:0"), HavePrefix("nodes: not up to date since 00:0"), HavePrefix("pods: not up to date since 00:0"), HavePrefix("provisioningrequests: not up to date since 00:0")))
			Expect(f.Objects().Deployments).To(HaveLen(1))
			Expect(f.Changed()).To(Receive())
			began := since.FindAllString(strings.Join(f.Objects().Missing, "\n"), -1)
			time.Sleep(5 * time.Minute)
			Expect(since.FindAllString(strings.Join(f.Objects().Missing, "\n"), -1)).To(Equal(began), "when that began, not when it was tried last")
			s.Down(false, "target")
			time.Sleep(5 * time.Minute)
			Expect(f.Objects().Missing).To(BeEmpty())
		})
	})

	It("does not ask again for what could not be read when it began", func() {
		play(everything(), func(s scene) {
			f, err := s.clusters(refusing(s.ConfigFor("reader"), "pods", http.StatusForbidden)).Follow(s)
			Expect(err).NotTo(HaveOccurred())
			Expect(f.Objects().Missing).To(Equal([]string{"pods: no rights to list them"}))
			Expect(f.Objects().PodsUnknown).To(BeTrue())
		})
	})

	It("begins without a target cluster that is silent, as soon as a look does", func() {
		play(everything(), func(s scene) {
			s.deployment("a")
			c := s.clusters(s.ConfigFor("target"))
			s.Silence(true, "target")
			began := time.Now()
			o := once(s, c)
			patience := time.Since(began)
			began = time.Now()
			f, err := c.Follow(s)
			Expect(err).NotTo(HaveOccurred())
			Expect(time.Since(began)).To(Equal(patience))
			Expect(f.Objects().Missing).To(Equal(o.Missing))
			Expect(f.Objects().Deployments).To(HaveLen(1))
		})
	})

	It("shows a target cluster that was silent when it began as soon as it answers", func() {
		play(everything(), func(s scene) {
			c := s.clusters(s.ConfigFor("target"))
			s.Silence(true, "target")
			f, err := c.Follow(s)
			Expect(err).NotTo(HaveOccurred())
			s.pod("p")
			time.Sleep(10 * time.Minute)
			Expect(f.Objects().Missing).To(ConsistOf(HavePrefix("capacitybuffers, nodes, pods, provisioningrequests: the target cluster does not answer: ")))
			s.Silence(false, "target")
			time.Sleep(time.Minute)
			o := f.Objects()
			Expect(o.Missing).To(BeEmpty())
			Expect([]bool{o.NodesUnknown, o.PodsUnknown}).To(Equal([]bool{false, false}))
			Expect(o.Pods).To(HaveLen(1))
		})
	})

	It("reports what a target cluster refuses that was silent when it began, and not what few clusters have", func() {
		play(everything(), func(s scene) {
			target := s.ConfigFor("target")
			target.Transport = late{refusal{target.Transport, "/nodes", http.StatusForbidden}}
			target.Transport = late{refusal{target.Transport, "/capacitybuffers", http.StatusNotFound}}
			c := s.clusters(target)
			s.Silence(true, "target")
			f, err := c.Follow(s)
			Expect(err).NotTo(HaveOccurred())
			Expect(f.Objects().Missing).To(ConsistOf(HavePrefix("capacitybuffers, nodes, pods, provisioningrequests: the target cluster does not answer: ")))
			s.Silence(false, "target")
			time.Sleep(time.Minute)
			Expect(f.Objects().Missing).To(Equal([]string{"nodes: no rights to list them"}))
			Expect(f.Objects().NodesUnknown).To(BeTrue())
		})
	})

	It("does not begin where the control cluster does not answer", func() {
		play(everything(), func(s scene) {
			c := s.clusters(s.ConfigFor("reader"))
			s.Down(true, "reader")
			_, err := c.Follow(s)
			Expect(err).To(HaveOccurred())
		})
	})
})

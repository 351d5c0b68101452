// SPDX-License-Identifier: Apache-2.0

// Package scheduler compares what package fit decides with what the scheduler's own code decides.
package scheduler

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/fit/devices"
)

func TestScheduler(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Scheduler")
}

// answer is what became of a pod; see hack/localcluster/devices.
type answer struct {
	Refused map[string]string
	Node    string
	Devices []string
}

// scheduler answers problems with the scheduler's own plugin.
type scheduler struct {
	in  *json.Encoder
	out *json.Decoder
}

func start() *scheduler {
	GinkgoHelper()
	binary := filepath.Join(GinkgoT().TempDir(), "devices")
	build := exec.Command("go", "build", "-o", binary, "./devices")
	build.Dir = "../../hack/localcluster"
	text, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(text))
	run := exec.Command(binary)
	in, err := run.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	out, err := run.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	run.Stderr = GinkgoWriter
	Expect(run.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(in.Close()).To(Succeed())
		_, err := io.ReadAll(out)
		Expect(err).NotTo(HaveOccurred())
		Expect(run.Wait()).To(Succeed())
	})
	return &scheduler{json.NewEncoder(in), json.NewDecoder(out)}
}

func (s *scheduler) solve(p *problem) (answers []answer) {
	GinkgoHelper()
	Expect(s.in.Encode(p)).To(Succeed())
	Expect(s.out.Decode(&answers)).To(Succeed())
	Expect(answers).To(HaveLen(len(p.Pods)))
	return answers
}

// count is how many answers were compared.
type count struct {
	problems, answers, fitting, undecided, chosen int
	// rare are the answers and undecided ones of problems with one rare thing, by its name.
	rare map[string][2]int
}

func (c count) share() float64 { return float64(c.undecided) / float64(c.answers) }

// compare compares the answers about one problem. It ends where the scheduler places a pod that is
// unclear: what is left then is not known.
func (c *count) compare(p *problem, answers []answer, listing devices.Listing, selectors *devices.Selectors) {
	GinkgoHelper()
	c.problems++
	inventory := devices.New(listing, selectors)
	lookups := &fit.Lookups{Devices: inventory}
	var nodes []fit.Node
	for _, n := range p.Nodes {
		n = n.DeepCopy()
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100")}
		nodes = append(nodes, fit.Node{Object: n})
	}
	room := fit.NewRoom(nodes)
	taken := map[string][]fit.Device{}
	for i, pod := range listing.Waiting {
		read, a := fit.NewPod(pod, lookups), answers[i]
		for _, n := range nodes {
			c.judge(p, read, n.Object.Name, room.Ask(read, n.Object.Name), a)
		}
		if a.Node == "" {
			continue
		}
		if read.Unclear != "" {
			return
		}
		claims, err := inventory.Claimed(pod)
		Expect(err).NotTo(HaveOccurred())
		if claims != nil && room.Ask(read, a.Node) == fit.Fits {
			i := slices.IndexFunc(p.Nodes, func(n *corev1.Node) bool { return n.Name == a.Node })
			got := claims.Allocate(p.Nodes[i], taken[a.Node], math.MaxInt).Devices
			Expect(sorted(got)).To(Equal(sorted(a.Devices)), "devices of %s on %s\n%s", pod.Name, a.Node, describe(p))
			c.chosen += len(got)
			taken[a.Node] = append(taken[a.Node], got...)
		}
		room.Put(read, a.Node)
	}
}

// listing is what fit knows: all; or what is kept of it; or neither claims that were made for pods nor that they were.
func (p *problem) listing(kind uint64) devices.Listing {
	l := devices.Listing{Slices: p.Slices, Classes: p.Classes, Claims: p.Claims, Templates: p.templates, Waiting: p.Pods}
	if kind == 0 || kind == 2 && len(p.odd) > 0 {
		return l
	}
	l.Claims, l.Templates, l.Waiting = nil, nil, nil
	for _, c := range p.Claims {
		if kind == 1 || len(c.OwnerReferences) == 0 || c.Status.Allocation != nil {
			l.Claims = append(l.Claims, devices.Slim(c))
		}
	}
	for _, t := range p.templates {
		l.Templates = append(l.Templates, devices.SlimTemplate(t))
	}
	for _, pod := range p.Pods {
		slim := fit.Slim(pod)
		slim.Status.ResourceClaimStatuses = slices.DeleteFunc(slices.Clone(slim.Status.ResourceClaimStatuses), func(s corev1.PodResourceClaimStatus) bool {
			return !slices.ContainsFunc(l.Claims, func(c *resourceapi.ResourceClaim) bool { return c.Name == *s.ResourceClaimName })
		})
		l.Waiting = append(l.Waiting, slim)
	}
	return l
}

func (c *count) judge(p *problem, pod *fit.Pod, node string, got fit.Obstacle, a answer) {
	GinkgoHelper()
	c.answers++
	if len(p.odd) == 1 {
		n := c.rare[p.odd[0]]
		n[0]++
		if got == fit.Undecided {
			n[1]++
		}
		c.rare[p.odd[0]] = n
	}
	why, refused := a.Refused[node]
	switch {
	case got == fit.Undecided:
		c.undecided++
	case (got == fit.Fits) == refused:
		Fail(fmt.Sprintf("%s on %s: %q, and the scheduler says %q\n%s", pod.Name(), node, got, why, describe(p)))
	case got == fit.Fits:
		c.fitting++
	}
}

func sorted[T ~string](all []T) []string {
	words := []string{}
	for _, one := range all {
		words = append(words, string(one))
	}
	slices.Sort(words)
	return words
}

func describe(p *problem) string {
	text, _ := json.Marshal(p)
	return strings.Join(p.odd, ", ") + "\n" + string(text)
}

// problems is how many problems of each kind are compared; DEVICES=n sets it.
func problems() uint64 {
	n, err := strconv.ParseUint(os.Getenv("DEVICES"), 10, 64)
	if err != nil {
		return 1000
	}
	return n
}

var _ = Describe("Where a pod with claims to devices can run", func() {
	compareAll := func(ordinary bool) (c count) {
		GinkgoHelper()
		s, selectors := start(), devices.NewSelectors()
		c.rare = map[string][2]int{}
		for seed := range problems() {
			p := drawProblem(seed, ordinary)
			c.compare(p, s.solve(p), p.listing(seed%3), selectors)
		}
		AddReportEntry("compared", fmt.Sprintf("%+v, %.1f %% undecided", c, 100*c.share()))
		return c
	}

	It("is what the scheduler decides, and is mostly decided", func() {
		c := compareAll(true)
		Expect(c.share()).To(BeNumerically("<", 0.01))
		Expect(c.fitting).To(BeNumerically(">", c.answers/10))
	})

	It("is what the scheduler decides or is not decided, whatever is rare in the cluster", func() {
		c := compareAll(false)
		Expect(c.share()).To(BeNumerically("<", 0.5))
		Expect(c.fitting).To(BeNumerically(">", c.answers/20))
	})
})

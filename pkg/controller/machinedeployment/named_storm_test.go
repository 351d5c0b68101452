// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// autoscaler is a double of Gardener's cluster-autoscaler, for one MachineDeployment. Where it lowers
// replicas, it names as many machines in the same write.
type autoscaler struct {
	*cluster
	pool   string
	random *rand.Rand
	// named are all machines that it has ever named, astray those that were deleted without that.
	named  map[string]bool
	astray []string
}

func newAutoscaler(c *cluster, pool string, random *rand.Rand) *autoscaler {
	a := &autoscaler{cluster: c, pool: pool, random: random, named: map[string]bool{}}
	c.AfterWrite(func(w sim.Write) error {
		switch {
		case w.Effect == "":
		case w.Resource == "machinedeployments":
			for _, name := range namesIn(world.Decoded[api.MachineDeployment](w.Object)) {
				a.named[name] = true
			}
		case w.Resource == "machines" && w.Verb == "delete" && w.User == name && !a.named[w.Name]:
			a.astray = append(a.astray, fmt.Sprintf("%s: %s, named so far are %v", time.Now().Format(time.TimeOnly), w.Name, slices.Sorted(maps.Keys(a.named))))
		}
		return nil
	})
	return a
}

// namesIn returns the names in the annotation, without times.
func namesIn(d *api.MachineDeployment) (names []string) {
	for entry := range strings.SplitSeq(d.Annotations[machineutils.TriggerDeletionByMCM], ",") {
		if name, _, _ := strings.Cut(entry, "~"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// all returns the machines of the pool that stay.
func (a *autoscaler) all() (all []*mcm.Machine) {
	for _, m := range world.List[mcm.Machine](a, machineGVR) {
		if m.DeletionTimestamp == nil && m.Labels["name"] == a.pool {
			all = append(all, m)
		}
	}
	return all
}

// scale changes replicas by a number. Down, it names as many machines that run and that it has not named.
func (a *autoscaler) scale(by int) {
	GinkgoHelper()
	d := a.deployment(a.pool)
	annotations := map[string]string{}
	if by < 0 {
		victims := slices.DeleteFunc(a.all(), func(m *mcm.Machine) bool {
			return m.Status.CurrentStatus.Phase != mcm.MachineRunning || slices.Contains(namesIn(d), m.Name)
		})
		a.random.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
		victims = victims[:min(-by, len(victims), max(0, int(d.Spec.Replicas)-1))]
		by = -len(victims)
		now := time.Now().UTC().Format(time.RFC3339)
		annotations[machineutils.LastDeploymentReplicaChangeByScalerTime] = now
		annotations[machineutils.TriggerDeletionByMCM] = joinNames(d.Annotations[machineutils.TriggerDeletionByMCM], victims, now, a.random.IntN(4) == 0)
	}
	if by == 0 {
		return
	}
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": annotations, "resourceVersion": d.ResourceVersion},
		"spec":     map[string]any{"replicas": int(d.Spec.Replicas) + by},
	})
	Expect(err).NotTo(HaveOccurred())
	_, err = a.deployments().Patch(context.Background(), a.pool, types.MergePatchType, text, metav1.PatchOptions{})
	Expect(err).To(Or(Not(HaveOccurred()), Satisfy(apierrors.IsConflict)))
}

// joinNames adds machines to those that are named, as older versions do without times.
func joinNames(before string, added []*mcm.Machine, now string, old bool) string {
	var names []string
	if before != "" {
		names = append(names, before)
	}
	for _, m := range added {
		if old {
			names = append(names, m.Name)
		} else {
			names = append(names, m.Name+"~"+now)
		}
	}
	return strings.Join(names, ",")
}

// rests expects that as many machines run as replicas, that none is named, and that nothing is written.
func (a *autoscaler) rests() {
	GinkgoHelper()
	d, all := a.deployment(a.pool), a.all()
	Expect(all).To(HaveLen(int(d.Spec.Replicas)))
	for _, m := range all {
		Expect(m.Status.CurrentStatus.Phase).To(Equal(mcm.MachineRunning))
		Expect(m.Annotations).NotTo(HaveKey(machineutils.MarkedForDeletionTime))
	}
	Expect(d.Annotations).NotTo(HaveKey(machineutils.TriggerDeletionByMCM))
	a.isQuiet()
}

var _ = Describe("Named machines", func() {
	It("N6: are the ones that go, in bad weather and with two instances, and their names vanish", func() {
		storm.Seeds(suite, 2, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 4))
			a := newAutoscaler(c, "pool", random)
			c.WatchLists(seed%2 == 0, name)
			a.deploy(a.pool, 6)
			first, second := c.Twins(name, controller)
			c.settle()
			c.Storm(random, first, second)
			for range 25 {
				switch n := random.IntN(8); {
				case n < 4:
					a.scale(-1 - random.IntN(3))
				case n < 7:
					a.scale(1 + random.IntN(3))
				default:
					if all := a.all(); len(all) > 0 {
						world.Delete(c.machines(), all[random.IntN(len(all))].Name)
					}
				}
				time.Sleep(time.Duration(random.IntN(60)) * time.Second)
			}
			c.Calm()
			c.settle()
			Expect(a.astray).To(BeEmpty())
			a.rests()
		})
	})
})

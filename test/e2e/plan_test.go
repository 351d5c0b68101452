// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// forecast is what plan prints, as far as it is looked at here.
type forecast struct {
	Plans []struct{ Kind, Name, State string }
	End   struct {
		Rest               bool
		MachineDeployments []poolEnd
		Balancers          []struct {
			Name string
			Is   map[string]int32
		}
	}
}

type poolEnd struct {
	Name                  string
	Replicas, Applied     int
	Serve, Reserve, Leave []string
	New                   struct{ Serve, Reserve int }
	Same                  bool
}

// builtPlugin is the plugin as it was built by this process.
var builtPlugin string

// plugin runs kubectl evenkeel as a user would, and returns what it printed.
func plugin(ctx context.Context, in string, arguments ...string) (string, error) {
	GinkgoHelper()
	if builtPlugin == "" {
		folder, err := os.MkdirTemp("", "plugin")
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(folder, "kubectl-evenkeel")
		output, err := exec.CommandContext(ctx, "go", "build", "-o", path, "../../cmd/kubectl-evenkeel").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(output))
		builtPlugin = path
	}
	command := exec.CommandContext(ctx, builtPlugin, append([]string{"--kubeconfig", kubeconfigPath}, arguments...)...)
	command.Stdin = strings.NewReader(in)
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, complaints.String())
	}
	return out.String(), nil
}

var _ = AfterSuite(func() {
	if builtPlugin != "" {
		Expect(os.RemoveAll(filepath.Dir(builtPlugin))).To(Succeed())
	}
})

func foretold(ctx context.Context, changes string) (f forecast, err error) {
	arguments := []string{"plan", "-A", "-o", "json"}
	if changes != "" {
		arguments = append(arguments, "-f", "-")
	}
	out, err := plugin(ctx, changes, arguments...)
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal([]byte(out), &f)
}

// edit is one change of one object.
type edit struct {
	resource, namespace, name string
	document                  map[string]any
	says                      string
}

func editOf(resource, kind, apiVersion, namespace, name, says string, fields map[string]any) edit {
	fields["apiVersion"], fields["kind"] = apiVersion, kind
	metadata, _ := fields["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"], metadata["namespace"] = name, namespace
	fields["metadata"] = metadata
	return edit{resource, namespace, name, fields, says}
}

func (p pool) edit(says string, fields map[string]any) edit {
	return editOf("machinedeployment", "MachineDeployment", "machine.sapcloud.io/v1alpha1", namespace, p.name, p.name+" "+says, fields)
}

func (e edit) text() string {
	GinkgoHelper()
	raw, err := json.Marshal(e.document)
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// arena is what random changes are made to.
type arena struct {
	random        *rand.Rand
	open, bounded pool
	zones         zones
	shop          shop
}

func (a *arena) pools() []pool { return append([]pool{a.open, a.bounded}, a.zones...) }

// draw is one change of each part.
func (a *arena) draw(ctx context.Context) []edit {
	GinkgoHelper()
	return slices.Concat(a.drawPool(ctx, a.open, false), a.drawPool(ctx, a.bounded, true), a.drawZones(), a.drawBalancer())
}

func (a *arena) drawPool(ctx context.Context, p pool, bounded bool) []edit {
	GinkgoHelper()
	md, err := p.deployment(ctx)
	Expect(err).NotTo(HaveOccurred())
	n := 1 + a.random.IntN(4)
	switch kind := a.random.IntN(4); {
	case kind == 0 && md.Spec.Replicas > 1:
		list := must(p.machines(ctx))
		slices.SortFunc(list, func(a, b machine.Machine) int { return strings.Compare(a.Name, b.Name) })
		victim, now := list[a.random.IntN(len(list))].Name, time.Now().UTC().Format(time.RFC3339)
		return []edit{p.edit(fmt.Sprintf("names %s", victim), map[string]any{
			"spec": map[string]any{"replicas": md.Spec.Replicas - 1},
			"metadata": map[string]any{"annotations": map[string]any{
				"node.machine.sapcloud.io/trigger-deletion-by-mcm":                  victim + "~" + now,
				"machine.sapcloud.io/last-deployment-replica-change-by-scaler-time": now,
			}}})}
	case kind <= 1:
		return []edit{p.edit(fmt.Sprintf("replicas %d", n), map[string]any{"spec": map[string]any{"replicas": n}})}
	case bounded:
		text := fmt.Sprintf("1:%d:%d", 3+a.random.IntN(4), a.random.IntN(4))
		return []edit{p.edit("bounds "+text, map[string]any{"metadata": map[string]any{"annotations": map[string]any{machine.BoundsAnnotation: text}}})}
	}
	excess := a.random.IntN(4)
	return []edit{p.edit(fmt.Sprintf("excess %d", excess), map[string]any{"spec": map[string]any{"excessReplicas": excess}})}
}

// drawZones changes the excess of the pool, or replicas of one of its zones.
func (a *arena) drawZones() (edits []edit) {
	if a.random.IntN(2) == 0 {
		p, n := a.zones[a.random.IntN(len(a.zones))], 1+a.random.IntN(3)
		return []edit{p.edit(fmt.Sprintf("replicas %d", n), map[string]any{"spec": map[string]any{"replicas": n}})}
	}
	text := strconv.Itoa(a.random.IntN(5))
	for _, p := range a.zones {
		edits = append(edits, p.edit("pool excess "+text, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"nodeTemplate": map[string]any{"metadata": map[string]any{"annotations": map[string]any{machine.PoolExcessAnnotation: text}}}}}}}))
	}
	return edits
}

func (a *arena) drawBalancer() []edit {
	n := a.random.IntN(10)
	spec := map[string]any{"replicas": n}
	switch a.random.IntN(3) {
	case 0:
		spec["policy"] = map[string]any{"policyName": "even", "priorities": nil, "proportions": nil}
	case 1:
		order := slices.Clone(a.shop.zones)
		a.random.Shuffle(3, func(i, j int) { order[i], order[j] = order[j], order[i] })
		spec["policy"] = map[string]any{"policyName": "priority", "priorities": map[string]any{"targetOrder": order}, "proportions": nil}
	default:
		spec["policy"] = map[string]any{"policyName": "proportional", "priorities": nil, "proportions": map[string]any{"targetProportions": map[string]any{
			"a": 1 + a.random.IntN(5), "b": 1 + a.random.IntN(5), "c": 1 + a.random.IntN(5)}}}
	}
	return []edit{editOf("balancer", "Balancer", "balancer.x-k8s.io/v1alpha1", a.shop.name, a.shop.name, fmt.Sprintf("%s %v", a.shop.name, spec), map[string]any{"spec": spec})}
}

// newArena makes pools, zones and a Balancer whose names begin alike, and waits until they are at rest.
func newArena(ctx context.Context, name string) *arena {
	GinkgoHelper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("EVENKEEL_E2E_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		Expect(err).NotTo(HaveOccurred())
	}
	AddReportEntry("seed", fmt.Sprintf("EVENKEEL_E2E_SEED=%d", seed))
	a := &arena{random: rand.New(rand.NewPCG(seed, 0)), shop: newShop(ctx, name+"-shop", 3)}
	a.open = newPool(ctx, name+"-open", 2, excess(1))
	a.bounded = newPool(ctx, name+"-bounded", 2, func(md *machine.MachineDeployment) {
		md.Annotations = map[string]string{machine.BoundsAnnotation: "1:5:1"}
	})
	zoned := []func(*machine.MachineDeployment){poolExcess("1")}
	if a.random.IntN(2) == 0 {
		zoned = append(zoned, balanced(machine.BalanceScaleUp))
	}
	a.zones = newZones(ctx, name+"-zones", []int32{1, 1, 1}, zoned...)
	a.shop.balance(ctx, 3, byShare(1, 1, 1))
	a.open.work(ctx, 1)
	a.bounded.work(ctx, 1)
	a.rests(ctx)
	return a
}

var _ = Describe("What plan predicts", Label("ours"), func() {
	It("comes true for a handful of random changes", func(ctx context.Context) {
		a := newArena(ctx, "foretold")
		for range 2 {
			a.play(ctx, a.draw(ctx))
		}
	})

	It("comes true for thirty random changes", Label("long"), func(ctx context.Context) {
		a := newArena(ctx, "oracle")
		for range 8 {
			a.play(ctx, a.draw(ctx))
		}
	})
})

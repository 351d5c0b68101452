// SPDX-License-Identifier: Apache-2.0

package devices_test

import (
	"fmt"
	"math"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/fit/devices"
)

// BenchmarkAllocate measures a choice, and what it counts as work: a unit of work stands for some
// tens of nanoseconds.
func BenchmarkAllocate(b *testing.B) {
	const model = `device.attributes["gpu.example.com"].model == "a"`
	for _, devices := range []int{1, 8, 64} {
		for _, selectors := range [][]string{nil, {model}, {model, model, model}} {
			b.Run(fmt.Sprintf("devices=%d/selectors=%d", devices, len(selectors)), func(b *testing.B) {
				v := of(has("n", devices), template("t", wants(1, selecting(selectors...)))).inventory()
				measure(b, v, 0)
			})
		}
	}
	b.Run("search", func(b *testing.B) {
		measure(b, of(has("n", 64, ofModel("a")), template("t", endless())).inventory(), 0)
	})
	b.Run("compile", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n++
			v := of(has("n", 1), template("t", wants(1, selecting(fmt.Sprintf(`device.attributes["gpu.example.com"].model == "%d" && device.attributes["gpu.example.com"].index > 0`, n))))).inventory()
			measureOnce(b, v)
		}
	})
}

// endless is a spec whose devices are searched for in all ways in vain.
func endless() resourceapi.ResourceClaimSpec {
	spec := wants(8)
	spec.Devices.Requests = append(spec.Devices.Requests, resourceapi.DeviceRequest{Name: "never", Exactly: wants(1, selecting(`device.attributes["gpu.example.com"].model == "none"`)).Devices.Requests[0].Exactly})
	spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To[resourceapi.FullyQualifiedName]("gpu.example.com/model")}}
	return spec
}

func measure(b *testing.B, v *Inventory, work int) {
	claims, err := v.Claimed(pod("p", "t"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	claims.Allocate(node("n"), nil, math.MaxInt)
	for b.Loop() {
		work = claims.Allocate(node("n"), nil, math.MaxInt).Work
	}
	b.ReportMetric(float64(work), "work")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(work), "ns/work")
}

func measureOnce(b *testing.B, v *Inventory) {
	claims, err := v.Claimed(pod("p", "t"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(claims.Allocate(node("n"), nil, math.MaxInt).Work), "work")
}

// BenchmarkNew measures an inventory of 500 nodes with eight devices each, most of them allocated, and
// 10,000 claims that wait.
func BenchmarkNew(b *testing.B) {
	c := of()
	for i := range 500 {
		name := fmt.Sprint("node-", i)
		has(name, 8)(c)
		for d := range 7 {
			claim(fmt.Sprintf("%s-%d", name, d), wants(1), allocated(name, fmt.Sprint("gpu-", d)))(c)
		}
	}
	for i := range 10_000 {
		claim(fmt.Sprint("waits-", i), wants(1))(c)
	}
	b.ReportAllocs()
	for b.Loop() {
		New(c.Listing, nil)
	}
}

// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/overview"
)

var suite *testing.T

func TestPage(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "The page")
}

// bubble runs a spec in virtual time. It fails where a goroutine of the spec does not end.
func bubble(spec func()) func() {
	return func() {
		synctest.Test(suite, func(*testing.T) {
			defer GinkgoRecover()
			spec()
		})
	}
}

// noon is when most overviews here were read.
var noon = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

// world is an overview of one zone with so many machines that work and so many in reserve.
func world(at time.Time, working, reserve int) overview.Overview {
	z := overview.Zone{
		Name: "pool-z1", Zone: "z1", Replicas: working, Excess: reserve, Applied: reserve,
		Count: map[overview.State]int{overview.Working: working, overview.ReserveReady: reserve},
	}
	for i := range working + reserve {
		m := overview.Machine{Name: "m" + string(rune('a'+i)), State: overview.Working, Since: at.Add(-time.Hour)}
		if i >= working {
			m.State = overview.ReserveReady
		}
		z.Machines = append(z.Machines, m)
	}
	return overview.Overview{At: at, Pools: []overview.Pool{{Namespace: "garden", Name: "pool", Zones: []overview.Zone{z}}}}
}

// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
)

var _ = Describe("Machines of one MachineDeployment that many workers create", func() {
	It("are each told of all that are under way, also when the last one ends at that moment (V9)", func() {
		var mu sync.Mutex
		decided, missed := map[string]bool{}, []string{}
		begin := view.Beginner(view.CreationOptions{
			DeploymentOf: func(string, *v1alpha1.Machine) (types.NamespacedName, bool) {
				return types.NamespacedName{Name: "pool"}, true
			},
			Seen: func(string) bool { return true },
			ReserveMark: func(b view.Creation) *machine.Reserve {
				runtime.Gosched() // others come meanwhile
				mu.Lock()
				defer mu.Unlock()
				for name := range decided {
					if !slices.ContainsFunc(b.InProgress, func(u view.InProgress) bool { return u.Name == name }) {
						missed = append(missed, name)
					}
				}
				decided[b.Machine.Name] = true
				return nil
			},
		}, clock.RealClock{})
		var workers sync.WaitGroup
		for worker := range 3 {
			workers.Go(func() {
				for i := range 5_000 {
					m := &v1alpha1.Machine{}
					m.Name = fmt.Sprintf("%d-%d", worker, i)
					_, done, _ := begin("default", m)
					mu.Lock()
					delete(decided, m.Name)
					mu.Unlock()
					done(nil, apierrors.NewBadRequest("no such class"))
				}
			})
		}
		workers.Wait()
		Expect(missed).To(BeEmpty())
	})
})

// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// weather lets a hundred things happen at random, and ends with good weather.
func weather(s scene, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	s.Lag("machines", sim.Uniformly(seed, 0, 3*time.Second))
	s.FailWrites(0.2, sim.Either)
	for range 100 {
		turn(s, random)
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
	}
	s.FailWrites(0, sim.Either)
	s.Release("machines")
	s.Down(false, "reader")
}

// turn is one thing that happens. Writes may fail; that is part of it.
func turn(s scene, random *rand.Rand) {
	all := s.machine.MachineV1alpha1().Machines(fixture.Namespace)
	name := fmt.Sprint("m", random.IntN(6))
	switch random.IntN(10) {
	case 0:
		s.Hold("machines")
	case 1, 2:
		s.Release("machines")
	case 3:
		s.Compact()
	case 4:
		s.Down(random.IntN(3) == 0, "reader")
	case 5:
		_ = all.Delete(s, name, metav1.DeleteOptions{})
	default:
		if m, err := all.Get(s, name, metav1.GetOptions{}); err == nil {
			m.Labels = map[string]string{"n": fmt.Sprint(random.IntN(3))}
			_, _ = all.Update(s, m, metav1.UpdateOptions{})
			return
		}
		_, _ = all.Create(s, fixture.Machine(name), metav1.CreateOptions{})
	}
}

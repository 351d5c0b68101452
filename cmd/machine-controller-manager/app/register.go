// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// registering guards prometheus.DefaultRegisterer, which is the only way to redirect
// machine-controller-manager's metrics.
var registering sync.Mutex

// register starts run, which registers its metrics with prometheus.DefaultRegisterer some time
// later, and redirects them to r. It returns when they have arrived, or run has ended.
func register(r prometheus.Registerer, ended <-chan struct{}, run func()) {
	registering.Lock()
	defer registering.Unlock()
	usual := prometheus.DefaultRegisterer
	defer func() { prometheus.DefaultRegisterer = usual }()
	a := &arrival{Registerer: r, here: make(chan struct{})}
	prometheus.DefaultRegisterer = a
	go run()
	select {
	case <-a.here:
	case <-ended:
	}
}

// arrival is a registerer that reports when something has been registered.
type arrival struct {
	prometheus.Registerer
	once sync.Once
	here chan struct{}
}

func (a *arrival) MustRegister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		a.Registerer.MustRegister(survivor{c})
	}
	a.once.Do(func() { close(a.here) })
}

// survivor keeps a scrape from ending the process: machine-controller-manager's collector panics if
// a MachineDeployment has the strategy RollingUpdate without its parameters.
type survivor struct{ prometheus.Collector }

func (s survivor) Collect(into chan<- prometheus.Metric) {
	defer func() {
		if r := recover(); r != nil {
			utilruntime.HandleError(fmt.Errorf("collect metrics: %v", r))
		}
	}()
	s.Collector.Collect(into)
}

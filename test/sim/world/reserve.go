// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// Reserve does what the controller of MachineDeployments does for those who request machines, some seconds
// later: there are as many machines in reserve as requested, unless they cannot be created.
type Reserve struct {
	Store Store
	// SetStatus changes the status of a MachineDeployment with this many machines in reserve, and
	// returns how many there are then.
	SetStatus func(d *v1alpha1.MachineDeployment, exist, ready int, refused bool) (existAfter, readyAfter int)

	mu      sync.Mutex
	refused map[string]bool
}

// Refuse makes the cloud create no machines of a MachineDeployment, or create them again.
func (r *Reserve) Refuse(name string, refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused == nil {
		r.refused = map[string]bool{}
	}
	r.refused[name] = refused
}

func (r *Reserve) refuses(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused[name]
}

// Run is its program.
func (r *Reserve) Run(ctx context.Context, config *rest.Config) error {
	_, ours := Clients(config)
	spares := storm.Spares{Client: ours.MachineV1alpha1()}
	for ctx.Err() == nil {
		time.Sleep(7 * time.Second)
		for _, d := range List[v1alpha1.MachineDeployment](r.Store, mcm.SchemeGroupVersion.WithResource("machinedeployments")) {
			_ = r.reconcile(ctx, spares, d) // else the next time
		}
	}
	return nil
}

// reconcile does it for one MachineDeployment, whose status has no field for the numbers, as in
// Gardener.
func (r *Reserve) reconcile(ctx context.Context, spares storm.Spares, d *v1alpha1.MachineDeployment) error {
	before := d.Status.DeepCopy()
	exist, ready, err := spares.Count(ctx, d)
	if err != nil {
		return err
	}
	exist, ready = r.SetStatus(d, exist, ready, r.refuses(d.Name))
	if !equality.Semantic.DeepEqual(*before, d.Status) {
		if _, err := spares.Client.MachineDeployments(d.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return spares.Keep(ctx, d, exist, ready)
}

// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
)

// preparationName is the name of the controller that has images pulled on machines in reserve.
const preparationName = "preparation"

// PreparationOptions are the flags about preparation.
type PreparationOptions struct {
	// Image is that of the container that waits while images are volumes of its pod.
	Image string
	plan.Limits
}

func (o *PreparationOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Image, "preparation-image", "registry.k8s.io/pause:3.10.1", "Image of the pause container in pods that pull images on reserve machines. It must run without arguments and as any user.")
	flags.IntVar(&o.PerPool, "preparation-pulls", 10, "How many machines of a MachineDeployment can pull images at the same time.")
	flags.IntVar(&o.PerRegistry, "preparation-pulls-per-registry", 20, "How many machines can pull images from one registry at the same time.")
	flags.Int64Var(&o.Bytes, "preparation-bytes", 50<<30, "Total bytes of images on a reserve machine from which no more are pulled. 0 means no limit.")
	flags.DurationVar(&o.Patience, "preparation-patience", 15*time.Minute, "How long pulling the images of one preparation may take before the condition ReserveReady reports PreparationFailed.")
}

func (o *PreparationOptions) validate() error {
	var errs []error
	if o.Image == "" {
		errs = append(errs, errors.New("--preparation-image must not be empty"))
	}
	for name, n := range map[string]int64{"preparation-pulls": int64(o.PerPool), "preparation-pulls-per-registry": int64(o.PerRegistry), "preparation-patience": int64(o.Patience)} {
		if n <= 0 {
			errs = append(errs, fmt.Errorf("--%s: use a value above 0", name))
		}
	}
	if o.Bytes < 0 {
		errs = append(errs, fmt.Errorf("--preparation-bytes: %d is invalid: use a number of bytes, or 0 for no limit", o.Bytes))
	}
	return errors.Join(errs...)
}

// runPreparation has images pulled, once a MachineDeployment or a Reserve asks for that, or pods are left that do.
func (p *process) runPreparation(ctx context.Context) error {
	if p.target == nil {
		<-ctx.Done()
		return nil
	}
	ours, err := machines.Evenkeel(p.control)
	if err != nil {
		return fmt.Errorf("make machine client: %w", err)
	}
	core, err := connect.Core(p.target)
	if err != nil {
		return fmt.Errorf("make target client: %w", err)
	}
	if !connect.AwaitAPI(ctx, ours.Discovery(), machinev1alpha1.SchemeGroupVersion, apiRetry) {
		return nil
	}
	deployments := p.caches.machines.Deployments()
	p.caches.machines.Start(ctx)
	left, err := preparation.Left(ctx, core.CoreV1())
	if err != nil {
		klog.FromContext(ctx).Info("Cannot check for remaining pods that pulled images. They are deleted once a MachineDeployment requests preparation", "err", err)
	}
	if !left {
		first, found := context.WithCancel(ctx)
		defer found()
		look := func() {
			if p.requests.Any() {
				found()
			}
		}
		p.requests.Subscribe(look)
		look()
		if err := handlers.AwaitFirst(first, "preparation", preparation.IsAskedFor, deployments); err != nil || ctx.Err() != nil {
			return err
		}
	}
	c, err := preparation.New(core, p.caches.machines, p.caches.target, preparation.Options{
		Cluster: p.clusters.control, Target: p.clusters.target, Registerer: p.registry, Limits: p.options.Preparation.Limits, Image: p.options.Preparation.Image, States: &p.preparations, Requests: &p.requests,
	})
	if err != nil {
		return unlessEnding(ctx, err)
	}
	p.caches.startInformers(ctx)
	c.Run(ctx)
	return nil
}

// preparationOf is what the status of a reserve says of the preparation of a machine.
func (p *process) preparationOf(machine types.UID) machinetaint.Preparation {
	is, known := p.preparations.Of(machine)
	if !known || is.Prepared() {
		return machinetaint.Preparation{}
	}
	result := machinetaint.Preparation{Missing: true}
	if is.Failure != nil {
		result.Failure = fmt.Sprintf("%s: %s", is.Failure.Reason, is.Failure.Message)
	}
	return result
}

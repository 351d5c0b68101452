// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/extensions/pkg/controller/extension"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/internal/drain"
)

// Name of the controller, and of its finalizer.
const Name = "evenkeel"

// Options of the controller.
type Options struct {
	Controller controller.Options
	// IgnoreOperationAnnotation reconciles each change, and not only when gardenlet asks.
	IgnoreOperationAnnotation bool
	Classes                   []extensionsv1alpha1.ExtensionClass
}

// AddToManager adds the controller to a manager.
func AddToManager(ctx context.Context, mgr manager.Manager, o Options) error {
	config := mgr.GetConfig()
	return extension.Add(mgr, extension.AddArgs{
		Actuator: &actuator{
			client: mgr.GetClient(), reader: mgr.GetAPIReader(), clock: clock.RealClock{},
			drains: func(namespace string) (*drain.Drain, error) {
				return drain.New(config, namespace, "gardener-extension-evenkeel")
			},
			reserves: func(namespace string) (autoscalingclient.ReserveInterface, error) {
				c, err := autoscalingclient.NewForConfig(config)
				if err != nil {
					return nil, fmt.Errorf("make client for reserves: %w", err)
				}
				return c.Reserves(namespace), nil
			},
			pause: pauseASecond,
		},
		Name: Name, FinalizerSuffix: Name, Type: v1alpha1.ExtensionType, ControllerOptions: o.Controller,
		Predicates:                extension.DefaultPredicates(ctx, mgr, o.IgnoreOperationAnnotation),
		IgnoreOperationAnnotation: o.IgnoreOperationAnnotation, ExtensionClasses: o.Classes,
	})
}

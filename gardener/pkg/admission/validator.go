// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"slices"

	"github.com/gardener/gardener/extensions/pkg/webhook"
	webhookcmd "github.com/gardener/gardener/extensions/pkg/webhook/cmd"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/validation"
)

// Name of the webhook.
const Name = "validator"

// Switches makes the webhook. The API server of the garden labels Shoots by their extensions, so no
// other Shoot is sent.
func Switches() *webhookcmd.SwitchOptions {
	return webhookcmd.NewSwitchOptions(webhookcmd.Switch(Name, func(mgr manager.Manager) (*webhook.Webhook, error) {
		return webhook.New(mgr, webhook.Args{
			Name: Name, Path: "/webhooks/validate", Target: webhook.TargetSeed,
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1beta1constants.LabelExtensionExtensionTypePrefix + v1alpha1.ExtensionType: "true"}},
			Validators:     map[webhook.Validator][]webhook.Type{&validator{}: {{Obj: &gardencorev1beta1.Shoot{}}}},
		})
	}))
}

type validator struct{}

// Validate returns what is wrong with the providerConfig of a Shoot. A Shoot whose specification
// does not change is not checked. A providerConfig that was wrong before is not refused if it does
// not change, or is wrong in the same way: what was accepted once must not stop the deletion of a
// Shoot, its hibernation, its update, or a change of labels.
func (*validator) Validate(_ context.Context, object, old client.Object) error {
	shoot, ok := object.(*gardencorev1beta1.Shoot)
	if !ok {
		return fmt.Errorf("%T is not a Shoot", object)
	}
	before, updated := old.(*gardencorev1beta1.Shoot)
	if shoot.DeletionTimestamp != nil || updated && equality.Semantic.DeepEqual(before.Spec, shoot.Spec) {
		return nil
	}
	err := validateShoot(shoot)
	if err == nil || !updated {
		return err
	}
	if was := validateShoot(before); was != nil && (was.Error() == err.Error() || equality.Semantic.DeepEqual(entries(before), entries(shoot))) {
		return nil
	}
	return err
}

// entries returns what a Shoot says about the extension. Messages also depend on the rest of the
// Shoot.
func entries(shoot *gardencorev1beta1.Shoot) []gardencorev1beta1.Extension {
	return slices.DeleteFunc(slices.Clone(shoot.Spec.Extensions), func(e gardencorev1beta1.Extension) bool {
		return e.Type != v1alpha1.ExtensionType
	})
}

func validateShoot(shoot *gardencorev1beta1.Shoot) error {
	for i, e := range shoot.Spec.Extensions {
		if e.Type != v1alpha1.ExtensionType || ptr.Deref(e.Disabled, false) {
			continue
		}
		if err := validate(e, &shoot.Spec, field.NewPath("spec", "extensions").Index(i).Child("providerConfig")); err != nil {
			return err
		}
	}
	return nil
}

func validate(e gardencorev1beta1.Extension, shoot *gardencorev1beta1.ShootSpec, path *field.Path) error {
	var raw []byte
	if e.ProviderConfig != nil {
		raw = e.ProviderConfig.Raw
	}
	config, err := v1alpha1.Decode(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return validation.Validate(config, shoot, path).ToAggregate()
}

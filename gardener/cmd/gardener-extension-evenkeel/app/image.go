// SPDX-License-Identifier: Apache-2.0

package app

import (
	_ "embed"
	"fmt"
	"regexp"

	"github.com/gardener/gardener/pkg/utils/imagevector"

	"github.com/evenkeel/evenkeel/gardener/pkg/webhook"
	"github.com/evenkeel/evenkeel/internal/version"
)

//go:embed images.yaml
var images []byte

// readImages returns what the webhooks set: the images of the overwrite, or those that are embedded.
// Evenkeel's machine-controller-manager has the version of the extension if none is named.
func readImages() (webhook.Images, error) {
	vector, bundle, err := imagevector.Read(images)
	if err != nil {
		return webhook.Images{}, fmt.Errorf("read images: %w", err)
	}
	vector, _, err = imagevector.WithEnvOverride(vector, bundle, imagevector.OverrideEnv)
	if err != nil {
		return webhook.Images{}, fmt.Errorf("read images of %s: %w", imagevector.OverrideEnv, err)
	}
	manager, err := find(vector, "machine-controller-manager")
	if err != nil {
		return webhook.Images{}, err
	}
	autoscaler, err := find(vector, "cluster-autoscaler")
	return webhook.Images{Manager: manager, Autoscaler: autoscaler}, err
}

func find(vector imagevector.ImageVector, name string) (string, error) {
	image, err := vector.FindImage(name)
	if err != nil {
		return "", fmt.Errorf("find image: %w", err)
	}
	if image.Ref == nil && image.Tag == nil && !isTag(version.Short()) {
		return "", fmt.Errorf("this build has no version that could be a tag (%s): name a file with an image of %s in %s", version.Short(), image.Name, imagevector.OverrideEnv)
	}
	image.WithOptionalTag(version.Short())
	return image.String(), nil
}

func isTag(text string) bool { return tagRegexp.MatchString(text) }

var tagRegexp = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

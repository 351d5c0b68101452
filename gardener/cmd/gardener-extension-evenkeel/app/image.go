// SPDX-License-Identifier: Apache-2.0

package app

import (
	_ "embed"
	"fmt"
	"regexp"

	"github.com/gardener/gardener/pkg/utils/imagevector"

	"github.com/evenkeel/evenkeel/internal/version"
)

//go:embed images.yaml
var images []byte

// managerImage returns the image of Evenkeel's machine-controller-manager: that of the overwrite, or
// the one of the same version as the extension.
func managerImage() (string, error) {
	vector, bundle, err := imagevector.Read(images)
	if err != nil {
		return "", fmt.Errorf("read images: %w", err)
	}
	vector, _, err = imagevector.WithEnvOverride(vector, bundle, imagevector.OverrideEnv)
	if err != nil {
		return "", fmt.Errorf("read images of %s: %w", imagevector.OverrideEnv, err)
	}
	image, err := vector.FindImage("machine-controller-manager")
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

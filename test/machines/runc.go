// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// PlainRunc is the name under which that program is runc without seccomp, which needs a C library that computers
// do not have everywhere.
const PlainRunc = "plain-runc"

// RunPlainRunc becomes runc, which is beside this program, after it has removed from the bundle what it cannot do.
func RunPlainRunc(args []string) error {
	if i := slices.IndexFunc(args, func(a string) bool { return a == "--bundle" || a == "-b" }); i >= 0 && i+1 < len(args) {
		if err := removeSeccomp(filepath.Join(args[i+1], "config.json")); err != nil {
			return err
		}
	}
	runc := filepath.Join(filepath.Dir(args[0]), "runc")
	return fmt.Errorf("run %s: %w", runc, unix.Exec(runc, append([]string{"runc"}, args[1:]...), os.Environ()))
}

func removeSeccomp(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var bundle map[string]any
	if err := json.Unmarshal(raw, &bundle); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	linux, ok := bundle["linux"].(map[string]any)
	if !ok || linux["seccomp"] == nil {
		return nil
	}
	delete(linux, "seccomp")
	if raw, err = json.Marshal(bundle); err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}

// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// pollInterval is how often files, processes and health endpoints are checked while waiting for
// them.
const pollInterval = 20 * time.Millisecond

var errLocked = errors.New("another process holds the lock")

// fileLock is held by one process at a time, and released when that process ends for any reason.
// The file exists only while it is held.
type fileLock struct{ file *os.File }

// tryLock returns errLocked if another process holds the lock.
func tryLock(path string) (*fileLock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make folder of lock: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil && isSameFile(file, path) {
		return &fileLock{file}, nil
	}
	_ = file.Close()
	if err == nil || errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w %s", errLocked, path)
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// isSameFile reports whether the previous holder did not remove the file between our open and our
// lock.
func isSameFile(file *os.File, path string) bool {
	ours, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(ours, there)
}

// waitLock waits for the lock until ctx ends. It calls waiting once if it has to wait.
func waitLock(ctx context.Context, path string, waiting func()) (*fileLock, error) {
	for first := true; ; first = false {
		lock, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return lock, err
		}
		if first {
			waiting()
		}
		if err := sleepContext(ctx, 5*pollInterval); err != nil {
			return nil, fmt.Errorf("wait for lock %s: %w", path, err)
		}
	}
}

// release removes the file first, while no other process can hold it.
func (l *fileLock) release() {
	_ = os.Remove(l.file.Name())
	_ = l.file.Close()
}

func sleepContext(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

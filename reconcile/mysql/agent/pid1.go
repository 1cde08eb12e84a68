package agent

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	// ProgramDir is the folder in the mysqld container that has a program of the operator's image.
	ProgramDir = "/opt/mysql-operator"
	// PID1Path is that program. It starts mysqld, and passes on signals that a process 1 would not get.
	PID1Path    = ProgramDir + "/" + pid1Program
	pid1Program = "mysql-operator-pid1"
)

// InstallPID1 copies mysql-operator-pid1 into a folder that the mysqld container mounts. In the operator's image it is in the same folder
// as this program.
func InstallPID1(folder string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find %s: %w", pid1Program, err)
	}
	if err := copyProgram(filepath.Join(filepath.Dir(self), pid1Program), filepath.Join(folder, pid1Program)); err != nil {
		return fmt.Errorf("install the program that starts mysqld: %w", err)
	}
	return nil
}

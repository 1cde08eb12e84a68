package agent

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	// ProgramDir is where the mysqld container has a program of the operator's image.
	ProgramDir = "/opt/mysql-operator"
	// PID1Path is that program: it starts mysqld, and passes on signals that a process 1 would not get.
	PID1Path    = ProgramDir + "/" + pid1Program
	pid1Program = "mysql-operator-pid1"
)

// InstallPID1 copies mysql-operator-pid1 into a folder that the mysqld container mounts. The operator's image has it beside this program.
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

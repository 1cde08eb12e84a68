package agent

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

const (
	// ProgramDir is the folder in the mysqld container that has a program of the operator's image.
	ProgramDir = "/opt/mysql-operator"
	// SupervisorPath is that program, the first process of the container.
	SupervisorPath = ProgramDir + "/" + supervisor.Program
)

// InstallSupervisor copies the program that supervises mysqld into a folder that the mysqld container mounts. In the operator's image it is
// in the same folder as this program.
func InstallSupervisor(folder string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find %s: %w", supervisor.Program, err)
	}
	if err := copyProgram(filepath.Join(filepath.Dir(self), supervisor.Program), filepath.Join(folder, supervisor.Program)); err != nil {
		return fmt.Errorf("install the program that starts mysqld: %w", err)
	}
	return nil
}

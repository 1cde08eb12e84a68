package vmgroup

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
)

// maxName is how long a name in a vCenter may be (vSphere Web Services API, VirtualMachineConfigSpec.name: 80 characters).
const maxName = 80

// longestNumber is the room for a machine's number: spec.replicas has a limit.
const longestNumber = len("-999")

// folderName is the name of a group's folder: NAMESPACE-NAME. A long one is cut, and told from others by a hash of the whole.
func folderName(namespace, name string) string {
	whole := namespace + "-" + name
	if len(whole) <= maxName-longestNumber {
		return whole
	}
	hash := fmt.Sprintf("-%x", sha256.Sum256([]byte(namespace+"/"+name)))[:11]
	return whole[:maxName-longestNumber-len(hash)] + hash
}

// machineName is the name of a machine in a folder. The same number always has the same name: that is how a machine that is made twice is
// made once.
func machineName(folder string, number int) string {
	return folder + "-" + strconv.Itoa(number)
}

// numberOf is the number in a machine's name; -1 if it is no name of a machine of this folder.
func numberOf(folder, machine string) int {
	digits, is := strings.CutPrefix(machine, folder+"-")
	number, err := strconv.Atoi(digits)
	if !is || err != nil || machineName(folder, number) != machine || number < 0 {
		return -1
	}
	return number
}

package vmgroup

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
)

// maxName is the maximum length of a name in a vCenter (vSphere Web Services API, VirtualMachineConfigSpec.name: 80 characters).
const maxName = 80

// longestNumber is the length reserved for a machine's number: spec.replicas has a limit.
const longestNumber = len("-999")

// folderName returns the name of a group's folder: NAMESPACE-NAME. A long name is cut, and ends with a hash of the whole name.
func folderName(namespace, name string) string {
	whole := namespace + "-" + name
	if len(whole) <= maxName-longestNumber {
		return whole
	}
	hash := fmt.Sprintf("-%x", sha256.Sum256([]byte(namespace+"/"+name)))[:11]
	return whole[:maxName-longestNumber-len(hash)] + hash
}

// machineName returns the name of a machine in a folder. A number always has the same name. So if two operators start a clone for it, there
// is one machine.
func machineName(folder string, number int) string {
	return folder + "-" + strconv.Itoa(number)
}

// numberOf returns the number in a machine's name; -1 if no machine of this folder has such a name.
func numberOf(folder, machine string) int {
	digits, is := strings.CutPrefix(machine, folder+"-")
	number, err := strconv.Atoi(digits)
	if !is || err != nil || machineName(folder, number) != machine || number < 0 {
		return -1
	}
	return number
}

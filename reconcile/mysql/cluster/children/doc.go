// Package children builds the objects that a MySQLCluster consists of: its StatefulSet, Services, ConfigMaps, and so on. All of it is pure:
// an object follows from the cluster resource and from arguments alone. So the same input gives the same object, and no Pod restarts
// without a cause. Only certificates differ each time, because their keys are random.
package children

package replication

// Each GTID names one transaction. mysqld gives a new one the lowest number of its server_uuid that is not in gtid_executed or gtid_owned.
// So if it has lost a transaction that others have, it gives the same GTID to another one, and the others skip that.

// gtidOf is the server_uuid of the server that made a transaction, and the number that it chose.
type gtidOf struct {
	uuid   string
	number int64
}

// makes adds a transaction of this server to the ledger, and returns its number there.
func (w *world) makes(m *simulated) int {
	n, id := len(w.ledger), gtidOf{m.uuid, w.lowestFree(m)}
	w.checkNumber(m, id)
	w.ledger = append(w.ledger, id)
	w.made[id.uuid] = append(w.made[id.uuid], n)
	return n
}

// lowestFree is the number that mysqld gives to its next transaction.
func (w *world) lowestFree(m *simulated) int64 {
	var used transactions
	has := m.logged()
	for _, n := range w.made[m.uuid] {
		if has.has(n) {
			used.add(int(w.ledger[n].number - 1))
		}
	}
	count := 0
	for used.has(count) {
		count++
	}
	return int64(count + 1)
}

// checkNumber checks that no other transaction has this GTID. One that is lost does not count, unless clients have seen it.
func (w *world) checkNumber(m *simulated, id gtidOf) {
	for _, n := range w.made[id.uuid] {
		if w.ledger[n] != id {
			continue
		}
		if who := w.whoKnows(n); who != "" {
			w.violated("GTID %s:%d names two transactions: %s makes one, and %s know number %d of the ledger", id.uuid, id.number, m.name, who, n)
		}
	}
}

// whoKnows says who has a transaction, or has seen it; empty if it is lost.
func (w *world) whoKnows(n int) string {
	for _, m := range w.running() {
		if m.logged().has(n) || m.vol.has().has(n) || m.vol.retrieved.has(n) {
			return "volumes such as that of " + m.name
		}
	}
	if w.acked.has(n) || w.surrender.forgotten.has(n) || w.shown.has(n) {
		return "clients"
	}
	return ""
}

// shows notes what clients may have read: what changes rows, and is committed where mysqld runs.
func (w *world) shows() {
	for _, m := range w.running() {
		if m.sql.up {
			w.shown = w.shown.union(m.vol.executed.without(w.hollow))
		}
	}
}

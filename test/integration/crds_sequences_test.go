package integration

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// fromEnvironment reads how much of a long test to do.
func fromEnvironment(name string, otherwise int) int {
	number, err := strconv.Atoi(os.Getenv(name))
	if err != nil || number < 1 {
		return otherwise
	}
	return number
}

// TestRandomBoots lets operators of three releases boot in any order, two at once, disturbed and killed, with objects being made, edited
// and deleted in between and definitions edited by hand. Whatever happened: once the newest release boots in peace, its definition is
// there, and every object is as it was written last. CRDS_SEQUENCES and CRDS_SEED say how many, and which: make test-long runs more. A
// failure names its seed.
func TestRandomBoots(t *testing.T) {
	t.Parallel()
	server := apiserver.Own(t)
	first := fromEnvironment("CRDS_SEED", 1)
	cases := []func(){}
	for seed := first; seed < first+fromEnvironment("CRDS_SEQUENCES", 20); seed++ {
		cases = append(cases, func() {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				p := product{t: t, server: server, plural: fmt.Sprintf("r%ds", seed)}
				defer p.remove()
				life := &lifetime{product: p, random: rand.New(rand.NewPCG(uint64(seed), 0)), written: map[string]map[string]any{}}
				for range 4 + life.random.IntN(8) {
					life.step()
				}
				life.end()
			})
		})
	}
	atOnce(cases)
}

// lifetime is what happens to one kind, and what its objects must be.
type lifetime struct {
	product
	random  *rand.Rand
	written map[string]map[string]any
	made    int
	log     []string
}

func (l *lifetime) step() {
	switch dice := l.random.IntN(10); {
	case dice < 4:
		l.bootSome()
	case dice < 6:
		l.makeObject()
	case dice < 8:
		l.editObject()
	case dice < 9:
		l.deleteObject()
	default:
		l.editDefinition()
	}
}

// bootSome starts one or two operators at once, each perhaps disturbed, each perhaps leading afterwards.
func (l *lifetime) bootSome() {
	type start struct {
		bootOperator
		leads bool
		ctx   context.Context //nolint:containedctx // each start's own, made before they run at once
		kill  func()
	}
	starts := []start{}
	for range 1 + l.random.IntN(2) {
		ctx, kill := context.WithCancel(l.t.Context())
		release, disturbance := 1+l.random.IntN(releases), (*fault)(nil)
		told := fmt.Sprintf("boot %d", release)
		if l.random.IntN(2) == 0 {
			all := faults(kill)
			way := slices.Sorted(maps.Keys(all))[l.random.IntN(len(all))]
			disturbance = &fault{at: 1 + l.random.Int64N(14), what: all[way]}
			told += fmt.Sprintf(" with %s at %d", way, disturbance.at)
		}
		l.log = append(l.log, told)
		starts = append(starts, start{bootOperator: l.operator(release, disturbance), leads: l.random.IntN(2) == 0, ctx: ctx, kill: kill})
	}
	done := make(chan error)
	for _, one := range starts {
		go func() {
			defer one.kill()
			_, err := one.boot(one.ctx)
			if err == nil && one.leads {
				err = one.lead(one.ctx)
			}
			done <- err
		}()
	}
	for range starts {
		if err := <-done; err != nil {
			l.log = append(l.log, "  ended: "+err.Error())
		}
	}
}

// served returns a version that can be written now and its optional fields; empty if there is none.
func (l *lifetime) served() (version string, fields []string) {
	live := l.live()
	if live == nil {
		return "", nil
	}
	all := slices.DeleteFunc(versions(l.t, live), func(version map[string]any) bool { return version["served"] != true })
	if len(all) == 0 {
		return "", nil
	}
	chosen := all[l.random.IntN(len(all))]
	properties, _, _ := unstructured.NestedMap(chosen, "schema", "openAPIV3Schema", "properties", "spec", "properties")
	for _, field := range []string{"notes", "tags"} {
		if _, found := properties[field]; found {
			fields = append(fields, field)
		}
	}
	name, _ := chosen["name"].(string)
	return name, fields
}

func (l *lifetime) makeObject() {
	version, fields := l.served()
	if version == "" {
		return
	}
	l.made++
	name, spec := fmt.Sprintf("o%d", l.made), map[string]any{"size": int64(l.made), "colour": "red"}
	for _, field := range fields {
		spec[field] = fmt.Sprint(l.random.IntN(100))
	}
	if err := l.create(l.t.Context(), version, "default", name, spec); err != nil {
		l.log = append(l.log, fmt.Sprintf("create %s in %s: %v", name, version, err))
		return
	}
	l.log = append(l.log, fmt.Sprintf("created %s in %s: %v", name, version, spec))
	l.written[name] = spec
}

func (l *lifetime) any() (string, bool) {
	names := slices.Sorted(maps.Keys(l.written))
	if len(names) == 0 {
		return "", false
	}
	return names[l.random.IntN(len(names))], true
}

// editObject changes a field as a user does who read the object before.
func (l *lifetime) editObject() {
	version, fields := l.served()
	name, some := l.any()
	if version == "" || !some {
		return
	}
	change := map[string]any{"size": l.random.Int64N(1000)}
	if len(fields) > 0 {
		change[fields[l.random.IntN(len(fields))]] = fmt.Sprint(l.random.IntN(100))
	}
	object, err := l.client(version).Namespace("default").Get(l.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		l.log = append(l.log, fmt.Sprintf("read %s in %s: %v", name, version, err))
		return
	}
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	maps.Copy(spec, change)
	object.Object["spec"] = spec
	if _, err := l.client(version).Namespace("default").Update(l.t.Context(), object, metav1.UpdateOptions{FieldValidation: "Strict"}); err != nil {
		l.log = append(l.log, fmt.Sprintf("update %s in %s: %v", name, version, err))
		return
	}
	l.log = append(l.log, fmt.Sprintf("updated %s in %s: %v", name, version, change))
	maps.Copy(l.written[name], change)
}

func (l *lifetime) deleteObject() {
	version, _ := l.served()
	name, some := l.any()
	if version == "" || !some {
		return
	}
	if err := l.client(version).Namespace("default").Delete(l.t.Context(), name, metav1.DeleteOptions{}); err == nil {
		delete(l.written, name)
	}
}

// editDefinition does what people do by hand: a short name added, a bound set.
func (l *lifetime) editDefinition() {
	edits := []string{
		`[{"op":"add","path":"/spec/names/shortNames","value":["` + l.plural + `x"]}]`,
		`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/maximum","value":1000000}]`,
		`[{"op":"add","path":"/metadata/labels/team","value":"shop"}]`,
	}
	if l.live() == nil {
		return
	}
	edit := edits[l.random.IntN(len(edits))]
	_, err := l.server.Dynamic.Resource(definitionResource()).Patch(l.t.Context(), l.name(), types.JSONPatchType, []byte(edit), metav1.PatchOptions{})
	l.log = append(l.log, fmt.Sprintf("edited the definition: %s: %v", edit, err))
}

// end boots the newest release in peace and looks at everything.
func (l *lifetime) end() {
	last := l.operator(releases, nil)
	_, err := last.boot(l.t.Context())
	if err == nil {
		err = last.lead(l.t.Context())
	}
	if err != nil {
		l.t.Errorf("the newest release does not boot: %v", err)
	}
	l.wantNewest()
	l.wantObjects(l.written)
	if l.t.Failed() {
		l.t.Logf("what happened:\n%s", strings.Join(l.log, "\n"))
	}
}

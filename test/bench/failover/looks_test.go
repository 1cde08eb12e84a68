package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// looked makes looks at a member every 50 ms from a moment on, on one connection. Each takes 2 ms. In what they see, o is open, c is
// closed, and a space is a look that failed, after which there is another connection.
func looked(member string, from int, seen string) []look {
	var looks []look
	session := 0
	for i, one := range strings.Split(seen, "") {
		if one == " " {
			session++
			continue
		}
		began := from + 50*i
		looks = append(looks, look{member: member, session: session, began: moment(began), ended: moment(began + 2), isOpen: one == "o"})
	}
	return looks
}

func both(members string, from, to int) overlap {
	return overlap{[2]string(strings.Split(members, " ")), moment(from), moment(to)}
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		a, b, c []look
		want    []overlap
	}{
		"one primary": {looked("a", 0, "oooooo"), looked("b", 10, "cccccc"), looked("c", 20, "cccccc"), nil},
		"a handover":  {looked("a", 0, "ooocccc"), looked("b", 10, "cccoooo"), nil, nil},
		"a primary stays open beside the next one": {looked("a", 0, "oooooo"), looked("b", 10, "ccoooo"), nil, []overlap{both("a b", 112, 250)}},
		"the order of members does not matter":     {looked("b", 0, "oooooo"), looked("a", 10, "ccoooo"), nil, []overlap{both("a b", 112, 250)}},
		"a look at each, and both were open":       {looked("a", 0, "ocooo"), looked("b", 0, "cocc"), nil, nil},
		"a frozen primary answers when it is back": {looked("a", 0, "oo   o"), looked("b", 10, "cccccoooo"), nil, nil},
		"it is open for a while then":              {looked("a", 0, "oo   ooo"), looked("b", 10, "ccooooooo"), nil, []overlap{both("a b", 252, 350)}},
		"twice, some time apart":                   {looked("a", 0, "ooooooooooooooo"), looked("b", 10, "occoooccccooocc"), nil, []overlap{both("a b", 162, 260), both("a b", 512, 610)}},
		"three members": {looked("a", 0, "oooo"), looked("b", 0, "ooocc"), looked("c", 0, "ccooo"),
			[]overlap{both("a b", 2, 100), both("a c", 102, 150)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			looks := append(append(append([]look{}, story.a...), story.b...), story.c...)
			got := overlaps(openSpans(looks), 100*time.Millisecond)
			if diff := cmp.Diff(story.want, got, cmp.AllowUnexported(overlap{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOverlapSaysWhoAndHowLong(t *testing.T) {
	t.Parallel()
	if got, want := both("a b", 112, 250).String(), "a and b were open together for at least 138ms"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStaleTips(t *testing.T) {
	t.Parallel()
	// 1 and 2 were acknowledged by the former primary, 4 by the next one. 3 got no answer.
	attempts := []attempt{at(1, -20, -15, true), at(2, -10, -5, true), at(3, 0, 1000, false), at(4, 1100, 1110, true), at(5, 1120, 1130, true)}
	for name, story := range map[string]struct {
		tips []tip
		want int
	}{
		"before the fault":                        {[]tip{{moment(-4), moment(-3), 2}}, 0},
		"the former primary, before the next":     {[]tip{{moment(500), moment(501), 2}}, 0},
		"it has a row whose client got an error":  {[]tip{{moment(500), moment(501), 3}}, 0},
		"a read that began before and ends after": {[]tip{{moment(1109), moment(9000), 2}}, 0},
		"reads after the next primary's answer":   {[]tip{{moment(1111), moment(1112), 2}, {moment(1140), moment(1141), 4}}, 2},
		"the next primary itself":                 {[]tip{{moment(1111), moment(1112), 4}, {moment(1140), moment(1141), 5}}, 0},
		"nothing was acknowledged":                {[]tip{{moment(-30), moment(-29), 0}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := staleTips(story.tips, attempts); got != story.want {
				t.Errorf("got %d, want %d", got, story.want)
			}
		})
	}
}

// Where the reader is: the lesson in sight, and the place that one comes back to.

import { useEffect, useLayoutEffect, useRef, useState } from "../../vendor/htm-preact.js";

const BELOW = 90; // pixels under the window's edge, where the bar ends: what passes there is what is read
const SETTLES = 2500; // milliseconds in which widgets fill and push a place down
const RESTS = 1000; // milliseconds without moving: there one reads; the tabs stand above, and the way to them is no reading
const TOUCHES = ["wheel", "touchstart", "pointerdown", "keydown"];

let left = null; // {lesson, offset}: where one read last

const topOf = (lesson) => document.getElementById(lesson).getBoundingClientRect().top;

// ids: the lessons in order. wanted: what the address asks for. ready: they are on the page.
export function usePlace(ids, wanted, ready) {
  const [current, setCurrent] = useState(wanted || left?.lesson || "");
  const holding = useRef(null); // {lesson, offset} while the page settles

  const hold = (place) => {
    holding.current = place;
    if (document.getElementById(place.lesson)) scrollBy(0, topOf(place.lesson) - BELOW + 10 + place.offset);
    setCurrent(place.lesson);
    setTimeout(() => { if (holding.current === place) holding.current = null; }, SETTLES);
  };
  useLayoutEffect(() => {
    if (!ready) return;
    const lesson = wanted || left?.lesson;
    if (lesson && ids.includes(lesson)) hold(left?.lesson === lesson ? left : { lesson, offset: 0 });
  }, [ready]);
  useEffect(() => {
    if (!ready) return undefined;
    let frame = 0;
    let rest = 0;
    const inSight = () => ids.filter((id) => document.getElementById(id) && topOf(id) <= BELOW + 40).pop() ?? "";
    const keep = () => {
      const now = inSight();
      if (now) left = { lesson: now, offset: BELOW - 10 - topOf(now) };
    };
    const look = () => {
      frame = 0;
      clearTimeout(rest);
      rest = setTimeout(keep, RESTS);
      setCurrent(inSight());
    };
    const scrolled = () => { if (!holding.current) frame ||= requestAnimationFrame(look); };
    const moved = () => { holding.current = null; };
    const settled = new ResizeObserver(() => {
      const place = holding.current;
      if (place && document.getElementById(place.lesson)) scrollBy(0, topOf(place.lesson) - BELOW + 10 + place.offset);
    });
    settled.observe(document.getElementById("main"));
    addEventListener("scroll", scrolled, { passive: true });
    for (const name of TOUCHES) addEventListener(name, moved, { passive: true });
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(rest);
      keep();
      settled.disconnect();
      removeEventListener("scroll", scrolled);
      for (const name of TOUCHES) removeEventListener(name, moved);
    };
  }, [ready]);
  useEffect(() => { // the bar is narrower than its numbers on a phone
    const [bar, own] = [".learn-bar nav", ".learn-bar [aria-current]"].map((one) => document.querySelector(one));
    if (bar && own) bar.scrollLeft = own.offsetLeft - (bar.clientWidth - own.offsetWidth) / 2;
  }, [current, ready]);
  const goTo = (lesson) => {
    hold({ lesson, offset: 0 });
    document.getElementById(`${lesson}-title`)?.focus({ preventScroll: true });
  };
  return { current, goTo };
}

// What is folded is unfolded on paper.
export function useUnfoldedPrint() {
  useEffect(() => {
    const opened = [];
    const before = () => {
      const folded = [...document.querySelectorAll(".learn details:not([open])")];
      for (const one of folded) one.open = true;
      opened.push(...folded);
    };
    const after = () => { for (const one of opened.splice(0)) one.open = false; };
    addEventListener("beforeprint", before);
    addEventListener("afterprint", after);
    return () => { removeEventListener("beforeprint", before); removeEventListener("afterprint", after); };
  }, []);
}

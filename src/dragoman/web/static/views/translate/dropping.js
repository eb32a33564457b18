// A file that is dragged over something: whether one is, and what listens to it.

import { useRef, useState } from "../../vendor/htm-preact.js";

export function useDropping(onFile) {
  const [isDragged, setDragged] = useState(false);
  const depth = useRef(0); // what is inside is entered before what is around it is left
  const hasFile = (event) => [...event.dataTransfer.types].includes("Files");
  const move = (by) => (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    depth.current = Math.max(0, depth.current + by);
    setDragged(depth.current > 0);
  };
  const drop = (event) => { // else the browser would show the file in place of this page
    depth.current = 0;
    setDragged(false);
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    onFile(event.dataTransfer.files[0]);
  };
  return [isDragged, { onDragEnter: move(1), onDragOver: (event) => event.preventDefault(), onDragLeave: move(-1), onDrop: drop }];
}

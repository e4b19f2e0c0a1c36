// What a delivery does: makes objects in cycles, which reference counting alone never frees, and
// keeps a few of them for ever.
"use strict";
const kept = [];
let serial = 0;

function pair(text) {
  const left = { serial: serial++, label: "node " + serial, text, peer: null };
  const right = { serial: serial++, values: [serial, serial + 1, serial + 2], peer: left };
  left.peer = right;
  return left;
}

// Makes `count` pairs, each with a text of half a kilobyte, and drops them; then `keep` pairs without
// a text, and keeps them.
function deliver(count, keep) {
  for (let n = 0; n < count; n++) pair("x".repeat(512));
  for (let n = 0; n < keep; n++) kept.push(pair(null));
}

// The sum of the serials of all that is kept, for a check: each is there, and whole.
function checksum() {
  let sum = 0;
  for (const left of kept) sum += left.serial + left.peer.values[0];
  return sum;
}

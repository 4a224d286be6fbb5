// The connection: snapshots as they come, and whether they still come.

/** Without news for so long, something is wrong: looks are a second apart. */
const SILENCE = 10_000;
/** A connection that has ended for good is made again after so long. */
const RETRY = 3_000;

/**
 * Calls `onSnapshot` with each snapshot and whether it is the first of a connection, and `onState`
 * with "on", "silent" or "off" and the moment of the last news.
 */
export function follow(onSnapshot, onState) {
  let source = null;
  let first = true;
  let heard = 0;
  let lastLook = null;
  let connected = false;

  const say = () => {
    const silent = Date.now() - heard > SILENCE;
    onState(!connected ? "off" : silent ? "silent" : "on", heard);
  };
  const open = () => {
    source = new EventSource("v1/events");
    source.onmessage = (event) => {
      let snapshot;
      try {
        snapshot = JSON.parse(event.data);
      } catch {
        return;
      }
      connected = true;
      // The same look again, as a new connection brings it, is no news.
      if (snapshot.t !== lastLook) heard = Date.now();
      lastLook = snapshot.t;
      onSnapshot(snapshot, first);
      first = false;
      say();
    };
    source.onerror = () => {
      connected = false;
      first = true;
      say();
      // A browser tries again by itself, unless it was refused.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, RETRY);
    };
  };
  open();
  setInterval(say, 1000);
}

/** The JSON at a path, or nothing. */
export async function read(path) {
  try {
    const answer = await fetch(path);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

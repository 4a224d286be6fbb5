// The connection: reports each snapshot, and the state of the connection.

/** After this long without a new snapshot the connection counts as silent: they are a second apart. */
const SILENCE = 10_000;
/** The pause before a closed connection is opened again. */
const RETRY = 3_000;

/**
 * Calls `onSnapshot` with each snapshot and whether it is the first of a connection. Calls `onState`
 * with "on", "silent" or "off" and the time of the last new snapshot.
 */
export function follow(onSnapshot, onState) {
  let source = null;
  let first = true;
  let heard = 0;
  let lastSample = null;
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
      // A new connection repeats the last snapshot, which is not new.
      if (snapshot.t !== lastSample) heard = Date.now();
      lastSample = snapshot.t;
      onSnapshot(snapshot, first);
      first = false;
      say();
    };
    source.onerror = () => {
      connected = false;
      first = true;
      say();
      // A browser reconnects by itself, unless it was refused.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, RETRY);
    };
  };
  open();
  setInterval(say, 1000);
}

/** The JSON at a path, or null. */
export async function read(path) {
  try {
    const answer = await fetch(path);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

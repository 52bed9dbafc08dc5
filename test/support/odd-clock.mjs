/**
 * Clocks of a process as odd machines have them, loaded before the program: `CLOCK_AHEAD_MS` is the
 * error of the system clock, and with `CLOCK_SLEEPS` the steady clock stands still while the
 * process is stopped, as `CLOCK_MONOTONIC` does while a machine sleeps.
 */
const aheadMs = Number(process.env.CLOCK_AHEAD_MS ?? 0)
const wallNow = Date.now.bind(Date)
Date.now = () => wallNow() + aheadMs
Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + aheadMs })

/** The program reads the steady clock several times a second: a longer gap is a stop. */
const GAP_MS = 2_500
const steadyNow = performance.now.bind(performance)
let [sleptMs, readAt] = [0, steadyNow()]
if (process.env.CLOCK_SLEEPS !== undefined)
  performance.now = () => {
    const now = steadyNow()
    if (now - readAt > GAP_MS) sleptMs += now - readAt
    readAt = now
    return now - sleptMs
  }

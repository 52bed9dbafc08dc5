/** Processes that must not outlive the one that has started them, not even when that one is killed. */
import { spawn } from 'node:child_process'

/** An owner that lives cleans up by itself. */
const script = `while kill -0 "$1" 2>/dev/null && kill -0 "$2" 2>/dev/null; do sleep 0.5; done
  kill -0 "$1" 2>/dev/null && exit
  kill -"$3" "$2" 2>/dev/null
  while kill -0 "$2" 2>/dev/null; do sleep 0.5; done
  [ -z "$4" ] || rm -rf "$4"`

/**
 * Sends `signal` to the child when its owner is gone, and then removes `folder`. A process of its own watches: an owner
 * that is killed has no time to do it.
 */
export function endWith(
  ownerPid: number,
  childPid: number,
  signal: 'INT' | 'TERM',
  folder = '',
): void {
  const words = [String(ownerPid), String(childPid), signal, folder]
  spawn('sh', ['-c', script, 'sh', ...words], { detached: true, stdio: 'ignore' }).unref()
}

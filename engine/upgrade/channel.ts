/** The channel between the two processes of an upgrade: that of Node.js between parent and child. */
import { type ChildProcess, spawn } from 'node:child_process'
import { type FromNew, type FromOld, type Link, OFFER, type Offer } from './messages.ts'

/** So many datagrams may wait for the channel; more are thrown away, and their senders repeat them. */
const MAX_WAITING = 20_000

/** Starts the same command line anew, with the program that is on disk now. @throws {Error} there is none. */
export function startNewProcess(
  { execPath, execArgv, argv, env }: NodeJS.Process,
  descriptors: readonly number[],
  offer: Offer,
): Link<FromOld, FromNew> {
  const child = spawn(execPath, [...execArgv, ...argv.slice(1)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc', ...descriptors],
    env: { ...env, [OFFER]: JSON.stringify(offer) },
  })
  const onEnd = (listener: (how: string) => void): void => {
    child.once('error', (error) => listener(`cannot be started: ${error.message}`))
    child.once('exit', (code, signal) =>
      listener(signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`),
    )
  }
  return {
    pid: child.pid ?? 0,
    onEnd,
    ...overChannel<FromOld>(child),
    onMessage: (listener) => void child.on('message', listener),
    end: () => void child.kill('SIGKILL'),
  }
}

/** In a process that was started so: the channel to the one that did it. */
export const linkToOldProcess = (own: NodeJS.Process): Link<FromNew, FromOld> => ({
  pid: own.ppid,
  onEnd: (listener) => void own.once('disconnect', () => listener('has ended')),
  ...overChannel<FromNew>(own),
  onMessage: (listener) => void own.on('message', listener),
  end: () => own.disconnect(),
})

function overChannel<Sent extends { readonly kind: string }>(
  channel: Pick<ChildProcess, 'connected'> & { readonly send?: NodeJS.Process['send'] | undefined },
): Pick<Link<Sent, never>, 'send'> {
  let waiting = 0
  return {
    send: (message) => {
      if (!channel.connected || (message.kind === 'datagram' && waiting > MAX_WAITING)) return
      waiting += 1
      // The other process may end at any moment: then its end tells.
      channel.send?.(message, undefined, {}, () => void (waiting -= 1))
    },
  }
}
